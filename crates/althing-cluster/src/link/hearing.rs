//! What comes on one connection: each item in its turn, tells of a bundle in runs.
//!
//! An item is handled when this node knows at least the record that its sender knew, and has its
//! lease. What a node that is no member any more has sent is not handled at all.
//!
//! A run are tells for one actor that stand one behind the other. Order is kept over runs and items,
//! whichever actors they are for.

use std::collections::VecDeque;
use std::sync::Arc;

use althing::Wire;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use super::Arrival;
use super::accept::{Peer, Ticket};
use super::bundle::{self, Bundle, Tells};
use super::dial::SILENCE_MAX;
use super::inbox::Inbox;
use crate::member::Shared;
use crate::member::inward::{Inlets, Run};
use crate::protocol::{Broken, Forth, Item};
use crate::router::Hop;
use crate::transport::Reader;

/// Frames that are read before the first of them is handled.
const BATCH_LEN: usize = 64;

/// Tells, or other items, that are handled in one turn: enough that the turn costs little, few enough
/// that others have theirs within some tens of microseconds, and that a mailbox that was empty has
/// room for all of them.
const TURN_LEN: u64 = 512;
const TURN_ITEMS: u64 = 64;

/// What the handling of one connection's items needs.
pub(super) struct Hearing {
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    who: u64,
    connection: u64,
    inbox: Inbox,
    /// What was read and is not handled.
    ready: VecDeque<Ready>,
    inlets: Inlets,
}

enum Ready {
    /// An item, and the record that its sender knew.
    Item {
        number: u64,
        view: u64,
        item: Box<Item>,
    },
    Tells(Bundle),
}

impl Ready {
    fn view(&self) -> u64 {
        match self {
            Self::Item { view, .. } | Self::Tells(Bundle { view, .. }) => *view,
        }
    }
}

/// How far a turn has come.
enum Turn {
    /// All that was read is handled.
    Done,
    /// It was long enough.
    Over,
    /// The next item has to wait for that view.
    Waits(u64),
}

impl Hearing {
    pub(super) fn new(shared: &Arc<Shared>, peer: &Arc<Peer>, who: u64, connection: u64) -> Self {
        Self {
            shared: shared.clone(),
            peer: peer.clone(),
            who,
            connection,
            inbox: Inbox::new(shared.config.frame_len_max),
            ready: VecDeque::with_capacity(BATCH_LEN),
            inlets: Inlets::default(),
        }
    }

    /// Reads and handles until the connection ends.
    pub(super) async fn hear(mut self, mut from: Reader) -> Result<(), Broken> {
        let mut heard = Instant::now();
        let mut silence = std::pin::pin!(sleep(SILENCE_MAX));
        loop {
            while self.decode_some()? {
                match self.handle_ready()? {
                    Turn::Done => {}
                    // Whoever got something runs before the rest of it comes.
                    Turn::Over => yield_now().await,
                    Turn::Waits(view) => self.shared.ready_to_handle(view).await,
                }
            }
            self.peer.owe();
            tokio::select! {
                biased;
                read = from.read_into(self.inbox.room()) => match read? {
                    0 => return Err(Broken::Io(std::io::ErrorKind::UnexpectedEof.into())),
                    _ => heard = Instant::now(),
                },
                () = &mut silence => {
                    if heard.elapsed() >= SILENCE_MAX {
                        return Err(Broken::Silent);
                    }
                    silence.as_mut().reset(heard + SILENCE_MAX);
                }
            }
        }
    }

    /// Reads what has come; false if there is nothing to handle.
    fn decode_some(&mut self) -> Result<bool, Broken> {
        while self.ready.len() < BATCH_LEN {
            let Some(at) = self.inbox.frame_at()? else { break };
            let frame = self.inbox.at(at.clone());
            if let Some(mut bundle) = bundle::read(frame)? {
                bundle.tells = at.start + bundle.tells.start..at.start + bundle.tells.end;
                self.ready.push_back(Ready::Tells(bundle));
            } else if let Forth::Item { number, view, item } = Forth::decode(frame)? {
                self.ready.push_back(Ready::Item { number, view, item: Box::new(item) });
            }
        }
        Ok(!self.ready.is_empty())
    }

    /// Handles items up to one that has to wait.
    fn handle_ready(&mut self) -> Result<Turn, Broken> {
        let shared = self.shared.clone();
        // Nothing in here waits, so items are handled one after the other. Records are followed in
        // a turn of their own.
        let _turn = shared.turn.lock();
        let known = *shared.view.borrow();
        if !shared.is_member(self.who) {
            return Err(Broken::Refused("it is no member any more".to_owned()));
        }
        // What was found in the former turn may have moved since.
        self.inlets.forget();
        let mut left = TURN_LEN;
        while let Some(next) = self.ready.front() {
            if next.view() > known || !shared.is_serving() {
                return Ok(Turn::Waits(next.view()));
            }
            if left == 0 {
                return Ok(Turn::Over);
            }
            match self.ready.pop_front() {
                Some(Ready::Item { number, view, item }) => {
                    self.handle_item(number, view, *item)?;
                    left = left.saturating_sub(TURN_LEN / TURN_ITEMS);
                }
                Some(Ready::Tells(mut bundle)) => {
                    self.handle_tells(&mut bundle, &mut left)?;
                    if !bundle.tells.is_empty() {
                        self.ready.push_front(Ready::Tells(bundle));
                    }
                }
                None => break,
            }
        }
        Ok(Turn::Done)
    }

    fn handle_item(&mut self, number: u64, view: u64, item: Item) -> Result<(), Broken> {
        let arrival = self.peer.incoming.lock().arrive(self.connection, number);
        match (arrival, item) {
            (Arrival::Next, Item::Route { route, to, name, epoch }) => {
                self.inlets.forget();
                self.peer.routes.lock().set(route, to, name, epoch)?;
                self.peer.took(1);
            }
            (Arrival::Next, item) => {
                let from = Hop { node: self.who, view };
                self.shared.handle(from, item, Ticket(self.peer.clone()));
            }
            (Arrival::Again, _) => {}
            (Arrival::Wrong, _) => return Err(out_of_order()),
        }
        Ok(())
    }

    /// Handles tells of a bundle, at most `left`, and takes them out of it.
    fn handle_tells(&mut self, bundle: &mut Bundle, left: &mut u64) -> Result<(), Broken> {
        let mut tells = Tells::new(self.inbox.at(bundle.tells.clone()));
        while *left > 0 {
            let rest = tells.clone();
            let Some((route, count)) = tells.next_run(*left)? else { break };
            let again = self.peer.incoming.lock().arrive_all(self.connection, bundle.first, count);
            let again = again.ok_or_else(out_of_order)?;
            bundle.first += count;
            bundle.tells.start = bundle.tells.end - tells.len();
            *left -= count;
            if again < count {
                let route = self.peer.routes.lock().get(route)?;
                let run =
                    Run { route: &route, tells: rest.skip_tells(again), count: count - again };
                let from = Hop { node: self.who, view: bundle.view };
                self.shared.take_run(from, &self.peer, &mut self.inlets, &run);
            }
        }
        Ok(())
    }
}

fn out_of_order() -> Broken {
    Broken::Refused("items out of order".to_owned())
}

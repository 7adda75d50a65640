//! The actor that carries: it reads what is due next, sends it, and takes down what was taken. One
//! for each node on which its courier was started.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use althing::{Actor, ActorError, ActorId, AskError, Context, Handler, TimerId, Timestamp};
use futures_util::future::{Either, select};

use super::CourierOptions;
use super::agenda::Agenda;
use super::inbox::Inbox;
use crate::delivery::{Delivery, Mark, Posting, Settled};
use crate::store::{Store, StoreError};

/// How far ahead deliveries are in memory.
const AHEAD: Duration = Duration::from_secs(90);
/// Pause between two looks at the store, for what others have left there: less than half of what is
/// ahead, so that nothing falls between them.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Deliveries read at once, at most.
const PAGE: usize = 1_000;
/// What turns may leave while the store is read, at most; more is read from the store.
const MEANWHILE_MAX: usize = 65_536;
/// Pause after the store has failed.
const STORE_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Carrier {
    store: Arc<dyn Store>,
    options: CourierOptions,
    inbox: Arc<Inbox>,
    agenda: Agenda,
    reading: Reading,
    /// Up to when everything has been read.
    read_until: Timestamp,
    /// Whether something was left that is only in the store.
    has_missed: bool,
    /// What turns have left while the store was being read: it comes after what was read. Pages say
    /// nothing about these names, because they may be older.
    meanwhile: Vec<(ActorId, Posting)>,
    changed_meanwhile: HashSet<(ActorId, String)>,
    /// What the store is still to be told.
    settled: Vec<Settled>,
    is_settling: bool,
    /// What was taken, and may be in a page that was read before the store knew.
    taken: HashSet<Mark>,
    /// Those of them of which it knows; they are forgotten with the page that is on its way.
    known: Vec<Mark>,
    timer: Option<TimerId>,
}

/// How far the store has been read this time.
enum Reading {
    /// The next time is at that moment.
    Done(Timestamp),
    /// A page is on its way.
    Page,
    /// Memory is full; to be read on from there, up to there.
    Full(Option<Mark>, Timestamp),
}

/// Something may be due.
pub(super) struct Look;

struct Page {
    until: Timestamp,
    found: Result<Vec<Delivery>, StoreError>,
}

struct Answered {
    mark: Mark,
    outcome: Outcome,
}

enum Outcome {
    Taken,
    Failed(AskError),
    Late,
}

struct SettledAll {
    settled: Vec<Settled>,
    outcome: Result<(), StoreError>,
}

impl Carrier {
    pub(super) fn new(store: Arc<dyn Store>, options: CourierOptions, inbox: Arc<Inbox>) -> Self {
        Self {
            store,
            options,
            inbox,
            agenda: Agenda::default(),
            reading: Reading::Done(Timestamp(0)),
            read_until: Timestamp(0),
            has_missed: false,
            meanwhile: Vec::new(),
            changed_meanwhile: HashSet::new(),
            settled: Vec::new(),
            is_settling: false,
            taken: HashSet::new(),
            known: Vec::new(),
            timer: None,
        }
    }

    /// Does what can be done now, and sets the timer for what comes next.
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        self.take_posted(ctx);
        self.read_on(ctx);
        for attempt in self.agenda.take(ctx.now(), self.options.at_once_max) {
            let node = ctx.node();
            let mark = attempt.mark;
            if !node.is_home_of(&mark.owner) {
                self.agenda.let_go(&mark);
                continue;
            }
            let late = node.sleep(self.options.answer_within);
            let asked = async move {
                let asked = std::pin::pin!(node.ask_letter(attempt.letter));
                match select(asked, std::pin::pin!(late)).await {
                    Either::Left((Ok(_), _)) => Outcome::Taken,
                    Either::Left((Err(why), _)) => Outcome::Failed(why),
                    Either::Right(_) => Outcome::Late,
                }
            };
            ctx.pipe(asked, |outcome| Answered { mark, outcome });
        }
        self.settle(ctx);
        self.set_timer(ctx);
    }

    /// Takes what turns on this node have left.
    fn take_posted(&mut self, ctx: &Context<Self>) {
        let (postings, has_missed) = self.inbox.take();
        self.has_missed |= has_missed;
        for (owner, posting) in postings {
            let name = match &posting {
                Posting::Put(delivery) => delivery.name.clone(),
                Posting::Cancel(name) => name.clone(),
            };
            self.agenda.cancel(owner.clone(), name.clone());
            if matches!(self.reading, Reading::Done(_)) {
                self.take_posting(posting, ctx);
            } else if self.meanwhile.len() < MEANWHILE_MAX {
                self.changed_meanwhile.insert((owner.clone(), name));
                self.meanwhile.push((owner, posting));
            } else {
                self.has_missed = true;
            }
        }
    }

    /// Those that are due later are read when their time comes.
    fn take_posting(&mut self, posting: Posting, ctx: &Context<Self>) {
        if let Posting::Put(delivery) = posting
            && delivery.due <= self.read_until
        {
            self.put(delivery, ctx);
        }
    }

    /// Goes on with what has been left while the store was being read.
    fn end_reading(&mut self, until: Timestamp, ctx: &Context<Self>) {
        self.read_until = until;
        self.reading = Reading::Done(later(ctx.now(), LOOK_EVERY));
        self.changed_meanwhile.clear();
        for (owner, posting) in std::mem::take(&mut self.meanwhile) {
            if let Posting::Cancel(name) = &posting {
                self.agenda.cancel(owner, name.clone());
            }
            self.take_posting(posting, ctx);
        }
    }

    /// Takes what was read, unless it is known to be older than what is known.
    fn take_read(&mut self, found: Vec<Delivery>, ctx: &Context<Self>) {
        for delivery in found {
            let name = (delivery.owner.clone(), delivery.name.clone());
            if !self.changed_meanwhile.contains(&name) && !self.taken.contains(&delivery.mark()) {
                self.put(delivery, ctx);
            }
        }
        for mark in self.known.drain(..) {
            self.taken.remove(&mark);
        }
    }

    fn put(&mut self, delivery: Delivery, ctx: &Context<Self>) {
        if ctx.node().is_home_of(&delivery.owner) {
            self.agenda.put(delivery);
        }
    }

    fn read_on(&mut self, ctx: &mut Context<Self>) {
        let now = ctx.now();
        let (after, until) = match &mut self.reading {
            Reading::Done(at) if *at <= now || self.has_missed => (None, later(now, AHEAD)),
            Reading::Full(after, until) if self.agenda.len() <= self.options.in_memory_max / 2 => {
                (after.take(), *until)
            }
            Reading::Done(_) | Reading::Page | Reading::Full(..) => return,
        };
        if after.is_none() {
            self.has_missed = false;
        }
        self.read(after, until, ctx);
    }

    fn read(&mut self, after: Option<Mark>, until: Timestamp, ctx: &mut Context<Self>) {
        self.reading = Reading::Page;
        let page = self.store.due(until, after, self.page());
        ctx.pipe(page, move |found| Page { until, found });
    }

    fn page(&self) -> usize {
        PAGE.min(self.options.in_memory_max).max(1)
    }

    fn settle(&mut self, ctx: &mut Context<Self>) {
        if self.is_settling || self.settled.is_empty() {
            return;
        }
        self.is_settling = true;
        let settled = std::mem::take(&mut self.settled);
        let answer = self.store.settle(settled.clone());
        ctx.pipe(answer, |outcome| SettledAll { settled, outcome });
    }

    fn set_timer(&mut self, ctx: &mut Context<Self>) {
        let mut next = self.agenda.next_try();
        if let Reading::Done(at) = self.reading {
            next = Some(next.map_or(at, |next| next.min(at)));
        }
        if let Some(timer) = self.timer.take() {
            ctx.cancel(timer);
        }
        // With so many on their way, the next answer is the next look.
        self.timer = next.map(|at| {
            let delay_ms = at.0.saturating_sub(ctx.now().0).max(1);
            ctx.after(Duration::from_millis(delay_ms), Look)
        });
    }
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp(now.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
}

impl Actor for Carrier {
    const NAME: &'static str = "althing.courier";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.go_on(ctx);
        Ok(())
    }
}

impl Handler<Look> for Carrier {
    type Reply = ();

    async fn handle(&mut self, _: Look, ctx: &mut Context<Self>) {
        self.go_on(ctx);
    }
}

impl Handler<Page> for Carrier {
    type Reply = ();

    async fn handle(&mut self, Page { until, found }: Page, ctx: &mut Context<Self>) {
        match found {
            Err(error) => {
                tracing::warn!(%error, "what is to be delivered cannot be read");
                // Nothing of what was left meanwhile is lost: it is in the store, and read again.
                self.end_reading(Timestamp(0), ctx);
                self.reading = Reading::Done(later(ctx.now(), STORE_PAUSE));
            }
            Ok(found) => {
                let is_last = found.len() < self.page();
                let after = found.last().map(Delivery::mark);
                self.take_read(found, ctx);
                if is_last {
                    self.end_reading(until, ctx);
                } else if self.agenda.len() < self.options.in_memory_max {
                    self.read(after, until, ctx);
                } else {
                    self.reading = Reading::Full(after, until);
                }
            }
        }
        self.go_on(ctx);
    }
}

impl Handler<Answered> for Carrier {
    type Reply = ();

    async fn handle(&mut self, Answered { mark, outcome }: Answered, ctx: &mut Context<Self>) {
        let now = ctx.now();
        match outcome {
            Outcome::Taken => {
                self.taken.insert(mark.clone());
                let settled = self.agenda.taken(mark, now);
                self.settled.push(settled);
            }
            Outcome::Late => self.agenda.failed(&mark, now),
            Outcome::Failed(why) => {
                tracing::debug!(owner = %mark.owner, name = mark.name, %why, "not delivered");
                self.agenda.failed(&mark, now);
            }
        }
        self.go_on(ctx);
    }
}

impl Handler<SettledAll> for Carrier {
    type Reply = ();

    async fn handle(&mut self, done: SettledAll, ctx: &mut Context<Self>) {
        self.is_settling = false;
        if let Err(error) = done.outcome {
            tracing::warn!(%error, "what was delivered cannot be taken down");
            self.settled.extend(done.settled);
            ctx.after(STORE_PAUSE, Look);
            return;
        }
        let known = done.settled.into_iter().map(|settled| settled.mark);
        if matches!(self.reading, Reading::Page) {
            self.known.extend(known);
        } else {
            known.for_each(|mark| _ = self.taken.remove(&mark));
        }
        self.go_on(ctx);
    }
}

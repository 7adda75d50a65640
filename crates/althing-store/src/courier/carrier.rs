//! The actor that carries: it reads what is due next, sends it, and takes down what was taken. One
//! for each node on which its courier was started.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use althing::{Actor, ActorError, ActorId, Context, Handler, StopReason, TimerId, Timestamp};

use super::CourierOptions;
use super::agenda::{Agenda, Attempt};
use super::arrivals::{Arrivals, LookWanted};
use super::inbox::{Inbox, Taken};
use super::reading::{PageWanted, Reading, STORE_PAUSE, later};
use super::sending::{Answered, Outcome, Sending};
use super::set_aside::SetAside;
use crate::delivery::{Delivery, Mark, Posting, Settled};
use crate::post::reminder_name;
use crate::store::{Store, StoreError};

/// Pause between two beginnings of taking down, while what was taken has not become many: what is
/// taken down together touches the same pages of the store, and waits for one sync. After a crash
/// what was taken meanwhile is sent once more.
const SETTLE_EVERY: Duration = Duration::from_secs(1);
/// The same when a letter was taken: its actor remembers so many requests only, and shall know it
/// if it comes again.
const SETTLE_LETTERS_EVERY: Duration = Duration::from_millis(20);
/// So many are taken down without waiting.
const SETTLE_MANY: usize = 32_768;
/// How often it looks whether actors have come here or gone.
const MOVES_EVERY: Duration = Duration::from_secs(1);
/// Pause between two times that reminders are sent, while there are many: those of a moment go
/// together.
const TOGETHER: Duration = Duration::from_millis(10);

pub(super) struct Carrier {
    store: Arc<dyn Store>,
    options: CourierOptions,
    inbox: Arc<Inbox>,
    agenda: Agenda,
    reading: Reading,
    arrivals: Arrivals,
    /// Owners of letters that lived elsewhere when one of them was read. Should one come here amid
    /// a reading, none of the pages that follow puts its letters before those that were passed
    /// over.
    away: HashSet<ActorId>,
    set_aside: SetAside,
    /// What the store is still to be told.
    settled: Vec<Settled>,
    is_settling: bool,
    /// Nothing but many is taken down before.
    settle_at: Timestamp,
    /// Whether the store has failed to take it down, the last time it was told.
    settling_failed: bool,
    /// What was taken, and may be in a page that was read before the store knew, or in what was
    /// left before.
    taken: HashSet<Mark>,
    /// Those of them of which it knows; they are forgotten with the page that is on its way.
    known: Vec<Mark>,
    /// As `known`, with the look for older letters that is on its way.
    known_to_look: Vec<Mark>,
    /// No reminder is sent before.
    remind_at: Timestamp,
    /// How often its node had looked anew where actors live, when this looked at that last; `None`
    /// where all stay. And when it looks at it next.
    relocations: Option<u64>,
    moves_at: Timestamp,
    timer: Option<(Timestamp, TimerId)>,
}

/// Something may be due.
pub(super) struct Look;

struct Page(Result<Vec<Delivery>, StoreError>);

/// What owners have left before they came here.
struct Left(Result<Vec<Delivery>, StoreError>);

struct SettledAll {
    settled: Vec<Settled>,
    outcome: Result<(), StoreError>,
}

impl Carrier {
    pub(super) fn new(
        store: Arc<dyn Store>,
        options: CourierOptions,
        inbox: Arc<Inbox>,
        set_aside: SetAside,
    ) -> Self {
        Self {
            store,
            inbox,
            agenda: Agenda::default(),
            reading: Reading::new(options.in_memory_max),
            arrivals: Arrivals::new(options.in_memory_max),
            away: HashSet::new(),
            set_aside,
            options,
            settled: Vec::new(),
            is_settling: false,
            settle_at: Timestamp(0),
            settling_failed: false,
            taken: HashSet::new(),
            known: Vec::new(),
            known_to_look: Vec::new(),
            remind_at: Timestamp(0),
            relocations: None,
            moves_at: Timestamp(0),
            timer: None,
        }
    }

    /// Does what can be done now, and sets the timer for what comes next.
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        let now = ctx.now();
        self.take_posted(ctx);
        self.look_for_moves(now, ctx);
        if self.reading.is_full() {
            // A part of it at once: each time all that is in memory is looked through.
            self.agenda.forget_failed_reminders(self.options.in_memory_max / 4);
        }
        if let Some(wanted) = self.reading.next_page(now, self.agenda.len()) {
            self.read(wanted, ctx);
        }
        if let Some(LookWanted { firsts, limit }) = self.arrivals.look(now) {
            ctx.pipe(self.store.left_before(firsts, limit), Left);
        }
        self.send(now, ctx);
        self.settle(now, ctx);
        self.set_timer(now, ctx);
    }

    /// Where actors have come here or gone, the store is looked at soon.
    fn look_for_moves(&mut self, now: Timestamp, ctx: &Context<Self>) {
        // Set by a clock that has stepped back since, otherwise.
        self.moves_at = self.moves_at.min(later(now, MOVES_EVERY));
        if now < self.moves_at {
            return;
        }
        self.moves_at = later(now, MOVES_EVERY);
        let relocations = ctx.node().relocations();
        if relocations != self.relocations {
            self.relocations = relocations;
            self.reading.look_soon();
        }
    }

    fn send(&mut self, now: Timestamp, ctx: &mut Context<Self>) {
        // Set by a clock that has stepped back since, otherwise.
        self.remind_at = self.remind_at.min(later(now, TOGETHER));
        let reminders_until = if now < self.remind_at { Timestamp(0) } else { now };
        let mut attempts = self.agenda.take(now, reminders_until, self.options.at_once_max);
        let node = ctx.node();
        attempts.retain(|Attempt { mark, letter }| {
            if !node.is_home_of(&mark.owner) {
                self.agenda.let_go(mark);
                return false;
            }
            let len_max = node.longest_letter_now(&letter.to);
            let fits = letter.body.len() <= len_max;
            if fits {
                self.set_aside.sent(mark);
            } else {
                self.set_aside.add(mark, letter, len_max);
                self.agenda.set_aside(mark);
            }
            fits
        });
        if attempts.is_empty() {
            return;
        }
        // With as many on their way as may be, the next answer makes room for the next.
        if attempts.len() > 1 && self.agenda.on_the_way() < self.options.at_once_max {
            self.remind_at = later(now, TOGETHER);
        }
        let sending = Sending::new(&node, attempts, self.options.answer_within);
        ctx.pipe(sending.answered(), |answered| answered);
    }

    /// Takes what turns on this node have left.
    fn take_posted(&mut self, ctx: &Context<Self>) {
        let Taken { firsts, postings, has_missed } = self.inbox.take();
        for (owner, first) in firsts {
            self.agenda.hold(owner.clone());
            self.arrivals.came(owner, first);
        }
        for (owner, posting) in postings {
            let name = match &posting {
                Posting::Put(delivery) => delivery.name.clone(),
                Posting::Cancel(name) => name.clone(),
            };
            self.agenda.cancel(owner.clone(), name);
            if let Some(delivery) = self.reading.posted(owner, posting) {
                self.put(delivery, ctx);
            }
        }
        if has_missed || self.arrivals.is_crowded() {
            self.read_anew();
        }
    }

    /// Has everything read from the store once more, in the order in which it was left.
    fn read_anew(&mut self) {
        // Something of it may have been cancelled.
        self.agenda.forget_waiting();
        self.reading.missed();
        self.arrivals.clear();
        self.agenda.free_all();
    }

    fn put(&mut self, delivery: Delivery, ctx: &Context<Self>) {
        if ctx.node().is_home_of(&delivery.owner) {
            self.agenda.put(delivery);
        }
    }

    /// Takes what was read.
    fn put_read(&mut self, read: Vec<Delivery>, ctx: &Context<Self>) {
        let node = ctx.node();
        for delivery in read {
            if reminder_name(&delivery.name).is_some() {
                self.put(delivery, ctx);
            } else if self.away.contains(&delivery.owner) {
                // Comes with the next reading, or before what its owner leaves here first.
            } else if node.is_home_of(&delivery.owner) {
                self.agenda.put(delivery);
            } else {
                self.agenda.forget_letters(&delivery.owner);
                self.away.insert(delivery.owner);
            }
        }
        if self.away.len() > self.options.in_memory_max {
            self.away.clear();
        }
    }

    fn read(&mut self, wanted: PageWanted, ctx: &mut Context<Self>) {
        if wanted.after.is_none() {
            self.away.clear();
        }
        let page = self.store.due(wanted.until, wanted.after, wanted.limit);
        ctx.pipe(page, Page);
    }

    fn settle(&mut self, now: Timestamp, ctx: &mut Context<Self>) {
        // Set by a clock that has stepped back since, otherwise.
        self.settle_at = self.settle_at.min(later(now, SETTLE_EVERY));
        let is_time = now >= self.settle_at || self.settled.len() >= SETTLE_MANY;
        if self.is_settling || self.settled.is_empty() || !is_time {
            return;
        }
        self.is_settling = true;
        self.settle_at = later(now, SETTLE_EVERY);
        let settled = std::mem::take(&mut self.settled);
        let answer = self.store.settle(settled.clone());
        ctx.pipe(answer, |outcome| SettledAll { settled, outcome });
    }

    fn set_timer(&mut self, now: Timestamp, ctx: &mut Context<Self>) {
        // With so many on their way, the next answer is the next look.
        let has_room = self.agenda.on_the_way() < self.options.at_once_max;
        let letter = self.agenda.next_letter().filter(|_| has_room);
        let reminder = self.agenda.next_reminder().filter(|_| has_room);
        let reminder = reminder.map(|at| at.max(self.remind_at));
        let is_waiting = !self.is_settling && !self.settled.is_empty();
        let settle = is_waiting.then_some(self.settle_at);
        let moves = self.relocations.map(|_| self.moves_at);
        let looks = [self.reading.next_look(), self.arrivals.next_look(), moves];
        let next = [letter, reminder, settle].into_iter().chain(looks).flatten().min();
        if self.timer.as_ref().map(|(at, _)| *at) == next && next.is_some_and(|at| at > now) {
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            ctx.cancel(timer);
        }
        self.timer = next.map(|at| {
            let delay_ms = at.0.saturating_sub(now.0).max(1);
            (at, ctx.after(Duration::from_millis(delay_ms), Look))
        });
    }
}

impl Actor for Carrier {
    const NAME: &'static str = "althing.courier";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        self.go_on(ctx);
        Ok(())
    }

    /// What was taken shall not come again after an orderly end.
    async fn stopping(&mut self, _: &mut Context<Self>, _: StopReason) {
        let settled = std::mem::take(&mut self.settled);
        if !settled.is_empty()
            && let Err(error) = self.store.settle(settled).await
        {
            tracing::warn!(%error, "what was delivered cannot be taken down");
        }
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

    async fn handle(&mut self, Page(found): Page, ctx: &mut Context<Self>) {
        // The page may have a first letter already: whoever left it has come before that.
        self.take_posted(ctx);
        match found {
            Err(error) => {
                tracing::warn!(%error, "what is to be delivered cannot be read");
                self.reading.page_failed(ctx.now());
            }
            Ok(found) => {
                let is_known = |delivery: &Delivery| {
                    !self.taken.is_empty() && self.taken.contains(&delivery.mark())
                };
                let page = self.reading.page_came(found, is_known);
                self.put_read(page, ctx);
                if self.arrivals.is_look_on_its_way() {
                    self.known_to_look.append(&mut self.known);
                }
                for mark in self.known.drain(..) {
                    self.taken.remove(&mark);
                }
                if let Some(wanted) = self.reading.read_on(self.agenda.len()) {
                    self.read(wanted, ctx);
                }
            }
        }
        self.go_on(ctx);
    }
}

impl Handler<Left> for Carrier {
    type Reply = ();

    async fn handle(&mut self, Left(found): Left, ctx: &mut Context<Self>) {
        match found {
            Err(error) => {
                tracing::warn!(%error, "what was left before cannot be read, so letters wait");
                self.arrivals.look_failed(ctx.now());
            }
            Ok(found) => {
                let mut arrived = self.arrivals.look_came(found);
                arrived.left.retain(|delivery| !self.taken.contains(&delivery.mark()));
                // All that they have left was read, whatever pages have passed over.
                arrived.free.iter().for_each(|owner| _ = self.away.remove(owner));
                self.put_read(arrived.left, ctx);
                arrived.free.iter().for_each(|owner| self.agenda.free(owner));
                if arrived.is_too_much {
                    self.read_anew();
                }
                for mark in self.known_to_look.drain(..) {
                    self.taken.remove(&mark);
                }
            }
        }
        self.go_on(ctx);
    }
}

impl Handler<Answered> for Carrier {
    type Reply = ();

    async fn handle(&mut self, answered: Answered, ctx: &mut Context<Self>) {
        let now = ctx.now();
        for (mark, outcome) in answered.outcomes {
            match outcome {
                Outcome::Taken => {
                    if reminder_name(&mark.name).is_none() && !self.settling_failed {
                        self.settle_at = self.settle_at.min(later(now, SETTLE_LETTERS_EVERY));
                    }
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
        }
        if let Some(rest) = answered.rest {
            ctx.pipe(rest.answered(), |answered| answered);
        }
        self.go_on(ctx);
    }
}

impl Handler<SettledAll> for Carrier {
    type Reply = ();

    async fn handle(&mut self, done: SettledAll, ctx: &mut Context<Self>) {
        self.is_settling = false;
        self.settling_failed = done.outcome.is_err();
        if let Err(error) = done.outcome {
            tracing::warn!(%error, "what was delivered cannot be taken down");
            // Before what was taken since: what came again meanwhile follows on it.
            let since = std::mem::replace(&mut self.settled, done.settled);
            self.settled.extend(since);
            self.settle_at = later(ctx.now(), STORE_PAUSE);
            self.set_timer(ctx.now(), ctx);
            return;
        }
        let known = done.settled.into_iter().map(|settled| settled.mark);
        if self.reading.is_page_on_its_way() {
            self.known.extend(known);
        } else if self.arrivals.is_look_on_its_way() {
            self.known_to_look.extend(known);
        } else {
            known.for_each(|mark| _ = self.taken.remove(&mark));
        }
        self.go_on(ctx);
    }
}

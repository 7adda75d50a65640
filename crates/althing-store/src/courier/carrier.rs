//! The actor that carries: it reads what is due next, sends it, and takes down what was taken. One
//! for each node on which its courier was started.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use althing::{Actor, ActorError, Context, Handler, StopReason, TimerId, Timestamp};

use super::CourierOptions;
use super::agenda::{Agenda, Attempt};
use super::inbox::Inbox;
use super::reading::{PageWanted, Reading, STORE_PAUSE, later};
use super::sending::{Answered, Outcome, Sending};
use crate::delivery::{Delivery, Mark, Posting, Settled};
use crate::store::{Store, StoreError};

/// Pause between two beginnings of taking down, while what was taken has not become many: what is
/// taken down together touches the same pages of the store, and waits for one sync.
const SETTLE_EVERY: Duration = Duration::from_millis(250);
/// So many are taken down without waiting.
const SETTLE_MANY: usize = 8_192;
/// Pause between two times that reminders are sent, while there are many: those of a moment go
/// together.
const TOGETHER: Duration = Duration::from_millis(10);

pub(super) struct Carrier {
    store: Arc<dyn Store>,
    options: CourierOptions,
    inbox: Arc<Inbox>,
    agenda: Agenda,
    reading: Reading,
    /// What the store is still to be told.
    settled: Vec<Settled>,
    is_settling: bool,
    /// Nothing but many is taken down before.
    settle_at: Timestamp,
    /// What was taken, and may be in a page that was read before the store knew.
    taken: HashSet<Mark>,
    /// Those of them of which it knows; they are forgotten with the page that is on its way.
    known: Vec<Mark>,
    /// No reminder is sent before.
    remind_at: Timestamp,
    timer: Option<(Timestamp, TimerId)>,
}

/// Something may be due.
pub(super) struct Look;

struct Page(Result<Vec<Delivery>, StoreError>);

struct SettledAll {
    settled: Vec<Settled>,
    outcome: Result<(), StoreError>,
}

impl Carrier {
    pub(super) fn new(store: Arc<dyn Store>, options: CourierOptions, inbox: Arc<Inbox>) -> Self {
        Self {
            store,
            inbox,
            agenda: Agenda::default(),
            reading: Reading::new(options.in_memory_max),
            options,
            settled: Vec::new(),
            is_settling: false,
            settle_at: Timestamp(0),
            taken: HashSet::new(),
            known: Vec::new(),
            remind_at: Timestamp(0),
            timer: None,
        }
    }

    /// Does what can be done now, and sets the timer for what comes next.
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        let now = ctx.now();
        self.take_posted(ctx);
        if let Some(wanted) = self.reading.next_page(now, self.agenda.len()) {
            self.read(wanted, ctx);
        }
        self.send(now, ctx);
        self.settle(now, ctx);
        self.set_timer(now, ctx);
    }

    fn send(&mut self, now: Timestamp, ctx: &mut Context<Self>) {
        // Set by a clock that has stepped back since, otherwise.
        self.remind_at = self.remind_at.min(later(now, TOGETHER));
        let reminders_until = if now < self.remind_at { Timestamp(0) } else { now };
        let mut attempts = self.agenda.take(now, reminders_until, self.options.at_once_max);
        let node = ctx.node();
        attempts.retain(|Attempt { mark, .. }| {
            let is_here = node.is_home_of(&mark.owner);
            if !is_here {
                self.agenda.let_go(mark);
            }
            is_here
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
        let (postings, has_missed) = self.inbox.take();
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
        if has_missed {
            // Something of it may have been cancelled.
            self.agenda.forget_waiting();
            self.reading.missed();
        }
    }

    fn put(&mut self, delivery: Delivery, ctx: &Context<Self>) {
        if ctx.node().is_home_of(&delivery.owner) {
            self.agenda.put(delivery);
        }
    }

    fn read(&mut self, wanted: PageWanted, ctx: &mut Context<Self>) {
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
        let next = [letter, reminder, settle, self.reading.next_look()].into_iter().flatten().min();
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
        match found {
            Err(error) => {
                tracing::warn!(%error, "what is to be delivered cannot be read");
                self.reading.page_failed(ctx.now());
            }
            Ok(found) => {
                let is_known = |delivery: &Delivery| {
                    !self.taken.is_empty() && self.taken.contains(&delivery.mark())
                };
                for delivery in self.reading.page_came(found, is_known) {
                    self.put(delivery, ctx);
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

impl Handler<Answered> for Carrier {
    type Reply = ();

    async fn handle(&mut self, answered: Answered, ctx: &mut Context<Self>) {
        let now = ctx.now();
        for (mark, outcome) in answered.outcomes {
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
        if let Err(error) = done.outcome {
            tracing::warn!(%error, "what was delivered cannot be taken down");
            self.settled.extend(done.settled);
            self.settle_at = later(ctx.now(), STORE_PAUSE);
            self.set_timer(ctx.now(), ctx);
            return;
        }
        let known = done.settled.into_iter().map(|settled| settled.mark);
        if self.reading.is_page_on_its_way() {
            self.known.extend(known);
        } else {
            known.for_each(|mark| _ = self.taken.remove(&mark));
        }
        self.go_on(ctx);
    }
}

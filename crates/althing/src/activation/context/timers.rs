//! Timers of the actor whose handler runs.

use std::sync::Arc;
use std::time::Duration;

use super::Context;
use crate::actor::{Actor, Receives};
use crate::address::place::AsAnyPlace;
use crate::timer::id::TimerId;
use crate::timer::pending::Wakes;
use crate::timer::{Schedule, Timers};

impl<A: Actor> Context<A> {
    /// Sends `message` to the actor itself after `delay`, exempt from the mailbox's bound.
    ///
    /// The actor stays in memory for it: it is not unloaded for being idle. Whatever ends this life
    /// ends the timer.
    pub fn after<M>(&mut self, delay: Duration, message: M) -> TimerId
    where
        A: Receives<M>,
        M: Send + 'static,
    {
        let mut message = Some(message);
        let schedule = Schedule { delay, repeats: false, wakes: Wakes::No };
        self.start_timer(schedule, move || message.take())
    }

    /// As `after`, but the timer outlives unloading and brings the actor back when it is due. A
    /// stop, a failure and the end of the process end it.
    pub fn wake_after<M>(&mut self, delay: Duration, message: M) -> TimerId
    where
        A: Receives<M>,
        M: Send + 'static,
    {
        let mut message = Some(message);
        let schedule = Schedule { delay, repeats: false, wakes: Wakes::Yes };
        self.start_timer(schedule, move || message.take())
    }

    /// Sends clones of `message` to the actor itself each `period`, exempt from the mailbox's
    /// bound. A tick whose predecessor's handler has not ended yet is left out.
    ///
    /// Ticks do not keep the actor in memory: an actor that gets nothing else counts as idle.
    pub fn every<M>(&mut self, period: Duration, message: M) -> TimerId
    where
        A: Receives<M>,
        M: Clone + Send + 'static,
    {
        self.every_with(period, move || message.clone())
    }

    /// As `every`, with a message that is made anew each time.
    pub fn every_with<M>(
        &mut self,
        period: Duration,
        mut make: impl FnMut() -> M + Send + 'static,
    ) -> TimerId
    where
        A: Receives<M>,
        M: Send + 'static,
    {
        let schedule = Schedule { delay: period, repeats: true, wakes: Wakes::No };
        self.start_timer(schedule, move || Some(make()))
    }

    fn start_timer<M: Send + 'static>(
        &self,
        schedule: Schedule,
        message: impl FnMut() -> Option<M> + Send + 'static,
    ) -> TimerId
    where
        A: Receives<M>,
    {
        let me = self.address().place().as_any_place();
        self.timers().start::<A, M, A::Way>(&me, schedule, message)
    }

    /// Cancels a timer; returns whether it was still to fire. One whose message waits in the
    /// mailbox does not fire any more.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers().cancel(self.core.header(), timer)
    }

    fn timers(&self) -> &Arc<Timers> {
        &self.core.header().kind.node.holdings().timers
    }
}

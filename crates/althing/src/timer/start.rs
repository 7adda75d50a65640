//! Timers of actors of a certain type: what they send is packed for it.

use std::any::type_name;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::actor::{Actor, Receives};
use crate::address::actor_ref::ActorRef;
use crate::address::place::{AnyPlace, wake};
use crate::mail::dispatch::Dispatch;
use crate::mail::envelope::Envelope;
use crate::mail::mailbox::Life;
use crate::mail::reply::{ReplyTo, channel};
use crate::shield::discard;
use crate::timer::id::TimerId;
use crate::timer::pending::{Made, Make, PendingTimer, Wakes};
use crate::timer::{PERIOD_MIN, Schedule, Timers};

impl Timers {
    /// Starts a timer of the actor whose handler runs now.
    pub(crate) fn start<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
        &self,
        actor: &Arc<dyn AnyPlace>,
        schedule: Schedule,
        mut message: impl FnMut() -> Option<M> + Send + 'static,
    ) -> TimerId {
        let id = TimerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let repeats = schedule.repeats;
        let make: Make = Box::new(move || {
            let message = message().expect("a message that comes once is made once");
            if !repeats {
                let envelope = Envelope::new::<A, M, D>(message, ReplyTo::nowhere());
                return Made { envelope, ended: None };
            }
            let (reply, receiver) = channel();
            let envelope = Envelope::new::<A, M, D>(message, reply);
            Made { envelope, ended: Some(Box::new(receiver)) }
        });
        let delay = if repeats { schedule.delay.max(PERIOD_MIN) } else { schedule.delay };
        let timer = PendingTimer {
            entry: None,
            period: repeats.then_some(delay),
            wakes: schedule.wakes,
            access: D::ACCESS,
            name: type_name::<M>,
            make: Some(make),
            is_queued: false,
            last: None,
        };
        let mut inner = actor.header().mailbox.lock();
        let timers = &mut inner.extras().timers;
        // Lined up under the lock, so that a tick that is due at once finds its timer.
        let entry = self.line_up(actor, id, delay);
        timers.insert(id, PendingTimer { entry, ..timer });
        id
    }

    /// A timer that is due at once and is on no wheel.
    fn due_now<A: Actor, M: Send + 'static, D: Dispatch<A, M>>(
        &self,
        message: M,
        mut reply: ReplyTo<D::Reply>,
    ) -> (TimerId, PendingTimer) {
        let id = TimerId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let mut message = Some(message);
        let make: Make = Box::new(move || {
            let message = message.take().expect("a message that comes once is made once");
            let envelope = Envelope::new::<A, M, D>(message, reply.take());
            Made { envelope, ended: None }
        });
        let timer = PendingTimer {
            entry: None,
            period: None,
            wakes: Wakes::No,
            access: D::ACCESS,
            name: type_name::<M>,
            make: Some(make),
            is_queued: true,
            last: None,
        };
        (id, timer)
    }
}

impl<A: Actor> ActorRef<A> {
    /// Queues what a future of that `life` has come to, without regard to the bound; returns
    /// whether that life goes on. It belongs to the life as a timer's tick does: a later one does
    /// not get it.
    pub(crate) fn push_result<M: Send + 'static>(
        &self,
        life: Life,
        message: M,
        reply: ReplyTo<A::Reply>,
    ) -> bool
    where
        A: Receives<M>,
    {
        let header = self.place().header();
        let (id, timer) =
            header.kind.node.holdings().timers.due_now::<A, M, A::Way>(message, reply);
        let mut inner = header.mailbox.lock();
        if inner.has_ended() || inner.life() != life {
            // Released before dropping: the message's drop may send to us.
            drop(inner);
            discard("dropping a piped result", timer);
            return false;
        }
        let tick = Envelope::tick(id, timer.access, timer.name);
        inner.extras().timers.insert(id, timer);
        let what = inner.push_exempt(tick);
        drop(inner);
        wake(self.place(), what);
        true
    }
}

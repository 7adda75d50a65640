//! How long a sender waits, with looks in between.
//!
//! A sender in the line for room is called up when there is some; but one who has been called may
//! be slow to use it, and the line behind it would wait for nothing. So every sender looks again by
//! itself, after 50 ms and then ever less often: a handful of looks until a usual deadline.
//!
//! It sleeps by the clock of whoever polls it. One that is polled elsewhere than before sleeps anew,
//! for what is left: the runtime that it was in may have ended, or be driven by nobody.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::unconstrained;

use crate::node::env::{Env, Whereabouts};

/// The first look; each further one takes twice as long.
const FIRST_LOOK: Duration = Duration::from_millis(50);

/// What remains of a timeout.
pub(crate) struct Deadline {
    sleep: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// When the present sleep is over, in time since the node's start.
    ends: Duration,
    /// Where it was begun.
    begun: Whereabouts,
    /// Time after the present sleep.
    left: Duration,
    step: Duration,
}

/// Why a sender goes on.
pub(crate) enum Due {
    /// It looks again.
    Look,
    /// The time is over.
    Over,
}

impl Deadline {
    pub(crate) fn new(env: &Env, timeout: Duration) -> Self {
        let step = FIRST_LOOK.min(timeout);
        Self {
            sleep: env.sleep_here(step),
            ends: env.elapsed().saturating_add(step),
            begun: env.whereabouts(),
            left: timeout - step,
            step,
        }
    }

    pub(crate) fn poll(&mut self, env: &Env, cx: &mut Context<'_>) -> Poll<Due> {
        let here = env.whereabouts();
        if here != self.begun {
            self.begun = here;
            self.sleep = env.sleep_here(self.ends.saturating_sub(env.elapsed()));
        }
        // Looking at the clock is not the sender's work: it must not spend the task's budget. Who
        // awaits thousands of replies at once would be sent back by the 129th, with all others
        // woken for nothing.
        if pin!(unconstrained(self.sleep.as_mut())).poll(cx).is_pending() {
            return Poll::Pending;
        }
        if self.left.is_zero() {
            return Poll::Ready(Due::Over);
        }
        self.step = (self.step * 2).min(self.left);
        self.left -= self.step;
        self.ends = self.ends.saturating_add(self.step);
        self.sleep = env.sleep_here(self.step);
        Poll::Ready(Due::Look)
    }
}

//! Instructions about the lives of others: their ends, holds between two messages, turns that are
//! held.

use super::{Generator, Kind};
use crate::program::{DropOp, Op, Then, TurnPlan};

impl Generator {
    pub(super) fn stop_and_wait(&mut self, by: Option<usize>) -> Op {
        let polls = u8::try_from(self.random.within(2, 60)).expect("few polls");
        if self.random.once_in(4) {
            return Op::PollStopped(self.anyone(), polls);
        }
        // Waiting for each other's end is a deadlock that nobody promises to see: upwards only.
        match by {
            None => Op::StopAndWait(self.anyone()),
            // Of oneself it is ready at once.
            Some(by) => Op::StopAndWait(self.random.within(by, self.actors - 1)),
        }
    }

    /// Whoever holds an actor in one of its own handlers would wait for itself: only somebody
    /// outside does.
    pub(super) fn hold(&mut self, by: Option<usize>) -> Op {
        let ticks = self.random.pick(&[0, 1, 3, 10]);
        match by {
            Some(_) => Op::Yield,
            None if self.random.once_in(3) => {
                Op::Freeze { node: self.random.below(self.nodes), ticks }
            }
            None => Op::Seal { who: self.anyone(), ticks, departs: self.random.once_in(3) },
        }
    }

    pub(super) fn turn(&mut self) -> Op {
        let tells = self.random.once_in(2).then(|| self.anyone());
        let publishes = (self.topics > 0 && self.random.once_in(3))
            .then(|| self.random.below(self.topics.max(1)));
        let ends = [Then::Fence, Then::Stop, Then::Kill];
        let may_end = self.has(Kind::Kill) && self.random.once_in(4);
        Op::Turn(TurnPlan {
            node: self.random.below(self.nodes),
            waits: self.random.pick(&[0, 0, 1, 2]),
            commits: self.random.pick(&[0, 1, 1, 3]),
            fails: self.has(Kind::Fail) && self.random.once_in(6),
            tells,
            publishes,
            then: if may_end { self.random.pick(&ends) } else { Then::Nothing },
        })
    }

    /// A drop that ends something.
    pub(super) fn ending_drop(&mut self, topic: usize) -> DropOp {
        match self.random.below(3) {
            0 => DropOp::Stop(self.anyone()),
            1 => DropOp::Kill(self.anyone()),
            _ => DropOp::Unsubscribe { who: self.anyone(), topic },
        }
    }
}

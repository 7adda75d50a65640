//! Several instructions in a row that lead to moments which single ones seldom come to: something
//! happens to an actor while it unloads or stops, or while it is being told.

use super::Generator;
use crate::program::{DropOp, Lane, Op, Patience, ReplyPlan, Send, Way};

impl Generator {
    pub(super) fn motif(&mut self, by: Option<usize>) -> Vec<Op> {
        let to = self.anyone();
        match self.random.below(5) {
            0 => self.amid_unloading(to),
            1 => self.ticks_amid_stopping(to),
            2 => self.refused_burst(to),
            3 => self.ends_while_it_is_told(to, by),
            _ => self.told_and_ended(to, by),
        }
    }

    fn plain(to: usize, ops: Vec<Op>) -> Send {
        let (way, lane, reply) = (Way::Write, Lane::Normal, ReplyPlan::Now);
        Send { to, way, lane, gated: false, reply, ops, dropped: Vec::new() }
    }

    fn told(to: usize, ops: Vec<Op>) -> Op {
        Op::Tell(Self::plain(to, ops), Patience::Try, 1)
    }

    fn pause(&mut self) -> Op {
        let ticks = self.random.pick(&[0, 1, 2]);
        if ticks == 0 { Op::Yield } else { Op::Sleep(ticks) }
    }

    /// An actor unloads, and meanwhile it is wanted, stopped, or tied to somebody.
    fn amid_unloading(&mut self, to: usize) -> Vec<Op> {
        let last = match self.random.below(4) {
            0 => Op::Link(self.anyone()),
            1 => Op::Watch(self.anyone()),
            _ => Op::Yield,
        };
        let then = match self.random.below(5) {
            0 | 1 => Op::Activate(to),
            2 => Op::Stop(to),
            3 => Op::SpawnNamed(to),
            _ => Self::told(to, Vec::new()),
        };
        vec![Self::told(to, vec![last, Op::Passivate]), self.pause(), then]
    }

    /// An actor stops whose timers go on up to then.
    fn ticks_amid_stopping(&mut self, to: usize) -> Vec<Op> {
        let every = Op::Every { period: self.random.pick(&[0, 1]), clone_panics: false };
        vec![Self::told(to, vec![every]), Op::Sleep(2), Op::Stop(to), Op::Sleep(3)]
    }

    /// Whoever tells an actor that has ended gets messages back whose drops tell others.
    fn refused_burst(&mut self, to: usize) -> Vec<Op> {
        let other = self.anyone();
        let mut send = Self::plain(to, Vec::new());
        if !self.drops.is_empty() {
            send.dropped = vec![DropOp::Tell(other)];
        }
        let burst = Op::Tell(send, Patience::Try, 4);
        let end = if self.random.once_in(2) { Op::Stop(to) } else { Op::Kill(to) };
        let again = Op::Tell(Self::plain(other, Vec::new()), Patience::Try, 3);
        vec![burst.clone(), end, burst, again]
    }

    /// An actor ends by the first of many tells of a handler, which then blocks its thread for a
    /// moment; what it is told after its end comes back, and its drop tells somebody else.
    fn ends_while_it_is_told(&mut self, to: usize, by: Option<usize>) -> Vec<Op> {
        let teller = by.unwrap_or_else(|| self.anyone());
        let (other, third) = (self.anyone(), self.anyone());
        let mut send = Self::plain(to, vec![Op::StopSelf]);
        if !self.drops.is_empty() {
            send.dropped = vec![DropOp::Tell(other)];
        }
        let tells = Op::Tell(send, Patience::Try, 6);
        let then = Op::Tell(Self::plain(third, Vec::new()), Patience::Try, 3);
        vec![Self::told(teller, vec![tells, Op::Block, then])]
    }

    /// An actor is told by a handler, and ended by somebody else at the same time.
    fn told_and_ended(&mut self, to: usize, by: Option<usize>) -> Vec<Op> {
        let teller = by.unwrap_or_else(|| self.anyone());
        let tells = Op::Tell(Self::plain(to, Vec::new()), Patience::Try, 20);
        let end = if self.random.once_in(2) { Op::Stop(to) } else { Op::Kill(to) };
        vec![Self::told(teller, vec![tells.clone(), tells]), end]
    }
}

//! Instructions about topics.

use super::{Generator, Kind};
use crate::program::Op;

impl Generator {
    pub(super) fn topic_op(&mut self, kind: Kind, depth: usize) -> Op {
        if self.topics == 0 {
            return Op::Yield;
        }
        let topic = self.random.below(self.topics);
        let who = self.anyone();
        if kind == Kind::Subscribe {
            let ends = self.random.once_in(3);
            return if ends {
                Op::Unsubscribe { who, topic }
            } else {
                Op::Subscribe { who, topic }
            };
        }
        match kind {
            Kind::Stream => self.stream(topic),
            Kind::PublishOddly => self.publish_oddly(topic, depth),
            _ if self.random.once_in(8) => Op::Replay { topic },
            _ => {
                // Every subscriber does it: the highest number may ask nobody in a layered program.
                let ops = self.inner(depth.min(2), Some(self.actors - 1));
                Op::Publish { topic, ops, dropped: self.dropped(4) }
            }
        }
    }

    fn stream(&mut self, topic: usize) -> Op {
        if self.random.once_in(3) {
            return Op::KeepStream { topic };
        }
        Op::Stream {
            topic,
            back: self.random.pick(&[0, 1, 3, 100]),
            events: self.random.pick(&[1, 2, 6]),
        }
    }

    fn publish_oddly(&mut self, topic: usize, depth: usize) -> Op {
        if self.random.once_in(2) {
            return Op::Own { topic, events: self.random.pick(&[0, 1, 3]) };
        }
        let ops = self.inner(depth.min(1), Some(self.actors - 1));
        Op::PublishOnThreads { topic, threads: self.random.pick(&[1, 2, 3]), ops }
    }
}

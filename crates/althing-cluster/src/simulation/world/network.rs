//! The links between nodes: each way is a connection of its own.

use super::{Event, World};
use crate::link::Arrival;
use crate::router::Hop;
use crate::simulation::node::Frame;

/// How soon a node looks again at a frame that it may not handle yet.
const LOOK_AGAIN_MS: u64 = 7;

/// A connection, by the number that the receiver gave it.
#[derive(Clone, Copy)]
pub(super) struct Wire {
    connection: u64,
    /// When the last frame arrives: none overtakes another.
    arrives: u64,
}

impl World {
    /// Dials where there is no connection, and writes what is queued.
    pub(super) fn write(&mut self, me: u64) {
        let others: Vec<u64> = self.nodes[&me].out.keys().copied().collect();
        for to in others {
            if !self.is_reachable(me, to)
                || (!self.wires.contains_key(&(me, to)) && !self.dial(me, to))
            {
                continue;
            }
            loop {
                let node = self.nodes.get_mut(&me).expect("it writes");
                let Some(frames) = node.take(to) else { break };
                for frame in frames {
                    let (now, delay) = (self.now, 1 + self.draw(30));
                    let wire = self.wires.get_mut(&(me, to)).expect("dialled above");
                    wire.arrives = wire.arrives.max(now + delay);
                    let (delay, connection) = (wire.arrives - now, wire.connection);
                    self.after(delay, Event::Arrives { from: me, to, connection, frame });
                }
            }
        }
    }

    fn is_reachable(&self, from: u64, to: u64) -> bool {
        let is_over = |until: Option<&u64>| until.is_none_or(|until| *until <= self.now);
        self.nodes.contains_key(&to)
            && [from, to].iter().all(|node| is_over(self.cut_off.get(node).map(|cut| &cut.0)))
            && is_over(self.apart.get(&(from.min(to), from.max(to))))
    }

    /// Ends the connections of a node in both directions.
    pub(super) fn cut(&mut self, node: u64) {
        self.wires.retain(|(from, to), _| *from != node && *to != node);
    }

    fn dial(&mut self, me: u64, to: u64) -> bool {
        let Some(other) = self.nodes.get_mut(&to) else { return false };
        if other.router.record().member(me).is_none() || other.paused_until > self.now {
            return false;
        }
        let incoming = other.into.entry(me).or_default();
        let (connection, received) = (incoming.connect(), incoming.received());
        let out = self.nodes.get_mut(&me).and_then(|node| node.out.get_mut(&to));
        out.expect("listed by the caller").resume(received).expect("it was sent");
        self.wires.insert((me, to), Wire { connection, arrives: self.now });
        true
    }

    fn is_current(&self, from: u64, to: u64, connection: u64) -> bool {
        self.wires.get(&(from, to)).is_some_and(|wire| wire.connection == connection)
    }

    pub(super) fn arrives(&mut self, from: u64, to: u64, connection: u64, frame: Frame) {
        if !self.is_current(from, to, connection) {
            return;
        }
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&to) else { return };
        // First the view, then the membership: its sender may have joined since.
        if frame.view > node.router.record().view || !node.is_serving(now) {
            return self.arrives_later(from, to, connection, frame);
        }
        if node.router.record().member(from).is_none() {
            self.wires.remove(&(from, to));
            return;
        }
        match node.into.entry(from).or_default().arrive(connection, frame.number) {
            Arrival::Next => {
                let item = frame.item.clone();
                node.handle(Hop { node: from, view: frame.view }, frame.item);
                self.note(|| format!("{to} has of {from} {item:?}"));
            }
            Arrival::Again => {}
            // One that waited behind another comes again.
            Arrival::Wrong => return self.arrives_later(from, to, connection, frame),
        }
        let received = self.nodes[&to].into.get(&from).map_or(0, |into| into.received());
        let delay = 1 + self.draw(30);
        self.after(delay, Event::Acknowledged { from: to, to: from, connection, received });
        self.schedule(to);
    }

    fn arrives_later(&mut self, from: u64, to: u64, connection: u64, frame: Frame) {
        let wire = self.wires.get_mut(&(from, to)).expect("it is current");
        wire.arrives = wire.arrives.max(self.now + LOOK_AGAIN_MS);
        self.after(LOOK_AGAIN_MS, Event::Arrives { from, to, connection, frame });
    }

    pub(super) fn acknowledged(&mut self, from: u64, to: u64, connection: u64, received: u64) {
        if !self.is_current(to, from, connection) {
            return;
        }
        if let Some(out) = self.nodes.get_mut(&to).and_then(|node| node.out.get_mut(&from)) {
            out.acknowledge(received, received).expect("it was sent");
        }
    }
}

//! What goes wrong.

use super::{Event, FAULTS_MS, World};
use crate::simulation::node::SEATS;

#[derive(Clone, Copy, Default)]
pub(in crate::simulation) struct Faults {
    pub(in crate::simulation) joins_and_leaves: bool,
    /// Connections break.
    pub(in crate::simulation) cuts: bool,
    /// Longest pause of a node.
    pub(in crate::simulation) pauses_ms: u64,
    pub(in crate::simulation) kills: bool,
    /// Nodes lose the authority, and the others with it or not.
    pub(in crate::simulation) partitions: bool,
    /// Two nodes lose each other.
    pub(in crate::simulation) apart: bool,
    /// Candidates die, hang, and lose the store; the store is away, does what it was asked later
    /// than anybody waits for it, or does not say so.
    pub(in crate::simulation) leaders_change: bool,
    /// The store's clock jumps, so that two candidates believe that they lead.
    pub(in crate::simulation) clocks_jump: bool,
    /// Nodes leave many at once, the last ones too, or are drained and stay; actors take long to stop,
    /// and are unloaded.
    pub(in crate::simulation) upheavals: bool,
}

impl Faults {
    /// Whether a node that lives may be taken out: nobody heard of it for a lease.
    pub(super) fn may_lose(self) -> bool {
        self.kills || self.partitions || self.pauses_ms > 4_000
    }
}

/// What of a node and the authority is lost between them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Everything,
    Requests,
    Answers,
}

impl World {
    /// The leader, more often than not.
    fn some_seat(&mut self) -> usize {
        let leading = (0..SEATS).find(|seat| self.leads(*seat));
        let any = usize::try_from(self.draw(SEATS as u64)).expect("small");
        leading.filter(|_| self.chance(700)).unwrap_or(any)
    }

    fn some_node(&mut self) -> Option<u64> {
        let some: Vec<u64> = self.nodes.keys().copied().collect();
        let at = usize::try_from(self.draw(some.len() as u64)).expect("small");
        some.get(at).copied()
    }

    pub(super) fn fault(&mut self) {
        if self.now > FAULTS_MS {
            self.cut_off.clear();
            self.apart.clear();
            self.unreached.clear();
            self.store.ends_faults();
            if self.faults.upheavals {
                // Whoever is left may have been drained.
                self.join();
            }
            return;
        }
        if let Some(node) = self.some_node() {
            self.strike(node);
        }
        let delay = 200 + self.draw(4_000);
        self.after(delay, Event::Fault);
    }

    fn strike(&mut self, node: u64) {
        let faults = self.faults;
        let fault = self.draw(if faults.upheavals { 21 } else { 18 });
        self.note(|| format!("fault {fault} strikes {node}"));
        match fault {
            0..=2 if faults.cuts => self.cut(node),
            3 if faults.pauses_ms > 0 => {
                let pause = self.draw(faults.pauses_ms);
                self.nodes.get_mut(&node).expect("it is there").paused_until = self.now + pause;
            }
            4 if faults.kills => {
                // What it had written still arrives.
                self.wires.retain(|(_, to), _| *to != node);
                self.lose(node);
            }
            5 if faults.partitions => {
                let cut = [Cut::Everything, Cut::Requests, Cut::Answers];
                let cut = cut[usize::try_from(self.draw(3)).expect("small")];
                let until = self.now + self.draw(25_000);
                self.cut_off.insert(node, (until, cut));
                self.cut(node);
            }
            6 if faults.leaders_change => {
                let (seat, back) = (self.some_seat(), self.draw(15_000));
                self.note(|| format!("candidate {seat} dies"));
                self.seats[seat].dies();
                self.after(back, Event::Sits { seat });
            }
            7 | 11 if faults.leaders_change => {
                let (seat, pause) = (self.some_seat(), self.draw(12_000));
                self.note(|| format!("candidate {seat} hangs for {pause} ms"));
                self.seats[seat].paused_until = self.now + pause;
            }
            12 if faults.leaders_change => {
                let away = self.draw(8_000);
                self.note(|| format!("the store is away for {away} ms"));
                self.store.away_until = self.now + away;
            }
            13 if faults.leaders_change => {
                let (seat, away) = (self.some_seat(), self.draw(15_000));
                self.note(|| format!("candidate {seat} loses the store for {away} ms"));
                self.seats[seat].storeless_until = self.now + away;
            }
            14 if faults.clocks_jump => self.store.jumps(self.now),
            15 if faults.partitions => {
                let (seat, until) = (self.some_seat(), self.now + self.draw(25_000));
                self.unreached.insert((node, seat), until);
            }
            8 if faults.joins_and_leaves && self.nodes.len() < 5 => {
                self.join();
            }
            9 if faults.joins_and_leaves && self.nodes.len() > 3 => {
                self.nodes.get_mut(&node).expect("it is there").leaves = true;
            }
            10 if faults.apart => {
                let until = self.now + self.draw(15_000);
                if let Some(other) = self.some_node().filter(|other| *other != node) {
                    let pair = (node.min(other), node.max(other));
                    self.apart.insert(pair, until);
                    self.wires.retain(|(from, to), _| (*from.min(to), *from.max(to)) != pair);
                }
            }
            16 | 17 if faults.joins_and_leaves => self.pin(node),
            18..21 => self.upheave(node, fault),
            _ => {}
        }
    }

    fn upheave(&mut self, node: u64, fault: u64) {
        match fault {
            18 => {
                for _ in 0..self.draw(3) {
                    self.join();
                }
                let leavers = 1 + self.draw(self.nodes.len() as u64 - 1);
                self.note(|| format!("up to {leavers} leave"));
                for _ in 0..leavers {
                    let leaver = self.some_node().and_then(|some| self.nodes.get_mut(&some));
                    leaver.into_iter().for_each(|node| node.leaves = true);
                }
            }
            19 => self.nodes.get_mut(&node).expect("it is there").is_drained = true,
            _ => {
                let stops_ms = 1 + self.draw(15_000);
                self.nodes.get_mut(&node).expect("it is there").stops_ms = stops_ms;
                self.note(|| format!("actors of {node} take up to {stops_ms} ms to stop"));
            }
        }
    }

    fn join(&mut self) {
        let name = format!("node-{}", self.next_incarnation + 10);
        self.start(name);
    }

    /// Somebody has a bucket that is sent to live on a certain node.
    fn pin(&mut self, node: u64) {
        let at = usize::try_from(self.draw(self.buckets.len() as u64)).expect("small");
        let (bucket, to) = (self.buckets[at], self.some_node());
        let (Some(to), Some(node)) = (to, self.nodes.get_mut(&node)) else { return };
        node.pinned.insert(bucket, to);
        self.note(|| format!("bucket {bucket} is to live on {to}"));
    }
}

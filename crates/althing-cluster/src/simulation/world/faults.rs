//! What goes wrong.

use super::{Event, FAULTS_MS, World};

#[derive(Clone, Copy, Default)]
pub(in crate::simulation) struct Faults {
    pub(in crate::simulation) joins_and_leaves: bool,
    /// Connections break.
    pub(in crate::simulation) cuts: bool,
    /// Longest pause of a node; the authority's are half as long.
    pub(in crate::simulation) pauses_ms: u64,
    pub(in crate::simulation) kills: bool,
    /// Nodes lose the authority, and the others with it or not.
    pub(in crate::simulation) partitions: bool,
    /// Two nodes lose each other.
    pub(in crate::simulation) apart: bool,
    pub(in crate::simulation) authority_stops: bool,
}

/// What of a node and the authority is lost between them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Everything,
    Requests,
    Answers,
}

impl World {
    fn some_node(&mut self) -> Option<u64> {
        let some: Vec<u64> = self.nodes.keys().copied().collect();
        let at = usize::try_from(self.draw(some.len() as u64)).expect("small");
        some.get(at).copied()
    }

    pub(super) fn fault(&mut self) {
        if self.now > FAULTS_MS {
            self.cut_off.clear();
            self.apart.clear();
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
        let fault = self.draw(12);
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
            6 if faults.authority_stops => {
                // It comes back with what is on its disk.
                self.authority = None;
                self.authority_paused_until = self.now + self.draw(15_000);
            }
            7 if faults.pauses_ms > 0 => {
                self.authority_paused_until = self.now + self.draw(faults.pauses_ms / 2);
            }
            8 if faults.joins_and_leaves && self.nodes.len() < 5 => {
                let name = format!("node-{}", self.next_incarnation + 10);
                self.start(name);
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
            _ => {}
        }
    }
}

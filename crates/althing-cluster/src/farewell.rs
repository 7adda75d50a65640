//! When a node that leaves may go: once nobody has anything on the way to it that it would have to
//! pass on.
//!
//! A node that owns no bucket any more says so to every other one. Each handles that only once it
//! knows the record by which nothing is sent there any more, and answers behind all that it had
//! sent before. A step function.

use std::collections::BTreeSet;

use crate::record::Record;

/// Whom a node that leaves waits for.
#[derive(Debug, Default)]
pub(crate) struct Farewell {
    waits_for: Option<BTreeSet<u64>>,
}

impl Farewell {
    /// Whom to tell that this node is about to leave; nobody a second time.
    pub(crate) fn begin(&mut self, me: u64, record: &Record) -> Vec<u64> {
        if self.waits_for.is_some() {
            return Vec::new();
        }
        let others = record.members.iter().map(|member| member.incarnation);
        let others: BTreeSet<u64> = others.filter(|other| *other != me).collect();
        let told = others.iter().copied().collect();
        self.waits_for = Some(others);
        told
    }

    /// That node has sent the last.
    pub(crate) fn closed(&mut self, by: u64) {
        if let Some(others) = &mut self.waits_for {
            others.remove(&by);
        }
    }

    /// Whether everybody has answered who is still a member.
    pub(crate) fn is_over(&self, record: &Record) -> bool {
        let is_member = |who: &u64| record.member(*who).is_some();
        self.waits_for.as_ref().is_some_and(|others| !others.iter().any(is_member))
    }
}

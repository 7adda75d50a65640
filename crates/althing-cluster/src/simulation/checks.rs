//! What must hold in every run.

use std::collections::{BTreeMap, BTreeSet};

use crate::bucket::pool_in;
use crate::record::Holding;

/// A message of a sender to a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sent {
    /// A life of a node.
    pub(super) from: u64,
    pub(super) bucket: u32,
    pub(super) number: u64,
}

/// Takes down what is sent and what runs, and panics at the first broken promise.
#[derive(Default)]
pub(super) struct Checks {
    sent: BTreeSet<Sent>,
    ran: BTreeSet<Sent>,
    /// The last message of each sender that ran.
    last: BTreeMap<(u64, u32), u64>,
    /// The latest epoch of each bucket, and who ran in it.
    owners: BTreeMap<u32, (u64, u64)>,
    /// Its sender was told that no node had its labels.
    refused: BTreeSet<Sent>,
    /// In which epoch a bucket that asks for a label got its first owner.
    begun: BTreeMap<u32, u64>,
    /// Buckets of which the last node with the label has gone, with what was on the way to it.
    left_alone: BTreeSet<u32>,
    /// Sent after all faults.
    last_words: BTreeSet<Sent>,
}

impl Checks {
    pub(super) fn sends(&mut self, sent: Sent) {
        self.sent.insert(sent);
    }

    pub(super) fn sends_last(&mut self, sent: Sent) {
        self.sends(sent);
        self.last_words.insert(sent);
    }

    pub(super) fn refuses(&mut self, refused: &mut Vec<Sent>) {
        for sent in refused.drain(..) {
            assert!(!self.ran.contains(&sent), "{sent:?} was refused, and ran");
            self.refused.insert(sent);
        }
    }

    /// That is so by a record.
    pub(super) fn holds(&mut self, bucket: u32, holding: Holding) {
        let is_owned = holding.owner.is_some();
        match self.begun.get(&bucket) {
            _ if pool_in(bucket).is_none() => {}
            None if is_owned => _ = self.begun.insert(bucket, holding.lost_before),
            Some(begun) if !is_owned || holding.lost_before > *begun => {
                self.left_alone.insert(bucket);
            }
            _ => {}
        }
    }

    pub(super) fn runs(&mut self, sent: Sent, node: u64, epoch: u64) {
        assert!(self.sent.contains(&sent), "{sent:?} was never sent");
        assert!(self.ran.insert(sent), "{sent:?} ran twice");
        assert!(!self.refused.contains(&sent), "{sent:?} ran, and was refused");
        let last = self.last.entry((sent.from, sent.bucket)).or_default();
        assert!(sent.number > *last, "{sent:?} was overtaken by {last}");
        *last = sent.number;
        self.lives(sent.bucket, node, epoch);
    }

    fn lives(&mut self, bucket: u32, node: u64, epoch: u64) {
        let (latest, owner) = self.owners.entry(bucket).or_insert((epoch, node));
        assert!(epoch >= *latest, "bucket {bucket}: epoch {epoch} on {node} after {latest}");
        if epoch > *latest {
            (*latest, *owner) = (epoch, node);
        }
        assert_eq!(*owner, node, "bucket {bucket} has two owners in epoch {epoch}");
    }

    /// Whether nobody had to run it, for want of a node with its label.
    fn may_miss(&self, sent: &Sent) -> bool {
        self.refused.contains(sent) || self.left_alone.contains(&sent.bucket)
    }

    /// Where no node was lost, nothing is.
    pub(super) fn all_ran(&self) {
        let lost = self.sent.difference(&self.ran).filter(|sent| !self.may_miss(sent));
        let lost: Vec<_> = lost.collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
    }

    /// After all faults every node reaches every bucket.
    pub(super) fn last_words_ran(&self) {
        assert!(!self.last_words.is_empty(), "nobody was left");
        let stuck = self.last_words.difference(&self.ran);
        let stuck: Vec<_> = stuck.filter(|sent| !self.may_miss(sent)).collect();
        assert!(stuck.is_empty(), "stuck at the end: {stuck:?}");
    }

    pub(super) fn count(&self) -> usize {
        self.ran.len()
    }
}

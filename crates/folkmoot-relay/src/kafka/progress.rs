//! How far one partition is published, a value: nothing here waits or asks.
//!
//! What was published and is not known to be committed may come again, from this process's own
//! connection or after another one had the partition for a while; it is recognised by its place and
//! a hash of its content. The content too: a topic that was made anew has the same places again.

use std::collections::BTreeMap;

use folkmoot_protocol::rpc::RpcError;

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Records that are published, by their offsets.
    published: BTreeMap<i64, Published>,
    /// The place of the next record; `None`: none has passed since the partition was assigned.
    next: Option<i64>,
    /// The place whose commit was asked for last.
    asked: Option<i64>,
    /// The last place that is known to be committed since the partition was assigned.
    committed: Option<i64>,
    /// Whether the partition is assigned to this process.
    is_ours: bool,
}

/// A record that is published, as far as it can be.
#[derive(Debug)]
struct Published {
    /// Of its content.
    hash: u64,
    /// Why some of it, or all, was refused, until it is set aside with that.
    refused: Option<RpcError>,
}

impl Progress {
    /// The partition is assigned to this process, perhaps again.
    pub(super) fn begin(&mut self) {
        (self.next, self.asked, self.committed) = (None, None, None);
        self.is_ours = true;
    }

    /// The partition is somebody else's: to commit a place of it now would take theirs back.
    pub(super) fn end(&mut self) {
        self.is_ours = false;
    }

    /// What came of this record; `None`: it is not published.
    pub(super) fn outcome(&self, offset: i64, hash: u64) -> Option<Result<(), RpcError>> {
        let known = self.published.get(&offset).filter(|known| known.hash == hash)?;
        Some(known.refused.clone().map_or(Ok(()), Err))
    }

    /// This came of the record, which need not be tried again.
    pub(super) fn is_out(&mut self, offset: i64, hash: u64, outcome: &Result<(), RpcError>) {
        let refused = outcome.as_ref().err().cloned();
        self.published.insert(offset, Published { hash, refused });
    }

    /// All before the record have passed, and now it has: if it was refused, it is set aside.
    pub(super) fn pass(&mut self, offset: i64) {
        if let Some(known) = self.published.get_mut(&offset) {
            known.refused = None;
        }
        self.next = Some(offset + 1);
    }

    /// The place of the next record, as far as it is known.
    pub(super) fn next(&self) -> Option<i64> {
        self.next.filter(|_| self.is_ours)
    }

    /// The place to commit, unless that was asked for.
    pub(super) fn ask_commit(&mut self) -> Option<i64> {
        let next = self.next().filter(|next| self.asked != Some(*next))?;
        self.asked = Some(next);
        Some(next)
    }

    /// The place to commit, unless that is known to be done, whatever was asked for.
    pub(super) fn not_known_committed(&mut self) -> Option<i64> {
        let next = self.next().filter(|next| self.committed != Some(*next))?;
        self.asked = Some(next);
        Some(next)
    }

    /// What is before this place does not come again.
    pub(super) fn committed(&mut self, place: i64) {
        self.committed = Some(place);
        self.published = self.published.split_off(&place);
    }

    /// A commit came to nothing; it is asked for again.
    pub(super) fn not_committed(&mut self) {
        self.asked = None;
    }
}

#[cfg(test)]
mod tests {
    use folkmoot_protocol::ErrorCode;

    use super::*;

    fn publish(progress: &mut Progress, offset: i64) {
        progress.is_out(offset, 1, &Ok(()));
        progress.pass(offset);
    }

    #[test]
    fn what_is_published_and_not_set_aside_yet_is_known_and_not_committed() {
        let mut progress = Progress::default();
        progress.begin();
        let refused = Err(RpcError::from(ErrorCode::UnknownChannel));
        publish(&mut progress, 5);
        progress.is_out(6, 1, &refused);
        progress.is_out(7, 1, &Ok(()));
        assert_eq!(progress.ask_commit(), Some(6));
        // The partition is given away, and comes back.
        progress.end();
        progress.committed(6);
        progress.begin();
        assert_eq!(progress.outcome(6, 1), Some(refused));
        assert_eq!(progress.outcome(6, 2), None, "another record at the same place");
        assert_eq!(progress.outcome(7, 1), Some(Ok(())));
        assert_eq!(progress.outcome(8, 1), None);
        progress.pass(6);
        assert_eq!(progress.outcome(6, 1), Some(Ok(())), "it is set aside once");
    }

    #[test]
    fn a_record_that_passed_is_known_until_its_place_is_committed() {
        let mut progress = Progress::default();
        progress.begin();
        assert_eq!(progress.ask_commit(), None);
        for offset in 5..8 {
            publish(&mut progress, offset);
        }
        assert_eq!(progress.ask_commit(), Some(8));
        assert_eq!(progress.ask_commit(), None, "it was asked for");
        progress.not_committed();
        assert_eq!(progress.ask_commit(), Some(8));
        // The connection is lost before anybody says that it was committed.
        progress.begin();
        let has = |progress: &Progress, offset| progress.outcome(offset, 1).is_some();
        assert!(has(&progress, 5) && has(&progress, 7));
        progress.committed(7);
        assert!(!has(&progress, 6) && has(&progress, 7));
    }

    #[test]
    fn a_place_whose_commit_was_asked_for_is_asked_for_again_until_it_is_known() {
        let mut progress = Progress::default();
        progress.begin();
        assert_eq!(progress.not_known_committed(), None);
        progress.pass(1);
        assert_eq!(progress.ask_commit(), Some(2));
        assert_eq!(progress.not_known_committed(), Some(2));
        progress.committed(2);
        assert_eq!(progress.not_known_committed(), None);
        progress.pass(2);
        assert_eq!(progress.not_known_committed(), Some(3));
        // What another process has committed meanwhile is not ours.
        progress.begin();
        assert_eq!(progress.not_known_committed(), None);
    }

    #[test]
    fn nothing_of_a_partition_that_was_given_away_is_committed() {
        let mut progress = Progress::default();
        progress.begin();
        progress.pass(1);
        progress.end();
        progress.pass(2);
        assert_eq!(progress.ask_commit(), None);
        progress.begin();
        assert_eq!(progress.ask_commit(), None, "another process may be further");
    }
}

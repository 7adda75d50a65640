//! How far one partition is published, a value: nothing here waits or asks.
//!
//! What was published and is not known to be committed may come again, from this process's own
//! connection or after another one had the partition for a while; it is recognised by its place and
//! a hash of its content. The content too: a topic that was made anew has the same places again.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Hashes of records that are published or set aside, by their offsets.
    passed: BTreeMap<i64, u64>,
    /// The place of the next record; `None`: none has passed since the partition was assigned.
    next: Option<i64>,
    /// The place whose commit was asked for last.
    asked: Option<i64>,
    /// The last place that is known to be committed since the partition was assigned.
    committed: Option<i64>,
    /// Whether the partition is assigned to this process.
    is_ours: bool,
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

    /// Whether this record has passed already.
    pub(super) fn has(&self, offset: i64, hash: u64) -> bool {
        self.passed.get(&offset) == Some(&hash)
    }

    /// All before the record have passed, and now it has.
    pub(super) fn pass(&mut self, offset: i64, hash: u64) {
        self.passed.insert(offset, hash);
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
        self.passed = self.passed.split_off(&place);
    }

    /// A commit came to nothing; it is asked for again.
    pub(super) fn not_committed(&mut self) {
        self.asked = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_passed_is_known_until_its_place_is_committed() {
        let mut progress = Progress::default();
        progress.begin();
        assert_eq!(progress.ask_commit(), None);
        for offset in 5..8 {
            progress.pass(offset, 1);
        }
        assert_eq!(progress.ask_commit(), Some(8));
        assert_eq!(progress.ask_commit(), None, "it was asked for");
        progress.not_committed();
        assert_eq!(progress.ask_commit(), Some(8));
        // The connection is lost before anybody says that it was committed.
        progress.begin();
        assert!(progress.has(5, 1) && progress.has(7, 1));
        assert!(!progress.has(7, 2), "another record at the same place");
        progress.committed(7);
        assert!(!progress.has(6, 1) && progress.has(7, 1));
    }

    #[test]
    fn a_place_whose_commit_was_asked_for_is_asked_for_again_until_it_is_known() {
        let mut progress = Progress::default();
        progress.begin();
        assert_eq!(progress.not_known_committed(), None);
        progress.pass(1, 1);
        assert_eq!(progress.ask_commit(), Some(2));
        assert_eq!(progress.not_known_committed(), Some(2));
        progress.committed(2);
        assert_eq!(progress.not_known_committed(), None);
        progress.pass(2, 1);
        assert_eq!(progress.not_known_committed(), Some(3));
        // What another process has committed meanwhile is not ours.
        progress.begin();
        assert_eq!(progress.not_known_committed(), None);
    }

    #[test]
    fn nothing_of_a_partition_that_was_given_away_is_committed() {
        let mut progress = Progress::default();
        progress.begin();
        progress.pass(1, 1);
        progress.end();
        progress.pass(2, 1);
        assert_eq!(progress.ask_commit(), None);
        progress.begin();
        assert_eq!(progress.ask_commit(), None, "another process may be further");
    }
}

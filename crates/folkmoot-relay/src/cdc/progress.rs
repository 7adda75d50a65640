//! How far one slot is read and published, in places of the database's log.

use super::pgoutput::{Lsn, Unreadable};

/// A row's place: where its transaction commits, and which of the transaction's rows it is, from 1.
pub(super) type Place = (Lsn, u64);

/// `done` and `partial` move only once rows are published, so that nothing is lost and nothing comes
/// twice when a connection ends in the middle.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// All transactions up to here are published.
    done: Lsn,
    /// All transactions up to here are read.
    read_to: Lsn,
    /// The transaction that is read: where it commits, and how many of its rows were read.
    now: Option<Place>,
    /// The last row that was published: a connection may be lost in the middle of a transaction.
    partial: Option<Place>,
}

impl Progress {
    /// All up to `done` was published, be it by an earlier process.
    pub(super) fn from(done: Lsn) -> Self {
        Self { done, read_to: done, ..Self::default() }
    }

    pub(super) fn done(&self) -> Lsn {
        self.done
    }

    /// All up to there was published, by whichever relay.
    pub(super) fn is_out_to(&mut self, confirmed: Lsn) {
        self.done = self.done.max(confirmed);
    }

    /// The connection has ended: the next one begins with the first transaction that is not
    /// published whole, whatever was read of it and of those after it.
    pub(super) fn begin_anew(&mut self) {
        (self.now, self.read_to) = (None, self.done);
    }

    /// A transaction begins.
    pub(super) fn begin(&mut self, commit: Lsn) {
        self.now = Some((commit, 0));
    }

    /// The transaction is read; the log goes on at `end`.
    pub(super) fn commit(&mut self, end: Lsn) {
        self.read_to = self.read_to.max(end);
        self.now = None;
    }

    /// The place of the row that comes now. `Ok(None)`: it was published already, before the
    /// connection was lost.
    ///
    /// # Errors
    /// If it is in no transaction.
    pub(super) fn next_row(&mut self) -> Result<Option<Place>, Unreadable> {
        let (commit, read) = self.now.as_mut().ok_or(Unreadable)?;
        *read += 1;
        let place = (*commit, *read);
        let is_partial =
            self.partial.is_some_and(|(of, published)| of == place.0 && place.1 <= published);
        Ok((place.0 >= self.done && !is_partial).then_some(place))
    }

    /// The row at this place is published, and all before it.
    pub(super) fn row_is_out(&mut self, place: Place) {
        self.partial = Some(place);
    }

    /// All rows that were read are published.
    pub(super) fn all_is_out(&mut self) {
        // Also while the next transaction is being read: all rows of the ones before it are out.
        self.done = self.done.max(self.read_to);
    }

    /// Nothing for us is in the log before `end`. In the middle of a transaction, that says nothing.
    pub(super) fn pass(&mut self, end: Lsn) {
        if self.is_between() {
            self.read_to = self.read_to.max(end);
        }
    }

    /// Whether no transaction is being read.
    pub(super) fn is_between(&self) -> bool {
        self.now.is_none()
    }

    /// Whether some rows of the transaction that is read are published: nobody else would know which.
    pub(super) fn is_amid(&self) -> bool {
        self.partial.zip(self.now).is_some_and(|((of, _), (now, _))| of == now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a transaction of these rows; returns the ones that are to be published.
    fn read(progress: &mut Progress, commit: Lsn, rows: u64) -> Vec<Place> {
        progress.begin(commit);
        let places = (0..rows).filter_map(|_| progress.next_row().expect("it has begun")).collect();
        progress.commit(commit + 1);
        places
    }

    #[test]
    fn what_was_read_and_not_published_comes_again() {
        let mut progress = Progress::from(10);
        assert_eq!(read(&mut progress, 20, 2), [(20, 1), (20, 2)]);
        progress.row_is_out((20, 2));
        progress.all_is_out();
        assert_eq!(read(&mut progress, 30, 2), [(30, 1), (30, 2)]);
        progress.row_is_out((30, 1));
        assert_eq!(read(&mut progress, 40, 1), [(40, 1)]);
        // The connection ends before the rest is published.
        progress.begin_anew();
        progress.all_is_out();
        assert_eq!(progress.done(), 21);
        assert_eq!(read(&mut progress, 30, 2), [(30, 2)]);
        assert_eq!(read(&mut progress, 40, 1), [(40, 1)]);
    }

    #[test]
    fn what_another_relay_has_published_does_not_come_again() {
        let mut progress = Progress::from(10);
        progress.is_out_to(30);
        progress.begin_anew();
        assert_eq!(read(&mut progress, 20, 1), []);
        assert_eq!(read(&mut progress, 30, 1), [(30, 1)]);
        progress.is_out_to(5);
        assert_eq!(progress.done(), 30);
    }

    #[test]
    fn what_was_published_comes_once() {
        let mut progress = Progress::from(0);
        assert_eq!(read(&mut progress, 20, 1), [(20, 1)]);
        progress.row_is_out((20, 1));
        // The connection ends before the transaction counts as published.
        progress.begin_anew();
        assert_eq!(read(&mut progress, 20, 1), []);
        progress.all_is_out();
        progress.begin_anew();
        assert_eq!(read(&mut progress, 20, 1), []);
    }

    #[test]
    fn a_place_in_the_middle_of_a_transaction_is_not_done() {
        let mut progress = Progress::from(0);
        progress.begin(20);
        progress.pass(30);
        progress.all_is_out();
        assert_eq!(progress.done(), 0);
        progress.commit(21);
        progress.pass(30);
        progress.all_is_out();
        assert_eq!(progress.done(), 30);
    }

    #[test]
    fn a_row_outside_of_a_transaction_is_refused() {
        assert!(Progress::default().next_row().is_err());
    }
}

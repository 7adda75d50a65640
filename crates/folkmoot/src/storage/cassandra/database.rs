//! The index and the log, while a thread has them; and what becomes of an entry of which nobody
//! knows.
//!
//! An entry that may be in the log and is not in the index is kept until the log says what became
//! of it: then it is applied, or forgotten, before anything else is done. Servers that stay away
//! for [`AWAY_MAX`] are given up: whoever waits is refused, and so is whoever comes, until they are
//! back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use parking_lot::{FairMutex, FairMutexGuard};
use tokio::sync::watch;

use super::address::CassandraAddress;
use super::entry::Entry;
use super::index::Place;
use super::log::{AWAY_MAX, Log, Settled};
use super::names::Name;
use crate::storage::ids::Lsn;
use crate::storage::lost::Lost;
use crate::storage::sql::{Connection, SqlError, Transaction};
use crate::storage::sqlite::mover::applied_lsn;

/// What this server writes to.
pub(super) struct Database {
    address: CassandraAddress,
    state: FairMutex<State>,
    /// Whether another server writes now.
    lost: watch::Sender<Option<Lost>>,
}

/// Index and log.
pub(super) struct State {
    index: Connection,
    log: Log,
    place: Place,
    /// The last record that is in the index.
    applied: Lsn,
    /// An entry that may be in the log and is not in the index.
    behind: Option<(Place, Vec<u8>)>,
    away_since: Option<Instant>,
    is_fenced: bool,
}

/// What a transaction did.
pub(super) struct Done<T> {
    pub(super) answer: T,
    /// `None`: nothing was changed.
    pub(super) entry: Option<Entry>,
    /// The last record that is in the index then.
    pub(super) applied: Lsn,
}

impl Database {
    pub(super) fn new(
        address: CassandraAddress,
        (index, place): (Connection, Place),
        log: Log,
        lost: watch::Sender<Option<Lost>>,
    ) -> Result<Self, SqlError> {
        let applied = applied_lsn(&index)?;
        let (behind, away_since, is_fenced) = (None, None, false);
        let state = State { index, log, place, applied, behind, away_since, is_fenced };
        Ok(Self { address, state: FairMutex::new(state), lost })
    }

    /// Index and log, for one thread at a time, in the order in which they ask.
    pub(super) fn lock(&self) -> FairMutexGuard<'_, State> {
        self.state.lock()
    }

    /// Runs one transaction, told the last record before it; `Ok` once it is in the log.
    pub(super) fn transact<T>(
        &self,
        state: &mut State,
        work: impl FnOnce(&Transaction<'_>, Lsn) -> Result<Done<T>, SqlError>,
    ) -> Result<T, SqlError> {
        self.reach(state)?;
        let (began, until) = (Instant::now(), state.deadline());
        let ran = catch_unwind(AssertUnwindSafe(|| state.run(until, work)));
        let ran = ran.unwrap_or_else(|_| {
            Err(SqlError::Refused("a change failed by a bug of the server".to_owned()))
        });
        self.heard(state, began, ran)
    }

    /// Finds out what became of an entry that may be in the log.
    pub(super) fn reach(&self, state: &mut State) -> Result<(), SqlError> {
        if state.is_fenced {
            return Err(SqlError::Fenced);
        }
        let (began, until) = (Instant::now(), state.deadline());
        let settled = state.settle(until);
        self.heard(state, began, settled)
    }

    /// Whether something can be written: nothing is in doubt, and the servers say that we are the
    /// writer.
    pub(super) fn probe(&self, state: &mut State) -> Result<(), SqlError> {
        self.reach(state)?;
        let began = Instant::now();
        let looked = state.look();
        self.heard(state, began, looked)
    }

    /// Whether we still are the writer; asked while nothing is written.
    pub(super) fn look(&self) {
        let mut state = self.state.lock();
        if !state.is_fenced {
            let (began, looked) = (Instant::now(), state.look());
            let _ = self.heard(&mut state, began, looked);
        }
    }

    fn heard<T>(
        &self,
        state: &mut State,
        began: Instant,
        heard: Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let address = &self.address;
        match &heard {
            Err(SqlError::Away(why)) if state.away_since.is_none() => {
                tracing::warn!(%address, why, "Cassandra cannot be used");
                state.away_since = Some(began);
            }
            Err(SqlError::Fenced) if !state.is_fenced => {
                tracing::error!(%address, "another server has taken this over: this one stops");
                state.is_fenced = true;
                self.lost.send_replace(Some(Lost::TakenOver));
            }
            _ => {}
        }
        heard
    }
}

impl State {
    /// The last record that is in the index.
    pub(super) fn applied(&self) -> Lsn {
        self.applied
    }

    /// Bytes of all entries up to now.
    pub(super) fn log_bytes(&self) -> u64 {
        self.place.bytes
    }

    /// Until when whoever asks now may wait: whoever comes while the servers have been away for
    /// long is told at once.
    fn deadline(&self) -> Instant {
        let now = Instant::now();
        self.away_since.map_or(now + AWAY_MAX, |since| now.max(since + AWAY_MAX))
    }

    /// Notes that the servers have answered.
    fn answered(&mut self) {
        if self.away_since.take().is_some() {
            tracing::info!("Cassandra is back");
        }
    }

    fn look(&mut self) -> Result<(), SqlError> {
        self.log.look()?;
        self.answered();
        Ok(())
    }

    fn run<T>(
        &mut self,
        until: Instant,
        work: impl FnOnce(&Transaction<'_>, Lsn) -> Result<Done<T>, SqlError>,
    ) -> Result<T, SqlError> {
        let transaction = self.index.begin()?;
        let Done { answer, entry, applied } = work(&transaction, self.applied)?;
        let Some(entry) = entry else { return Ok(answer) };
        let data = entry.encode()?;
        let place = self.place.next(Name::draw(), &data);
        place.note(&transaction)?;
        let appended = self.log.append(place.name, &data, until);
        if appended.is_ok() || self.log.is_in_doubt() {
            self.behind = Some((place, data));
        }
        appended?;
        transaction.commit().map_err(|error| {
            SqlError::Away(format!("it is in Cassandra, and its index takes no more: {error}"))
        })?;
        (self.place, self.applied, self.behind) = (place, applied, None);
        self.answered();
        Ok(answer)
    }

    fn settle(&mut self, until: Instant) -> Result<(), SqlError> {
        if self.log.is_in_doubt() {
            let settled = self.log.settle(until)?;
            self.answered();
            if settled == Some(Settled::NotWritten) {
                self.behind = None;
            }
        }
        let Some((place, data)) = &self.behind else { return Ok(()) };
        Entry::decode(data)?.apply(&self.index, *place)?;
        (self.place, self.behind) = (*place, None);
        self.applied = applied_lsn(&self.index)?;
        Ok(())
    }
}

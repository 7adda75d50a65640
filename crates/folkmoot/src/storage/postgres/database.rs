//! The one session that writes, and what becomes of a transaction whose end was not heard.
//!
//! Every transaction is counted in the database. A session that breaks in the middle of a commit is
//! replaced, and the count says whether the transaction is in; until that is known, nothing else is
//! written and nobody is answered. A database that stays away for [`AWAY_MAX`] is given up: whoever
//! waits is refused, and so is whoever comes, until it is back. One that comes back with a lower
//! count has lost what was acknowledged: nothing more is written, for offsets would come again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use parking_lot::{FairMutex, FairMutexGuard};
use tokio::sync::watch;

use super::claim::{Claim, Claimed, Standing};
use crate::storage::ids::Lsn;
use crate::storage::lost::Lost;
use crate::storage::sql::{Connection, SqlError, Transaction};

/// How long writes wait for a database that is away: a restart of it, or the change to its standby.
const AWAY_MAX: Duration = Duration::from_secs(10);
const AWAY_PAUSE: Duration = Duration::from_millis(100);
/// So long it is tried again at least, also after an answer that did not come in all that time: a
/// session that was lost has to end first.
const REACH_MIN: Duration = Duration::from_secs(5);

/// The database that this server writes to.
pub(crate) struct Database {
    claim: Claim,
    state: FairMutex<State>,
    /// Whether nothing more will be written, and why.
    lost: watch::Sender<Option<Lost>>,
}

/// The session, while a thread has it.
pub(crate) struct State {
    connection: Option<Connection>,
    /// Where the database stands, as far as we have heard.
    pub(crate) standing: Standing,
    /// Until when whoever waits may wait, while the database is away.
    away_until: Option<Instant>,
    lost: Option<Lost>,
}

impl Database {
    pub(crate) fn new(claimed: Claimed, lost: watch::Sender<Option<Lost>>) -> Self {
        let Claimed { claim, connection, standing, .. } = claimed;
        let connection = Some(connection);
        let state = State { connection, standing, away_until: None, lost: None };
        Self { claim, state: FairMutex::new(state), lost }
    }

    /// Whether other nodes write beside this one.
    pub(super) fn is_shared(&self) -> bool {
        self.claim.is_shared()
    }

    /// The session, for one thread at a time, in the order in which they ask.
    pub(crate) fn lock(&self) -> FairMutexGuard<'_, State> {
        self.state.lock()
    }

    /// Runs one transaction, told the last record before it; `Ok` once it is durable. If the
    /// session breaks and the transaction turns out not to be in, the error is [`SqlError::Away`]
    /// and the session is a new one, unless [`State::is_away`].
    pub(crate) fn transact<T>(
        &self,
        state: &mut State,
        work: impl FnOnce(&Transaction<'_>, Lsn) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let began = Instant::now();
        self.reach(state, began)?;
        let connection = state.connection.take().ok_or_else(not_connected)?;
        let applied = state.standing.applied;
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let transaction = connection.begin()?;
            let applied = self.claim.enter(&transaction)?.unwrap_or(applied);
            let done = work(&transaction, applied)?;
            self.claim.count(&transaction)?;
            Ok((done, transaction.commit()))
        }));
        let is_broken = connection.is_taken_back();
        state.connection = Some(connection).filter(|_| !is_broken);
        match ran {
            Ok(Ok((done, Ok(())))) => {
                state.standing.batch += 1;
                Ok(done)
            }
            Ok(Ok((done, Err(SqlError::Away(reason))))) => {
                // It may be in, and this must be known before anything else is done.
                match self.reach(state, began)? {
                    Found::Transaction => Ok(done),
                    Found::Nothing => Err(SqlError::Away(reason)),
                }
            }
            Ok(Err(SqlError::Away(reason))) => {
                self.reach(state, began)?;
                Err(SqlError::Away(reason))
            }
            Ok(Err(error) | Ok((_, Err(error)))) => Err(self.note(state, error)),
            Err(_) => Err(SqlError::Parameter("a change failed by a bug of the server".to_owned())),
        }
    }

    /// Connects if need be, for as long as a database may be away, to which something was said at
    /// `began`. Says what has become of a transaction whose end was not heard.
    fn reach(&self, state: &mut State, began: Instant) -> Result<Found, SqlError> {
        if let Some(lost) = state.lost {
            return Err(lost.into());
        }
        if state.connection.is_some() {
            return Ok(Found::Nothing);
        }
        let is_news = state.away_until.is_none();
        let until = (began + AWAY_MAX).max(Instant::now() + REACH_MIN);
        let until = *state.away_until.get_or_insert(until);
        if is_news {
            tracing::warn!(address = %self.claim.address(), "the session with PostgreSQL was lost");
        }
        loop {
            match self.claim.connect_again(state.standing) {
                Ok((connection, standing)) => {
                    tracing::info!(address = %self.claim.address(), "PostgreSQL is back");
                    let found = match standing.batch > state.standing.batch {
                        true => Found::Transaction,
                        false => Found::Nothing,
                    };
                    (state.connection, state.standing) = (Some(connection), standing);
                    state.away_until = None;
                    return Ok(found);
                }
                Err(error) if Lost::of(&error).is_some() => return Err(self.note(state, error)),
                Err(error) if Instant::now() > until => {
                    return Err(match error {
                        SqlError::Away(_) => error,
                        error => SqlError::Away(format!("PostgreSQL: {error}")),
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "PostgreSQL is away; trying again");
                    std::thread::sleep(AWAY_PAUSE);
                }
            }
        }
    }

    /// Notes an error after which nothing more is written.
    fn note(&self, state: &mut State, error: SqlError) -> SqlError {
        if let (Some(lost), None) = (Lost::of(&error), state.lost) {
            tracing::error!(address = %self.claim.address(), %error, "this server writes no more");
            state.lost = Some(lost);
            self.lost.send_replace(Some(lost));
        }
        error
    }
}

impl State {
    /// Whether there is no session.
    pub(crate) fn is_away(&self) -> bool {
        self.connection.is_none()
    }
}

/// What became of a transaction whose end was not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is in the database.
    Transaction,
    /// It is not, or there was none.
    Nothing,
}

fn not_connected() -> SqlError {
    SqlError::Away("PostgreSQL: there is no session".to_owned())
}

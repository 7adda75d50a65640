//! The one session that writes, and what becomes of a transaction whose end was not heard.
//!
//! Every transaction is counted in the database. A session that breaks in the middle of a commit is
//! replaced, and the count says whether the transaction is in; until that is known, nothing else is
//! written and nobody is answered. A database that stays away for [`AWAY_MAX`] is given up: whoever
//! waits is refused, and so is whoever comes, until it is back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use parking_lot::{FairMutex, FairMutexGuard};

use super::claim::{Claim, Claimed, Standing};
use crate::storage::ids::Lsn;
use crate::storage::sql::{Connection, SqlError, Transaction};

/// How long writes wait for a database that is away: a restart of it, or the change to its standby.
const AWAY_MAX: Duration = Duration::from_secs(10);
const AWAY_PAUSE: Duration = Duration::from_millis(100);

/// The database that this server writes to.
pub(crate) struct Database {
    claim: Claim,
    state: FairMutex<State>,
}

/// The session, while a thread has it.
pub(crate) struct State {
    connection: Option<Connection>,
    /// Where the database stands, as far as we have heard.
    pub(crate) standing: Standing,
    away_since: Option<Instant>,
    is_fenced: bool,
}

impl Database {
    pub(crate) fn new(claimed: Claimed) -> Self {
        let Claimed { claim, connection, standing, .. } = claimed;
        let connection = Some(connection);
        let state = State { connection, standing, away_since: None, is_fenced: false };
        Self { claim, state: FairMutex::new(state) }
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
        self.reach(state)?;
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
                match self.reach(state)? {
                    Found::Transaction => Ok(done),
                    Found::Nothing => Err(SqlError::Away(reason)),
                }
            }
            Ok(Err(SqlError::Away(reason))) => {
                self.reach(state)?;
                Err(SqlError::Away(reason))
            }
            Ok(Err(error) | Ok((_, Err(error)))) => Err(self.fenced(state, error)),
            Err(_) => Err(SqlError::Parameter("a change failed by a bug of the server".to_owned())),
        }
    }

    /// Connects if need be, for as long as a database may be away. Says what has become of a
    /// transaction whose end was not heard.
    pub(crate) fn reach(&self, state: &mut State) -> Result<Found, SqlError> {
        if state.is_fenced {
            return Err(SqlError::Fenced);
        }
        if state.connection.is_some() {
            return Ok(Found::Nothing);
        }
        let is_news = state.away_since.is_none();
        let since = *state.away_since.get_or_insert_with(Instant::now);
        if is_news {
            tracing::warn!(address = %self.claim.address(), "the session with PostgreSQL was lost");
        }
        loop {
            match self.claim.connect_again() {
                Ok((connection, standing)) => {
                    tracing::info!(address = %self.claim.address(), "PostgreSQL is back");
                    let found = match standing.batch > state.standing.batch {
                        true => Found::Transaction,
                        false => Found::Nothing,
                    };
                    (state.connection, state.standing) = (Some(connection), standing);
                    state.away_since = None;
                    return Ok(found);
                }
                Err(SqlError::Fenced) => return Err(self.fenced(state, SqlError::Fenced)),
                Err(error) if since.elapsed() > AWAY_MAX => {
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

    fn fenced(&self, state: &mut State, error: SqlError) -> SqlError {
        if matches!(error, SqlError::Fenced) && !state.is_fenced {
            let address = self.claim.address();
            tracing::error!(%address, "another server has taken the database over: this one writes no more");
            state.is_fenced = true;
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

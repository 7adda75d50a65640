//! The driver's session: what is asked of the servers, and what a failure says about what was
//! written. Callers are threads; the driver has a runtime of its own.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use althing_cassandra::{Address, Verdict, profile};
use scylla::client::session::Session as Driver;
use scylla::errors::ExecutionError;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;
use tokio::runtime::Runtime;

use super::address::CassandraAddress;
use super::names::Name;
use super::tables;
use crate::storage::sql::SqlError;

/// How long the servers may take for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How often servers that cannot be used are asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// Why something was not done.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The servers refused it: nothing was written, and a retry is of no use.
    Refused(String),
    /// It was never sent, or the servers do not work: nothing was written.
    NotWritten(String),
    /// Nobody knows. It may even be written later, until something that excludes it is.
    Unknown(String),
}

/// How far a bucket is, and who may write into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketHead {
    pub(super) writer: Name,
    pub(super) last: u64,
}

/// An entry as it is kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) name: Name,
    pub(super) data: Vec<u8>,
}

/// An entry to be written, and the condition under which it is.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) bucket: i64,
    pub(super) writer: Name,
    pub(super) number: u64,
    pub(super) name: Name,
    pub(super) data: &'a [u8],
}

/// Statements of the log; those of snapshots are beside their use.
struct Statements {
    head: PreparedStatement,
    open: PreparedStatement,
    draw: PreparedStatement,
    advance: PreparedStatement,
    insert: PreparedStatement,
    entries: PreparedStatement,
    erase_mark: PreparedStatement,
    erase: PreparedStatement,
}

/// A session with the servers.
pub(super) struct Session {
    // Before the runtime, which runs its connections.
    driver: Driver,
    statements: Statements,
    runtime: Runtime,
}

/// What failed, in full.
pub(super) fn refused(error: impl Error) -> Failure {
    Failure::Refused(in_full(&error))
}

fn misread(error: impl Error) -> Failure {
    Failure::Unknown(in_full(&error))
}

fn in_full(error: &dyn Error) -> String {
    crate::storage::sql::in_full(error)
}

impl Session {
    /// Connects, and makes the tables if they are missing. Blocks, outside of any runtime.
    pub(super) fn connect(address: &CassandraAddress) -> Result<Self, SqlError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("folkmoot-cassandra")
            .enable_all()
            .build()
            .map_err(|error| away(&Failure::NotWritten(error.to_string())))?;
        let connected = runtime.block_on(async {
            let driver = connect(address.servers()).await?;
            tables::make(&driver, address.servers()).await?;
            let statements = Statements::prepare(&driver).await?;
            Ok((driver, statements))
        });
        let (driver, statements) = connected.map_err(|failure| match failure {
            Failure::Refused(why) => SqlError::Refused(why),
            failure => away(&failure),
        })?;
        Ok(Self { driver, statements, runtime })
    }

    /// Does what may be done more than once until it is done, or `until` is over.
    #[expect(clippy::needless_pass_by_value, reason = "closures are written where it is called")]
    pub(super) fn insist<T>(
        &self,
        until: Instant,
        attempt: impl AsyncFn(&Self) -> Result<T, Failure>,
    ) -> Result<T, SqlError> {
        loop {
            match self.wait_for(attempt(self)) {
                Ok(done) => return Ok(done),
                Err(Failure::Refused(why)) => return Err(SqlError::Refused(why)),
                Err(failure) => self.pause(until, &failure)?,
            }
        }
    }

    /// Waits for an answer.
    pub(super) fn wait_for<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    /// Waits after a failure.
    ///
    /// # Errors
    /// The time is over.
    pub(super) fn pause(&self, until: Instant, failure: &Failure) -> Result<(), SqlError> {
        if Instant::now() + PAUSE > until {
            return Err(away(failure));
        }
        tracing::debug!(?failure, "Cassandra cannot be used; trying again");
        std::thread::sleep(PAUSE);
        Ok(())
    }

    /// Runs a statement that is not prepared.
    pub(super) async fn ask(
        &self,
        cql: &str,
        values: impl SerializeRow,
    ) -> Result<QueryResult, Failure> {
        Ok(self.driver.query_unpaged(cql, values).await?)
    }

    /// The same for one that reads what was written by a condition.
    pub(super) async fn ask_serial(&self, cql: &str) -> Result<QueryResult, Failure> {
        let mut statement = Statement::new(cql);
        statement.set_consistency(Consistency::Serial);
        Ok(self.driver.query_unpaged(statement, ()).await?)
    }

    /// The same for one with a condition; says whether that held.
    pub(super) async fn ask_if(
        &self,
        cql: &str,
        values: impl SerializeRow,
    ) -> Result<bool, Failure> {
        is_applied(self.ask(cql, values).await?)
    }

    pub(super) async fn head(&self, bucket: i64) -> Result<Option<BucketHead>, Failure> {
        let answer = self.driver.execute_unpaged(&self.statements.head, (bucket,)).await?;
        let answer = answer.into_rows_result().map_err(misread)?;
        let found = answer.maybe_first_row::<(i64, Option<Vec<u8>>, Option<i64>)>();
        let Some((_, Some(writer), Some(last))) = found.map_err(misread)? else { return Ok(None) };
        let writer = Name::of(&writer).ok_or_else(|| Failure::Refused(strange("writer")))?;
        Ok(Some(BucketHead { writer, last: last.cast_unsigned() }))
    }

    /// Opens a bucket that has no writer yet, whose entries begin behind `last`.
    pub(super) async fn open(&self, bucket: i64, writer: Name, last: u64) -> Result<bool, Failure> {
        let values = (writer.bytes(), last.cast_signed(), bucket);
        is_applied(self.driver.execute_unpaged(&self.statements.open, values).await?)
    }

    /// Has a bucket written to by another name.
    pub(super) async fn draw(&self, bucket: i64, from: Name, to: Name) -> Result<bool, Failure> {
        let values = (to.bytes(), bucket, from.bytes());
        is_applied(self.driver.execute_unpaged(&self.statements.draw, values).await?)
    }

    /// Writes an entry behind the one before it.
    pub(super) async fn append(&self, entry: Written<'_>) -> Result<bool, Failure> {
        let Written { bucket, writer, number, name, data } = entry;
        let number = number.cast_signed();
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.append_statement(self.statements.advance.clone());
        batch.append_statement(self.statements.insert.clone());
        let advance = (number, bucket, writer.bytes(), number - 1);
        let insert = (bucket, number, name.bytes(), data);
        is_applied(self.driver.batch(&batch, (advance, insert)).await?)
    }

    /// Entries of a bucket, in order.
    pub(super) async fn entries(
        &self,
        bucket: i64,
        (after, up_to): (u64, u64),
    ) -> Result<Vec<Kept>, Failure> {
        let values = (bucket, after.cast_signed(), up_to.cast_signed());
        let answer = self.driver.execute_unpaged(&self.statements.entries, values).await?;
        let answer = answer.into_rows_result().map_err(misread)?;
        let rows = answer.rows::<(i64, Vec<u8>, Vec<u8>)>().map_err(misread)?;
        let rows = rows.map(|row| {
            let (number, name, data) = row.map_err(misread)?;
            let name = Name::of(&name).ok_or_else(|| Failure::Refused(strange("entry")))?;
            Ok(Kept { number: number.cast_unsigned(), name, data })
        });
        rows.collect()
    }

    /// Deletes the entries of a bucket up to a number that it has reached. By a condition, so that
    /// it has a time of the same clocks as what it deletes. Who may write stays: a writer that
    /// sleeps must never find a bucket that looks new.
    pub(super) async fn erase(&self, bucket: i64, up_to: u64) -> Result<bool, Failure> {
        let up_to = up_to.cast_signed();
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.append_statement(self.statements.erase_mark.clone());
        batch.append_statement(self.statements.erase.clone());
        let values = ((up_to, bucket, up_to), (bucket, up_to));
        is_applied(self.driver.batch(&batch, values).await?)
    }
}

impl Statements {
    async fn prepare(driver: &Driver) -> Result<Self, Failure> {
        let prepare = async |cql: &str| {
            let prepared = driver.prepare(cql).await;
            prepared.map_err(|error| Failure::from(ExecutionError::from(error)))
        };
        let mut head =
            prepare("SELECT DISTINCT bucket, writer, last FROM folkmoot_log WHERE bucket = ?")
                .await?;
        head.set_consistency(Consistency::Serial);
        let open = "UPDATE folkmoot_log SET writer = ?, last = ? WHERE bucket = ? IF writer = null";
        let draw = "UPDATE folkmoot_log SET writer = ? WHERE bucket = ? IF writer = ?";
        let advance =
            "UPDATE folkmoot_log SET last = ? WHERE bucket = ? IF writer = ? AND last = ?";
        let insert = "INSERT INTO folkmoot_log (bucket, number, name, data) VALUES (?, ?, ?, ?)";
        let entries = "SELECT number, name, data FROM folkmoot_log
                       WHERE bucket = ? AND number > ? AND number <= ?";
        let mark = "UPDATE folkmoot_log SET erased = ? WHERE bucket = ? IF last >= ?";
        let erase = "DELETE FROM folkmoot_log WHERE bucket = ? AND number <= ?";
        Ok(Self {
            head,
            open: prepare(open).await?,
            draw: prepare(draw).await?,
            advance: prepare(advance).await?,
            insert: prepare(insert).await?,
            entries: prepare(entries).await?,
            erase_mark: prepare(mark).await?,
            erase: prepare(erase).await?,
        })
    }
}

async fn connect(address: &Address) -> Result<Driver, Failure> {
    // What was written must be known before anything is sent once more.
    let profile = profile(ANSWER_WITHIN).retry_policy(Arc::new(FallthroughRetryPolicy::new()));
    let connected = althing_cassandra::session(address, profile).build().await;
    connected.map_err(|error| Failure::NotWritten(in_full(&error)))
}

fn is_applied(answer: QueryResult) -> Result<bool, Failure> {
    althing_cassandra::is_applied(answer).map_err(misread)
}

fn strange(what: &str) -> String {
    format!("the {what} of a bucket has no name of ours")
}

/// The servers cannot be used.
pub(super) fn away(failure: &Failure) -> SqlError {
    let (Failure::Refused(why) | Failure::NotWritten(why) | Failure::Unknown(why)) = failure;
    SqlError::Away(format!("Cassandra: {why}"))
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        let why = in_full(&error);
        match Verdict::of(&error) {
            Verdict::Refused => Self::Refused(why),
            Verdict::NotWritten => Self::NotWritten(why),
            Verdict::Unreadable | Verdict::Unknown => Self::Unknown(why),
        }
    }
}

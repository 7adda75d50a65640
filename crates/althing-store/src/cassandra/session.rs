//! The driver's session: values in, rows out, and what a failure says about what was written.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use althing::ActorId;
use althing_cassandra::{Address, Verdict, profile};
use scylla::client::session::Session as Driver;
use scylla::errors::ExecutionError;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::QueryResult;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::batch::named;
use super::names::part;
use super::statements::Statements;
use super::together::{Part, Partitions};
use super::{CassandraError, CassandraOptions, tables};

/// Requests that are on their way at once: more would not make the servers faster, and would time
/// out together when they are slow.
const AT_ONCE: usize = 512;

/// Values of one statement, in its order.
pub(super) type Values = Vec<Option<CqlValue>>;

/// A statement and its values.
pub(super) type Bound<'a> = (&'a PreparedStatement, Values);

/// Why something was not done.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The server refused it: nothing was written, and a retry is of no use.
    Refused(Arc<CassandraError>),
    /// It was never sent, or the server does not work: nothing was written.
    NotWritten(Arc<CassandraError>),
    /// The server had to pass over too much that was removed, or could not read for another reason.
    Unreadable(Arc<CassandraError>),
    /// Nobody knows. It may even be written later, until something that excludes it is.
    Unknown(Arc<CassandraError>),
}

pub(super) struct Session {
    driver: Driver,
    room: Semaphore,
    pub(super) answer_within: Duration,
    /// Into how many partitions actors are dealt.
    parts: i32,
    pub(super) partitions: Partitions,
    pub(super) statements: Statements,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

pub(super) fn server(error: impl Error + Send + Sync + 'static) -> CassandraError {
    CassandraError::Server(Box::new(error))
}

impl Session {
    pub(super) async fn connect(
        nodes: &[impl AsRef<str>],
        options: &CassandraOptions,
    ) -> Result<Self, CassandraError> {
        // What was written must be known before anything is sent once more.
        let profile =
            profile(options.answer_within).retry_policy(Arc::new(FallthroughRetryPolicy::new()));
        let driver = althing_cassandra::session(&address(nodes, options), profile).build().await;
        let driver = driver.map_err(server)?;
        let parts = tables::migrate(&driver, options).await?;
        let statements = Statements::prepare(&driver).await?;
        let (room, answer_within) = (Semaphore::new(AT_ONCE), options.answer_within);
        let partitions = Partitions::default();
        Ok(Self { driver, room, answer_within, parts, partitions, statements })
    }

    /// Waits until one more request may be on its way, as long as for an answer.
    async fn room(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let room = timeout(self.answer_within, self.room.acquire()).await;
        let no_answer = || Arc::new(CassandraError::NoAnswer(self.answer_within));
        let room = room.map_err(|_| Failure::NotWritten(no_answer()))?;
        Ok(room.expect("it is never closed"))
    }

    pub(super) async fn execute(
        &self,
        statement: &PreparedStatement,
        values: Values,
    ) -> Result<QueryResult, Failure> {
        let _room = self.room().await?;
        Ok(self.driver.execute_unpaged(statement, values).await?)
    }

    pub(super) async fn rows(
        &self,
        statement: &PreparedStatement,
        values: Values,
    ) -> Result<Vec<Cells>, Failure> {
        let answer = self.execute(statement, values).await?;
        let rows = answer.into_rows_result().map_err(misread)?;
        let rows = rows.rows::<Row>().map_err(misread)?;
        rows.map(|row| row.map(Cells::of)).collect::<Result<_, _>>().map_err(misread)
    }

    pub(super) async fn write(
        &self,
        statement: &PreparedStatement,
        values: Values,
    ) -> Result<(), Failure> {
        self.execute(statement, values).await?;
        Ok(())
    }

    /// Writes what has a condition; returns whether that held.
    pub(super) async fn write_if(
        &self,
        part: Part,
        statement: &PreparedStatement,
        values: Values,
    ) -> Result<bool, Failure> {
        self.alone(part, async { is_applied(self.execute(statement, values).await?) }).await
    }

    /// Writes statements of one partition as one, of which the first has a condition; returns
    /// whether that held.
    pub(super) async fn write_all_if(
        &self,
        part: Part,
        bound: Vec<Bound<'_>>,
    ) -> Result<bool, Failure> {
        self.alone(part, async { is_applied(self.batch(all(&bound)).await?) }).await
    }

    /// Writes statements of one partition as one.
    pub(super) async fn write_all(&self, bound: Vec<Bound<'_>>) -> Result<(), Failure> {
        self.batch(all(&bound)).await?;
        Ok(())
    }

    pub(super) async fn batch<'a>(
        &self,
        bound: impl Iterator<Item = (&'a PreparedStatement, &'a Values)>,
    ) -> Result<QueryResult, Failure> {
        // One partition is written as one without a log of batches.
        let mut batch = Batch::new(BatchType::Unlogged);
        let mut values = Vec::with_capacity(bound.size_hint().0);
        for (statement, its) in bound {
            batch.append_statement(statement.clone());
            values.push(its);
        }
        let _room = self.room().await?;
        Ok(self.driver.batch(&batch, values).await?)
    }

    /// The partition in which an actor is kept.
    pub(super) fn part(&self, id: &ActorId) -> Part {
        part(id, self.parts)
    }

    /// Partition, kind and key, as statements about an actor begin or go on with them.
    pub(super) fn owner(&self, id: &ActorId) -> Values {
        let part = Some(CqlValue::Int(self.part(id)));
        std::iter::once(part).chain(named(id)).collect()
    }
}

fn all<'a>(bound: &'a [Bound<'_>]) -> impl Iterator<Item = (&'a PreparedStatement, &'a Values)> {
    bound.iter().map(|(statement, values)| (*statement, values))
}

pub(super) fn is_applied(answer: QueryResult) -> Result<bool, Failure> {
    althing_cassandra::is_applied(answer).map_err(misread)
}

fn address(nodes: &[impl AsRef<str>], options: &CassandraOptions) -> Address {
    Address {
        nodes: nodes.iter().map(|node| node.as_ref().to_owned()).collect(),
        login: options.login.clone(),
        keyspace: options.keyspace.clone(),
        replicas: options.replicas,
    }
}

/// An answer came, and nobody can read it.
fn misread(error: impl Error + Send + Sync + 'static) -> Failure {
    Failure::Unknown(Arc::new(server(error)))
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        let verdict = Verdict::of(&error);
        let cause = Arc::new(match error {
            ExecutionError::RequestTimeout(time) => CassandraError::NoAnswer(time),
            error => server(error),
        });
        match verdict {
            Verdict::Refused => Self::Refused(cause),
            Verdict::NotWritten => Self::NotWritten(cause),
            Verdict::Unreadable => Self::Unreadable(cause),
            Verdict::Unknown => Self::Unknown(cause),
        }
    }
}

impl Failure {
    pub(super) fn cause(&self) -> &Arc<CassandraError> {
        match self {
            Self::Refused(cause)
            | Self::NotWritten(cause)
            | Self::Unreadable(cause)
            | Self::Unknown(cause) => cause,
        }
    }
}

/// Cells of a row, taken from left to right in the order of its statement.
#[derive(Debug)]
pub(super) struct Cells(std::vec::IntoIter<Option<CqlValue>>);

impl Cells {
    pub(super) fn of(row: Row) -> Self {
        Self(row.columns.into_iter())
    }

    pub(super) fn sort(&mut self) -> i8 {
        if let Some(Some(CqlValue::TinyInt(sort))) = self.0.next() { sort } else { -1 }
    }

    /// A number; 0 if there is none.
    pub(super) fn number(&mut self) -> u64 {
        let number =
            if let Some(Some(CqlValue::BigInt(number))) = self.0.next() { number } else { 0 };
        u64::try_from(number).unwrap_or(0)
    }

    pub(super) fn maybe_bytes(&mut self) -> Option<Vec<u8>> {
        if let Some(Some(CqlValue::Blob(bytes))) = self.0.next() { Some(bytes) } else { None }
    }

    pub(super) fn bytes(&mut self) -> Vec<u8> {
        self.maybe_bytes().unwrap_or_default()
    }

    /// Text, which is kept as bytes because it is compared as such.
    pub(super) fn text(&mut self) -> String {
        String::from_utf8(self.bytes()).unwrap_or_default()
    }
}

/// Numbers are kept as signed ones; those beyond are further away than anybody counts.
pub(super) fn number(number: u64) -> Option<CqlValue> {
    Some(CqlValue::BigInt(i64::try_from(number).unwrap_or(i64::MAX)))
}

pub(super) fn blob(bytes: &[u8]) -> Option<CqlValue> {
    Some(CqlValue::Blob(bytes.to_vec()))
}

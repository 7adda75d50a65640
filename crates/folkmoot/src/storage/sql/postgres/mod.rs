//! A session with a PostgreSQL server, used from one thread that may block.
//!
//! Statements whose answers nobody waits for are sent together with the next one whose answer is
//! read, in their order. Every wait has an end: a server that says nothing for [`PATIENCE`] is
//! away, and the session with it, for nobody knows what became of what was asked.

mod gathered;
pub(crate) mod values;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use althing_postgres::Server;
use futures_util::future::{BoxFuture, FutureExt, MaybeDone, maybe_done};
use rusqlite::types::Value;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use self::gathered::{Gathered, by_place, for_many};
use self::values::Param;
use super::dialect;
use super::error::{Result, SqlError, in_full};

/// How long an answer may take: longer than any statement of ours, shorter than people wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same in a task of an administrator's, which looks at whole tables.
const TASK_PATIENCE: Duration = Duration::from_secs(60 * 60);
/// How long a server may take to greet.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Statements that are gathered before they are sent without anybody asking.
const PENDING_MAX: usize = 256;

/// A session with a server.
pub(crate) struct Session {
    // Before the runtime, which runs the connection of it.
    client: Client,
    runtime: Runtime,
    /// By their text in SQLite's dialect.
    statements: RefCell<HashMap<String, Statement>>,
    pending: RefCell<Vec<Pending>>,
    /// Before all that is asked after it.
    gathered: RefCell<Gathered>,
    is_broken: Cell<bool>,
    patience: Cell<Duration>,
    /// Statements asked for their rows.
    pub(super) asked: Cell<u64>,
}

enum Pending {
    Batch(String),
    Run(Statement, Vec<Param>),
    Many(Statement, Vec<Vec<Param>>),
}

impl Session {
    /// Connects.
    pub(crate) fn connect(server: &Server) -> Result<Self> {
        let away = |error: &dyn std::error::Error| {
            SqlError::Away(format!("PostgreSQL: {}", in_full(error)))
        };
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| away(&error))?;
        let connected = runtime
            .block_on(async { tokio::time::timeout(CONNECT_PATIENCE, server.connect()).await });
        let (client, connection) = connected.map_err(|error| away(&error))??;
        runtime.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = in_full(&error), "a connection to PostgreSQL has ended");
            }
        });
        let (statements, pending, gathered) =
            (RefCell::default(), RefCell::default(), RefCell::default());
        let patience = Cell::new(PATIENCE);
        let is_broken = Cell::new(false);
        let asked = Cell::default();
        Ok(Self { client, runtime, statements, pending, gathered, is_broken, patience, asked })
    }

    /// A statement in SQLite's dialect, prepared once.
    pub(super) fn prepare(&self, sql: &str) -> Result<Statement> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(known.clone());
        }
        let text = dialect::for_postgres(sql);
        let statement = self.ask(self.client.prepare(&text)).inspect_err(|error| {
            if !matches!(error, SqlError::Away(_)) {
                tracing::error!(sql = text, %error, "PostgreSQL does not understand a statement");
            }
        })?;
        self.statements.borrow_mut().insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) fn execute(&self, statement: &Statement, values: Vec<Value>) -> Result<usize> {
        let params = values::params(values)?;
        let changed =
            self.flush_and(self.client.execute_raw(statement, params.iter().map(Param::as_sql)))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    pub(super) fn query(&self, statement: &Statement, values: Vec<Value>) -> Result<Vec<Row>> {
        let params = values::params(values)?;
        let params: Vec<_> = params.iter().map(Param::as_sql).collect();
        self.asked.set(self.asked.get() + 1);
        self.flush_and(self.client.query(statement, &params))
    }

    /// Adds rows by a `COPY … FROM STDIN BINARY`; `kinds` has the columns' types.
    pub(super) fn copy_in(
        &self,
        copy: &Statement,
        kinds: &Statement,
        rows: &[Vec<Value>],
    ) -> Result<()> {
        let kinds: Vec<Type> =
            kinds.columns().iter().map(|column| column.type_().clone()).collect();
        let rows = rows.iter().cloned().map(values::params).collect::<Result<Vec<_>>>()?;
        self.flush_and(async {
            let sink = self.client.copy_in(copy).await?;
            let mut writer = pin!(BinaryCopyInWriter::new(sink, &kinds));
            for row in &rows {
                writer.as_mut().write_raw(row.iter().map(Param::as_sql)).await?;
            }
            writer.finish().await.map(drop)
        })
    }

    pub(super) fn execute_later(&self, statement: &Statement, values: Vec<Value>) -> Result<()> {
        self.later(Pending::Run(statement.clone(), values::params(values)?))
    }

    /// The same for a statement that changes no more than the row it names, and of which others
    /// like it follow: they are sent together, before whatever is asked next.
    pub(super) fn gather(&self, sql: &str, values: Vec<Value>) {
        self.gathered.borrow_mut().add(sql, values);
    }

    /// The rows for any of some values, which the statement has as an array in its first place.
    pub(super) fn query_any(
        &self,
        sql: &str,
        values: Vec<Value>,
        others: Vec<Value>,
    ) -> Result<Vec<Row>> {
        let statement = self.prepare(sql)?;
        let (values, others) = (values::params(values)?, values::params(others)?);
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&values];
        params.extend(others.iter().map(Param::as_sql));
        self.asked.set(self.asked.get() + 1);
        self.flush_and(self.client.query(&statement, &params))
    }

    /// What was gathered becomes statements that wait.
    fn pour(&self) -> Result<()> {
        for (sql, mut rows) in self.gathered.take().into_parts() {
            let one = self.prepare(&sql)?;
            let statement = match rows.len() {
                1 => Pending::Run(one, values::params(rows.remove(0))?),
                _ => {
                    let many = self.prepare(&for_many(&sql, one.params())?)?;
                    Pending::Many(many, by_place(rows)?)
                }
            };
            self.pending.borrow_mut().push(statement);
        }
        Ok(())
    }

    pub(super) fn batch_later(&self, sql: &str) -> Result<()> {
        self.later(Pending::Batch(sql.to_owned()))
    }

    pub(super) fn execute_batch(&self, sql: &str) -> Result<()> {
        self.flush_and(self.client.batch_execute(sql))
    }

    /// Sends what waits, and reads the answers.
    pub(crate) fn flush(&self) -> Result<()> {
        self.flush_and(async { Ok(()) })
    }

    /// For a task that looks at all there is: an answer may take an hour, and a transaction may
    /// wait between two questions.
    pub(super) fn take_time(&self) -> Result<()> {
        self.patience.set(TASK_PATIENCE);
        self.execute_batch("SET idle_in_transaction_session_timeout = 0")
    }

    /// Whether nothing can be asked any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.get() || self.client.is_closed()
    }

    fn later(&self, statement: Pending) -> Result<()> {
        self.pour()?;
        let waiting = {
            let mut pending = self.pending.borrow_mut();
            pending.push(statement);
            pending.len()
        };
        if waiting < PENDING_MAX { Ok(()) } else { self.flush() }
    }

    /// Sends what waits and then `last`, all at once; the first failure counts.
    fn flush_and<T>(
        &self,
        last: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        self.pour()?;
        let pending = self.pending.take();
        if pending.is_empty() {
            return self.ask(last);
        }
        self.ask(async {
            let mut sent: Vec<Sent<'_>> =
                pending.iter().map(|statement| maybe_done(statement.run(&self.client))).collect();
            // A statement is sent when its future is first polled.
            std::future::poll_fn(|context| {
                for statement in &mut sent {
                    let _ = Pin::new(statement).poll(context);
                }
                Poll::Ready(())
            })
            .await;
            let last = last.await;
            for mut statement in sent {
                (&mut statement).await;
                Pin::new(&mut statement).take_output().unwrap_or(Ok(()))?;
            }
            last
        })
    }

    fn ask<T>(&self, answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T> {
        let patience = self.patience.get();
        let answered =
            self.runtime.block_on(async { tokio::time::timeout(patience, answer).await });
        let answer = match answered {
            Ok(answer) => answer.map_err(SqlError::from),
            Err(_) => {
                let why = format!("PostgreSQL: no answer within {} s", patience.as_secs());
                Err(SqlError::Away(why))
            }
        };
        if matches!(answer, Err(SqlError::Away(_))) {
            self.is_broken.set(true);
        }
        answer
    }
}

type Sent<'s> = MaybeDone<BoxFuture<'s, Result<(), tokio_postgres::Error>>>;

impl Pending {
    fn run<'s>(&'s self, client: &'s Client) -> BoxFuture<'s, Result<(), tokio_postgres::Error>> {
        match self {
            Self::Batch(sql) => client.batch_execute(sql).boxed(),
            Self::Run(statement, params) => client
                .execute_raw(statement, params.iter().map(Param::as_sql))
                .map(|ran| ran.map(drop))
                .boxed(),
            Self::Many(statement, places) => client
                .execute_raw(statement, places.iter().map(|place| place as &(dyn ToSql + Sync)))
                .map(|ran| ran.map(drop))
                .boxed(),
        }
    }
}

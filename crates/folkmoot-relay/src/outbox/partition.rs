//! One partition of an outbox: reads its rows in order, publishes them, deletes them.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use futures_util::TryStreamExt;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement, Transaction};

use super::{Outbox, OutboxError, RETRY_AFTER, STATEMENT_TIMEOUT};
use crate::durable::{RowKey, fingerprint};
use crate::feed::{self, Row};
use crate::metrics::ConsumerMetrics;
use crate::server::Server;

/// Payloads that are held at once; the row with which they exceed it is held, too.
const HELD_BYTES_MAX: usize = 4 << 20;
/// The longest payload that is read, as of a row that comes by change data capture.
const ROW_BYTES_MAX: i32 = 64 << 20;

pub(super) struct Partition {
    outbox: Arc<Outbox>,
    server: Arc<Server>,
    number: u32,
    metrics: Arc<ConsumerMetrics>,
    /// Published, and perhaps not deleted: the connection was lost in between. With the reason why
    /// some of a row was refused, for which it is set aside.
    published: HashMap<RowKey, Option<RpcError>>,
    /// Rows that are asked for next: fewer after some that were long, so that the database does not
    /// send what is not held.
    rows_next: u32,
    /// Said already: it is said once, not at each attempt.
    is_down: bool,
}

/// A row as it was read. Its id alone says nothing of that: a backend may change a row while it is
/// published, or give its id to another one.
#[derive(Debug, Clone, Copy)]
struct Version<'a> {
    id: i64,
    /// The number of the transaction that has written it.
    xmin: i64,
    /// Where it is stored.
    place: &'a str,
}

/// What came of looking at the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// There may be more.
    Rows,
    Nothing,
    /// Another process publishes this partition, or a row could not be published just now.
    Busy,
}

/// The statements of one connection.
struct Statements {
    lock: Statement,
    select: Statement,
    delete: Statement,
    set_aside: Statement,
}

impl Partition {
    pub(super) fn new(outbox: Arc<Outbox>, server: Arc<Server>, number: u32) -> Self {
        let metrics = server.metrics.consumer(&outbox.name);
        let (published, rows_next) = (HashMap::new(), outbox.settings.partition_select_limit);
        Self { outbox, server, number, metrics, published, rows_next, is_down: false }
    }

    /// Publishes until the server stops, whatever happens to the database meanwhile. What is being
    /// published then is deleted first: otherwise whoever reads the table next would publish it
    /// again.
    pub(super) async fn run(mut self) {
        let mut stopping = self.server.stopping();
        while !*stopping.borrow() {
            let ended = self.follow(&mut stopping).await;
            let (outbox, partition) = (&self.outbox.name, self.number);
            let Err(error) = ended else { return };
            if !self.is_down {
                tracing::error!(%error, %outbox, partition, "the outbox cannot be read");
            }
            self.is_down = true;
            let _ = timeout(RETRY_AFTER, stopping.wait_for(|stops| *stops)).await;
        }
    }

    /// Publishes as long as one connection lasts, or until the server stops.
    async fn follow(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<(), OutboxError> {
        let connecting = async {
            let (client, told) = self.outbox.connect().await?;
            let statements = within(self.prepare(&client)).await?;
            Ok::<_, OutboxError>((client, told, statements))
        };
        let (mut client, told, statements) = tokio::select! {
            connected = connecting => connected?,
            _ = stopping.wait_for(|stops| *stops) => return Ok(()),
        };
        while !*stopping.borrow() {
            let found = self.look(&mut client, &statements).await?;
            if std::mem::take(&mut self.is_down) {
                tracing::info!(outbox = %self.outbox.name, "the outbox is read again");
            }
            let pause = self.outbox.settings.partition_poll_interval.0;
            let (told, pause) = match found {
                Found::Rows => continue,
                Found::Nothing => (Some(&*told), pause),
                Found::Busy => (None, pause.min(RETRY_AFTER)),
            };
            tokio::select! {
                () = wait(told, pause) => {}
                _ = stopping.wait_for(|stops| *stops) => {}
            }
        }
        Ok(())
    }

    async fn prepare(&self, client: &Client) -> Result<Statements, OutboxError> {
        let table = &self.outbox.table;
        table.prepare(client).await?;
        Ok(Statements {
            lock: client.prepare(&table.lock()).await?,
            select: client.prepare(&table.select()).await?,
            delete: client.prepare(&table.delete()).await?,
            set_aside: client.prepare(&table.set_aside()).await?,
        })
    }

    /// One transaction: takes the partition, publishes what is there, deletes it.
    async fn look(
        &mut self,
        client: &mut Client,
        statements: &Statements,
    ) -> Result<Found, OutboxError> {
        let transaction = within(client.transaction()).await?;
        let (table, number) = (self.outbox.table.quoted(), self.number());
        let locked = within(transaction.query_one(&statements.lock, &[&table, &number])).await?;
        if !locked.get::<_, bool>(0) {
            return Ok(Found::Busy);
        }
        let rows = within(self.read(&transaction, &statements.select)).await?;
        if rows.is_empty() {
            self.published.clear();
            return Ok(Found::Nothing);
        }
        let mut refused: Vec<(Version<'_>, RpcError)> = rows.iter().filter_map(too_long).collect();
        refused.iter().for_each(|(_, error)| self.metrics.rows.count::<()>(&Err(error.clone())));
        let mut gone: Vec<Version<'_>> = refused.iter().map(|(version, _)| *version).collect();
        let rows = rows.iter().filter_map(|row| Some((Version::of(row), self.row(row)?)));
        let is_new = |(_, row): &(Version<'_>, Row<'_>)| !self.published.contains_key(&row.key);
        let (new, mut done): (Vec<_>, Vec<_>) = rows.partition(is_new);
        let before = done.iter().filter_map(|(version, row)| {
            let error = self.published.get(&row.key)?.clone()?;
            Some((*version, error))
        });
        refused.extend(before);
        let (versions, new): (Vec<_>, Vec<_>) = new.into_iter().unzip();
        // Without a limit of time: what is given up here in the middle would be published again.
        let outcomes = feed::publish(&self.server, &self.metrics, &new).await;
        let mut found = Found::Rows;
        for ((version, row), outcome) in versions.into_iter().zip(new).zip(outcomes) {
            match outcome {
                Ok(()) => drop(self.published.insert(row.key.clone(), None)),
                // Nothing of this partition may overtake it.
                Err(error) if error.code.is_temporary() => {
                    found = Found::Busy;
                    break;
                }
                Err(error) => {
                    refused.push((version, error.clone()));
                    self.published.insert(row.key.clone(), Some(error));
                }
            }
            done.push((version, row));
        }
        for (version, error) in refused {
            within(self.set_aside(&transaction, statements, version, &error)).await?;
        }
        gone.extend(done.iter().map(|(version, _)| *version));
        within(self.delete(&transaction, statements, &gone)).await?;
        within(transaction.commit()).await?;
        // Only now is it known that these do not come again. Others may: rows with smaller ids that
        // were committed later came between.
        for (_, row) in &done {
            self.published.remove(&row.key);
        }
        if let Some(ledger) = &self.server.ledger {
            ledger.confirm(done.into_iter().map(|(_, row)| row.key));
        }
        Ok(found)
    }

    /// The next rows, as far as they are held at once.
    async fn read(
        &mut self,
        transaction: &Transaction<'_>,
        select: &Statement,
    ) -> Result<Vec<tokio_postgres::Row>, OutboxError> {
        let (number, limit) = (self.number(), i64::from(self.rows_next));
        let asked: [&(dyn ToSql + Sync); 3] = [&number, &limit, &ROW_BYTES_MAX];
        let mut coming = pin!(transaction.query_raw(select, asked).await?);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while let Some(row) = coming.try_next().await? {
            bytes += row.get::<_, Option<&str>>(2).map_or(0, str::len);
            rows.push(row);
            if bytes >= HELD_BYTES_MAX {
                self.rows_next = u32::try_from(rows.len()).unwrap_or(u32::MAX);
                return Ok(rows);
            }
        }
        let most = self.outbox.settings.partition_select_limit;
        self.rows_next = self.rows_next.saturating_mul(2).min(most);
        Ok(rows)
    }

    /// `None`: it was too long to be read.
    fn row<'a>(&self, row: &'a tokio_postgres::Row) -> Option<Row<'a>> {
        let (Version { id, xmin, .. }, method) = (Version::of(row), row.get::<_, &str>(1));
        let payload = row.get::<_, Option<&str>>(2)?.as_bytes();
        // Not by its id alone, which may be another row's in the life of the next relay.
        let part = fingerprint(&[method.as_bytes(), payload, &xmin.to_le_bytes()]);
        let key = RowKey { source: self.outbox.source.clone(), id: id.cast_unsigned(), part };
        Some(Row { key, method, payload })
    }

    async fn set_aside(
        &self,
        transaction: &Transaction<'_>,
        statements: &Statements,
        Version { id, xmin, place }: Version<'_>,
        error: &RpcError,
    ) -> Result<(), OutboxError> {
        let outbox = &self.outbox.name;
        tracing::warn!(%error, %outbox, id, "a row of the outbox was set aside");
        let asked: [&(dyn ToSql + Sync); 5] =
            [&id, &error.message, &self.number(), &Some(xmin), &Some(place)];
        transaction.execute(&statements.set_aside, &asked).await?;
        Ok(())
    }
}

impl Partition {
    /// Deletes rows, unless they are others by now: those are published next.
    async fn delete(
        &self,
        transaction: &Transaction<'_>,
        statements: &Statements,
        gone: &[Version<'_>],
    ) -> Result<u64, tokio_postgres::Error> {
        let ids: Vec<i64> = gone.iter().map(|version| version.id).collect();
        let xmins: Vec<i64> = gone.iter().map(|version| version.xmin).collect();
        let places: Vec<&str> = gone.iter().map(|version| version.place).collect();
        transaction.execute(&statements.delete, &[&ids, &xmins, &places, &self.number()]).await
    }

    /// As the database has it.
    fn number(&self) -> i32 {
        i32::try_from(self.number).unwrap_or(i32::MAX)
    }
}

impl<'a> Version<'a> {
    fn of(row: &'a tokio_postgres::Row) -> Self {
        Self { id: row.get(0), xmin: row.get(4), place: row.get(5) }
    }
}

/// A row that is too long to be read, and that this is the reason.
fn too_long(row: &tokio_postgres::Row) -> Option<(Version<'_>, RpcError)> {
    if row.get::<_, Option<&str>>(2).is_some() {
        return None;
    }
    let len: i32 = row.get(3);
    let text = format!("a payload of {len} bytes is over the limit of {ROW_BYTES_MAX}");
    Some((Version::of(row), RpcError::new(ErrorCode::TooLarge, text)))
}

/// Gives a database that does not answer up.
async fn within<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<T, OutboxError>
where
    OutboxError: From<E>,
{
    let done = timeout(STATEMENT_TIMEOUT, work).await;
    done.map_or(Err(OutboxError::Timeout), |done| done.map_err(OutboxError::from))
}

/// Waits until somebody says that there are rows, or the table is due to be looked at.
async fn wait(told: Option<&Notify>, pause: Duration) {
    match told {
        Some(told) => {
            let _ = timeout(pause, told.notified()).await;
        }
        None => tokio::time::sleep(pause).await,
    }
}

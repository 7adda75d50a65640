//! One partition of an outbox: reads its rows in order, publishes them, deletes them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::rpc::RpcError;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::{Client, Statement, Transaction};

use super::{Outbox, OutboxError, RETRY_AFTER, STATEMENT_TIMEOUT};
use crate::durable::{RowKey, fingerprint};
use crate::feed::{self, Row};
use crate::metrics::ConsumerMetrics;
use crate::server::Server;

pub(super) struct Partition {
    outbox: Arc<Outbox>,
    server: Arc<Server>,
    number: u32,
    metrics: Arc<ConsumerMetrics>,
    /// Published, and perhaps not deleted: the connection was lost in between.
    published: HashSet<i64>,
    /// Said already: it is said once, not at each attempt.
    is_down: bool,
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
        Self { outbox, server, number, metrics, published: HashSet::new(), is_down: false }
    }

    /// Publishes until the server stops, whatever happens to the database meanwhile.
    pub(super) async fn run(mut self) {
        let mut stopping = self.server.stopping();
        loop {
            let ended = tokio::select! {
                ended = self.follow() => ended,
                _ = stopping.wait_for(|stops| *stops) => return,
            };
            let (outbox, partition) = (&self.outbox.name, self.number);
            let Err(error) = ended else { return };
            if !self.is_down {
                tracing::error!(%error, %outbox, partition, "the outbox cannot be read");
            }
            self.is_down = true;
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    /// Publishes as long as one connection lasts.
    async fn follow(&mut self) -> Result<(), OutboxError> {
        let (mut client, told) = self.outbox.connect().await?;
        let statements = within(self.prepare(&client)).await?;
        loop {
            let found = self.look(&mut client, &statements).await?;
            if std::mem::take(&mut self.is_down) {
                tracing::info!(outbox = %self.outbox.name, "the outbox is read again");
            }
            let pause = self.outbox.settings.partition_poll_interval.0;
            match found {
                Found::Rows => {}
                Found::Nothing => wait(&told, pause).await,
                Found::Busy => tokio::time::sleep(pause.min(RETRY_AFTER)).await,
            }
        }
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
        let number = i32::try_from(self.number).unwrap_or(i32::MAX);
        let table = self.outbox.table.quoted();
        let locked = within(transaction.query_one(&statements.lock, &[&table, &number])).await?;
        if !locked.get::<_, bool>(0) {
            return Ok(Found::Busy);
        }
        let limit = i64::from(self.outbox.settings.partition_select_limit);
        let rows = within(transaction.query(&statements.select, &[&number, &limit])).await?;
        if rows.is_empty() {
            self.published.clear();
            return Ok(Found::Nothing);
        }
        let rows: Vec<Row<'_>> = rows.iter().map(|row| self.row(row)).collect();
        let id = |row: &Row<'_>| row.key.id.cast_signed();
        let is_new = |row: &Row<'_>| !self.published.contains(&id(row));
        let (new, mut done): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_new);
        // Without a limit of time: what is given up here in the middle would be published again.
        let outcomes = feed::publish(&self.server, &self.metrics, &new).await;
        let mut found = Found::Rows;
        let mut refused = Vec::new();
        for (row, outcome) in new.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => drop(self.published.insert(id(&row))),
                // Nothing of this partition may overtake it.
                Err(error) if error.code.is_temporary() => {
                    found = Found::Busy;
                    break;
                }
                Err(error) => refused.push((id(&row), error)),
            }
            done.push(row);
        }
        for (id, error) in refused {
            within(self.set_aside(&transaction, statements, id, &error)).await?;
        }
        let ids: Vec<i64> = done.iter().map(id).collect();
        within(transaction.execute(&statements.delete, &[&ids])).await?;
        within(transaction.commit()).await?;
        // Only now is it known that these do not come again. Others may: rows with smaller ids that
        // were committed later came between.
        for id in &ids {
            self.published.remove(id);
        }
        if let Some(ledger) = &self.server.ledger {
            ledger.confirm(done.into_iter().map(|row| row.key));
        }
        Ok(found)
    }

    fn row<'a>(&self, row: &'a tokio_postgres::Row) -> Row<'a> {
        let (id, method, payload): (i64, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let payload = payload.as_bytes();
        // The content too: a table that was emptied may give the same ids again.
        let part = fingerprint(&[method.as_bytes(), payload]);
        let key = RowKey { source: self.outbox.source.clone(), id: id.cast_unsigned(), part };
        Row { key, method, payload }
    }

    async fn set_aside(
        &self,
        transaction: &Transaction<'_>,
        statements: &Statements,
        id: i64,
        error: &RpcError,
    ) -> Result<(), OutboxError> {
        let outbox = &self.outbox.name;
        tracing::warn!(%error, %outbox, id, "a row of the outbox was set aside");
        transaction.execute(&statements.set_aside, &[&id, &error.message]).await?;
        Ok(())
    }
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
async fn wait(told: &Notify, pause: Duration) {
    let _ = timeout(pause, told.notified()).await;
}

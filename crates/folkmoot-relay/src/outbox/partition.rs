//! One partition of an outbox: reads its rows in order, publishes them, deletes them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::rpc::RpcError;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::{Client, Statement, Transaction};

use super::{Outbox, OutboxError, RETRY_AFTER, STATEMENT_TIMEOUT, publish};
use crate::server::Server;

pub(super) struct Partition {
    outbox: Arc<Outbox>,
    server: Arc<Server>,
    number: u32,
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
        Self { outbox, server, number, published: HashSet::new(), is_down: false }
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
            let found = within(self.look(&mut client, &statements)).await?;
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
        let transaction = client.transaction().await?;
        let number = i32::try_from(self.number).unwrap_or(i32::MAX);
        let table = self.outbox.table.quoted();
        let locked = transaction.query_one(&statements.lock, &[&table, &number]).await?;
        if !locked.get::<_, bool>(0) {
            return Ok(Found::Busy);
        }
        let limit = i64::from(self.outbox.settings.partition_select_limit);
        let rows = transaction.query(&statements.select, &[&number, &limit]).await?;
        if rows.is_empty() {
            self.published.clear();
            return Ok(Found::Nothing);
        }
        let mut done = Vec::with_capacity(rows.len());
        let mut found = Found::Rows;
        for row in rows {
            let id: i64 = row.get(0);
            if !self.published.contains(&id) {
                let (method, payload): (&str, &str) = (row.get(1), row.get(2));
                match publish(&self.server, method, payload.as_bytes()).await {
                    Ok(()) => {
                        self.published.insert(id);
                    }
                    Err(error) if error.code.is_temporary() => {
                        // Nothing of this partition may overtake it.
                        found = Found::Busy;
                        break;
                    }
                    Err(error) => self.set_aside(&transaction, statements, id, &error).await?,
                }
            }
            done.push(id);
        }
        transaction.execute(&statements.delete, &[&done]).await?;
        transaction.commit().await?;
        // Only now is it known that these do not come again. Others may: rows with smaller ids that
        // were committed later came between.
        for id in &done {
            self.published.remove(id);
        }
        Ok(found)
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
async fn within<T>(work: impl Future<Output = Result<T, OutboxError>>) -> Result<T, OutboxError> {
    timeout(STATEMENT_TIMEOUT, work).await.unwrap_or(Err(OutboxError::Timeout))
}

/// Waits until somebody says that there are rows, or the table is due to be looked at.
async fn wait(told: &Notify, pause: Duration) {
    let _ = timeout(pause, told.notified()).await;
}

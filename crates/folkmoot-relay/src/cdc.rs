//! Change data capture: what a backend inserts into its outbox is read from PostgreSQL's own log, by
//! logical replication, as soon as it is committed and in the order of the commits. Nothing polls,
//! and nobody has to delete rows: a backend may delete them in the transaction that inserts them.
//!
//! The database keeps its log until it hears that a transaction was published. After a lost
//! connection it sends again what it has not heard of; this process knows what it has published and
//! passes over that.

mod pgoutput;
mod wire;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use folkmoot_protocol::rpc::RpcError;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::{Client, NoTls};

use crate::outbox::table::{Table, quoted};
use crate::outbox::{OutboxError, publish};
use crate::server::Server;
use crate::settings::{CdcSettings, ConsumerSettings, SettingsError};
use pgoutput::{Change, Lsn, Relation, Unreadable};
use wire::{Streamed, Wire, WireError};

/// Between two attempts to reach the database, or to publish what cannot be published just now.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// How often the database hears how far we are.
const CONFIRM_EVERY: Duration = Duration::from_millis(200);
/// The database says something every half minute; who says nothing for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// For statements beside the stream.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A table whose new rows are published.
#[derive(Debug)]
pub(crate) struct Cdc {
    name: Arc<str>,
    settings: CdcSettings,
    database: tokio_postgres::Config,
    table: Table,
}

/// Why nothing can be read at the moment.
#[derive(Debug, thiserror::Error)]
enum CdcError {
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("{0}")]
    Outbox(#[from] OutboxError),
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("wal_level of the database is `{0}`; logical replication needs `logical`")]
    WalLevel(String),
    #[error(
        "the slot `{0}` is gone, and with it what was committed since; publish that anew, and \
         delete its row in folkmoot_relay_slots to begin with a new slot"
    )]
    SlotGone(String),
    #[error("nothing came from the database for {} s", SILENCE_MAX.as_secs())]
    Silent,
}

impl From<tokio_postgres::Error> for CdcError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Outbox(error.into())
    }
}

impl Cdc {
    pub(crate) fn new(consumer: ConsumerSettings) -> Result<Self, SettingsError> {
        let ConsumerSettings { name, postgresql_cdc: settings, .. } = consumer;
        let invalid = |text: String| SettingsError::Invalid(format!("consumer `{name}`: {text}"));
        let database = settings.dsn.parse::<tokio_postgres::Config>();
        let database = database.map_err(|error| invalid(format!("dsn: {error}")))?;
        let table = Table::new(&settings.outbox_table_name)
            .ok_or_else(|| invalid("outbox_table_name is no name of a table".to_owned()))?;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if settings.slot_name.is_empty() || !settings.slot_name.bytes().all(is_name) {
            let text = "slot_name has lower case letters, digits and underscores only";
            return Err(invalid(text.to_owned()));
        }
        Ok(Self { name: name.into(), settings, database, table })
    }

    /// Publishes until the server stops.
    pub(crate) fn start(self, server: &Arc<Server>) {
        let mut stopping = server.stopping();
        let reader = Reader {
            cdc: self,
            server: server.clone(),
            relations: HashMap::new(),
            done: 0,
            now: None,
            partial: None,
            is_down: false,
        };
        tokio::spawn(async move {
            tokio::select! {
                () = reader.run() => {}
                _ = stopping.wait_for(|stops| *stops) => {}
            }
        });
    }

    async fn client(&self) -> Result<Client, CdcError> {
        let (client, connection) = self.database.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Makes table, publication and slot, as far as they are missing.
    async fn prepare(&self) -> Result<(), CdcError> {
        let client = self.client().await?;
        self.table.prepare(&client).await?;
        let level: String = client.query_one("SHOW wal_level", &[]).await?.get(0);
        if level != "logical" {
            return Err(CdcError::WalLevel(level));
        }
        let (slot, publication) = (&self.settings.slot_name, &self.settings.publication_name);
        let known = "SELECT 1 FROM pg_publication WHERE pubname = $1";
        if client.query_opt(known, &[publication]).await?.is_none() {
            let (name, table) = (quoted(publication), self.table.quoted());
            let made =
                format!("CREATE PUBLICATION {name} FOR TABLE {table} WITH (publish = 'insert')");
            client.batch_execute(&made).await?;
        }
        client
            .batch_execute(
                "CREATE TABLE IF NOT EXISTS folkmoot_relay_slots (
                     slot text PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())",
            )
            .await?;
        let state = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = $1";
        let state = client.query_opt(state, &[slot]).await?;
        let is_lost =
            state.as_ref().is_some_and(|row| row.get::<_, Option<&str>>(0) == Some("lost"));
        let note = "INSERT INTO folkmoot_relay_slots (slot) VALUES ($1) ON CONFLICT DO NOTHING";
        if state.is_some() && !is_lost {
            // Also one that somebody else made, or a relay that was killed just then.
            client.execute(note, &[slot]).await?;
            return Ok(());
        }
        // A slot that was there once and is not would hide what it has missed.
        let known = "SELECT 1 FROM folkmoot_relay_slots WHERE slot = $1";
        if is_lost || client.query_opt(known, &[slot]).await?.is_some() {
            return Err(CdcError::SlotGone(slot.clone()));
        }
        let made = "SELECT pg_create_logical_replication_slot($1, 'pgoutput')";
        client.query_one(made, &[slot]).await?;
        client.execute(note, &[slot]).await?;
        Ok(())
    }
}

/// Reads the stream, connection after connection.
struct Reader {
    cdc: Cdc,
    server: Arc<Server>,
    /// By the numbers that the stream gives them.
    relations: HashMap<u32, Relation>,
    /// All transactions up to here are published.
    done: Lsn,
    /// The transaction that is read.
    now: Option<Transaction>,
    /// The newest transaction of which rows were published, and how many: a connection may be lost
    /// in the middle of one.
    partial: Option<(Lsn, u64)>,
    /// Said already: it is said once, not at each attempt.
    is_down: bool,
}

#[derive(Debug, Clone, Copy)]
struct Transaction {
    commit: Lsn,
    /// Rows of it so far.
    read: u64,
}

/// A row of the outbox.
struct Row {
    id: Option<Bytes>,
    method: Bytes,
    payload: Bytes,
    partition: Option<Bytes>,
}

impl Reader {
    async fn run(mut self) {
        loop {
            let Err(error) = self.follow().await;
            if !self.is_down {
                tracing::error!(%error, consumer = %self.cdc.name, "the changes cannot be read");
            }
            self.is_down = true;
            sleep(RETRY_AFTER).await;
        }
    }

    /// Publishes as long as one connection lasts.
    async fn follow(&mut self) -> Result<std::convert::Infallible, CdcError> {
        let prepared = timeout(STATEMENT_TIMEOUT, self.cdc.prepare()).await;
        prepared.unwrap_or(Err(OutboxError::Timeout.into()))?;
        let mut wire = Wire::connect(&self.cdc.database).await?;
        let settings = &self.cdc.settings;
        wire.replicate(&settings.slot_name, &settings.publication_name).await?;
        if std::mem::take(&mut self.is_down) {
            tracing::info!(consumer = %self.cdc.name, "the changes are read again");
        }
        // A transaction that was cut off begins anew.
        self.now = None;
        let (mut confirmed, mut confirm_at) = (0, Instant::now());
        let (mut heard, mut is_asked) = (Instant::now(), false);
        loop {
            let is_idle = confirmed == self.done;
            let until = if is_idle { heard + SILENCE_MAX } else { confirm_at };
            match timeout_at(until, wire.next()).await {
                Ok(streamed) => {
                    heard = Instant::now();
                    match streamed? {
                        Streamed::Change(message) => self.take(pgoutput::read(message)?).await?,
                        Streamed::Keepalive { end, wants_reply } => {
                            // Between two transactions: nothing of ours is in between.
                            if self.now.is_none() {
                                self.done = self.done.max(end);
                            }
                            is_asked |= wants_reply;
                        }
                    }
                }
                Err(_) if is_idle => return Err(CdcError::Silent),
                Err(_) => {}
            }
            if is_asked || confirmed != self.done && Instant::now() >= confirm_at {
                wire.confirm(self.done).await?;
                (confirmed, is_asked) = (self.done, false);
                confirm_at = Instant::now() + CONFIRM_EVERY;
            }
        }
    }

    async fn take(&mut self, change: Change) -> Result<(), CdcError> {
        match change {
            Change::Begin { commit } => {
                self.now = Some(Transaction { commit, read: 0 });
            }
            Change::Relation(relation) => {
                self.relations.insert(relation.id, relation);
            }
            Change::Insert { relation, values } => self.insert(relation, values).await?,
            Change::Commit { end } => {
                self.done = self.done.max(end);
                self.now = None;
            }
            Change::Other => {}
        }
        Ok(())
    }

    /// Publishes a row, unless that was done before the connection was lost.
    async fn insert(&mut self, relation: u32, values: Vec<Option<Bytes>>) -> Result<(), CdcError> {
        let Some(now) = &mut self.now else { return Err(Unreadable.into()) };
        now.read += 1;
        let Transaction { commit, read } = *now;
        let is_partial =
            self.partial.is_some_and(|(of, published)| of == commit && read <= published);
        if commit < self.done || is_partial {
            return Ok(());
        }
        let relation = self.relations.get(&relation).ok_or(Unreadable)?;
        if let Some(row) = self.cdc.row(relation, &values)? {
            self.publish(row).await?;
        }
        self.partial = Some((commit, read));
        Ok(())
    }

    async fn publish(&self, row: Row) -> Result<(), CdcError> {
        let method = String::from_utf8_lossy(&row.method);
        loop {
            match publish(&self.server, &method, &row.payload).await {
                Ok(()) => return Ok(()),
                // Nothing may overtake it.
                Err(error) if error.code.is_temporary() => sleep(RETRY_AFTER).await,
                Err(error) => return self.cdc.set_aside(&row, &error).await,
            }
        }
    }
}

impl Cdc {
    /// The row, if it is one of the outbox.
    fn row(&self, relation: &Relation, values: &[Option<Bytes>]) -> Result<Option<Row>, CdcError> {
        let (schema, name) = self.table.parts();
        if relation.name != name || schema.is_some_and(|schema| relation.schema != schema) {
            return Ok(None);
        }
        let value = |column: &str| {
            let place = relation.columns.iter().position(|one| one == column)?;
            values.get(place).cloned().flatten()
        };
        let missing = |column, wanted| {
            let table = self.settings.outbox_table_name.clone();
            OutboxError::Column { table, column, wanted }
        };
        Ok(Some(Row {
            id: value("id"),
            method: value("method").ok_or_else(|| missing("method", "text"))?,
            payload: value("payload").ok_or_else(|| missing("payload", "jsonb"))?,
            partition: value("partition"),
        }))
    }

    /// Keeps a row that cannot be published where people find it.
    async fn set_aside(&self, row: &Row, error: &RpcError) -> Result<(), CdcError> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let number = |bytes: &Option<Bytes>| bytes.as_ref().map_or_else(|| "0".to_owned(), text);
        let id = number(&row.id);
        tracing::warn!(%error, consumer = %self.name, id, "a row of the outbox was set aside");
        let keep = format!(
            "INSERT INTO {} (id, method, payload, partition, error)
             VALUES ($1::text::bigint, $2, $3::text::jsonb, $4::text::integer, $5)
             ON CONFLICT (id) DO NOTHING",
            self.table.failed()
        );
        let kept = async {
            let client = self.client().await?;
            let (method, payload) = (text(&row.method), text(&row.payload));
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                [&id, &method, &payload, &number(&row.partition), &error.message];
            client.execute(&keep, &values).await?;
            Ok(())
        };
        timeout(STATEMENT_TIMEOUT, kept).await.unwrap_or(Err(OutboxError::Timeout.into()))
    }
}

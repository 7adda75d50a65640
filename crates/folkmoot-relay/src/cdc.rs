//! Change data capture: what a backend inserts into its outbox is read from PostgreSQL's own log, by
//! logical replication, as soon as it is committed and in the order of the commits. Nothing polls,
//! and nobody has to delete rows: a backend may delete them in the transaction that inserts them.
//!
//! The database keeps its log until it hears that a transaction was published. After a lost
//! connection it sends again what it has not heard of; this process knows what it has published and
//! passes over that.

mod pgoutput;
mod progress;
mod reader;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use folkmoot_protocol::rpc::RpcError;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use crate::outbox::OutboxError;
use crate::outbox::table::{Table, quoted};
use crate::server::Server;
use crate::settings::{CdcSettings, ConsumerSettings, SettingsError};
use pgoutput::{Lsn, Relation, Unreadable};
use reader::Reader;
use wire::WireError;

/// Between two attempts to reach the database, or to publish what cannot be published just now.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// The database says something every half minute; who says nothing for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// For statements beside the stream.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A table whose new rows are published.
#[derive(Debug)]
pub(crate) struct Cdc {
    name: Arc<str>,
    settings: CdcSettings,
    database: althing_postgres::Server,
    table: Table,
}

/// Why nothing can be read at the moment.
#[derive(Debug, thiserror::Error)]
enum CdcError {
    #[error(
        "the database's log ends at {end:x}, and was published up to {done:x}: the database was \
         brought back from an older state. What its slot has is published from there on"
    )]
    WentBack { done: Lsn, end: Lsn },
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
    #[error("the slot `{0}` is read by another process, or by a connection that was lost just now")]
    Taken(String),
    #[error(
        "the publication `{0}` names the parts of a partitioned table, and not the table; \
         ALTER PUBLICATION {0} SET (publish_via_partition_root = true)"
    )]
    Parts(String),
    #[error(
        "the publication `{0}` does not have what is inserted into the table, which may have been made \
         anew; ALTER PUBLICATION {0} ADD TABLE, and publish anew what was inserted before"
    )]
    Unpublished(String),
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
        let database = settings.dsn.parse::<althing_postgres::Server>();
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

    /// Publishes until the server stops, by a task among `tasks`.
    pub(crate) fn start(self, server: &Arc<Server>, tasks: &mut JoinSet<()>) {
        tasks.spawn(Reader::new(self, server.clone()).run());
    }

    async fn client(&self) -> Result<Client, CdcError> {
        let (client, connection) = self.database.connect().await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Makes table, publication and slot, as far as they are missing; returns which slot it is, and
    /// how far.
    async fn prepare(&self) -> Result<Slot, CdcError> {
        let client = self.client().await?;
        // Nodes that start together would meet what one of them is making. Ends with the connection.
        client.batch_execute("SELECT pg_advisory_lock(hashtext('folkmoot relay'), 1)").await?;
        self.table.prepare(&client).await?;
        let level: String = client.query_one("SHOW wal_level", &[]).await?.get(0);
        if level != "logical" {
            return Err(CdcError::WalLevel(level));
        }
        let (slot, publication) = (&self.settings.slot_name, &self.settings.publication_name);
        self.publish(&client, publication).await?;
        client
            .batch_execute(
                "CREATE TABLE IF NOT EXISTS folkmoot_relay_slots (
                     slot text PRIMARY KEY, made_at timestamptz NOT NULL DEFAULT now())",
            )
            .await?;
        let state = "SELECT wal_status, active FROM pg_replication_slots WHERE slot_name = $1";
        let state = client.query_opt(state, &[slot]).await?;
        let is_lost =
            state.as_ref().is_some_and(|row| row.get::<_, Option<&str>>(0) == Some("lost"));
        let note = "INSERT INTO folkmoot_relay_slots (slot) VALUES ($1) ON CONFLICT DO NOTHING";
        if state.as_ref().is_some_and(|row| row.get(1)) {
            return Err(CdcError::Taken(slot.clone()));
        }
        if state.is_some() && !is_lost {
            // Also one that somebody else made, or a relay that was killed just then.
            client.execute(note, &[slot]).await?;
            return Slot::of(&client, slot).await;
        }
        // A slot that was there once and is not would hide what it has missed.
        let known = "SELECT 1 FROM folkmoot_relay_slots WHERE slot = $1";
        if is_lost || client.query_opt(known, &[slot]).await?.is_some() {
            return Err(CdcError::SlotGone(slot.clone()));
        }
        let made = "SELECT pg_create_logical_replication_slot($1, 'pgoutput')";
        client.query_one(made, &[slot]).await?;
        client.execute(note, &[slot]).await?;
        Slot::of(&client, slot).await
    }

    /// Has the slot go by another name from now on: its log is another one.
    async fn rename_slot(&self) -> Result<(), CdcError> {
        let renamed = "UPDATE folkmoot_relay_slots SET made_at = clock_timestamp() WHERE slot = $1";
        self.client().await?.execute(renamed, &[&self.settings.slot_name]).await?;
        Ok(())
    }
}

impl Cdc {
    /// Makes the publication if it is missing. Rows of a table in partitions are to come as rows of
    /// the table: the names of its parts say nothing.
    async fn publish(&self, client: &Client, publication: &str) -> Result<(), CdcError> {
        if self.is_published(client, publication).await? {
            return Ok(());
        }
        let (name, table) = (quoted(publication), self.table.quoted());
        let options = "publish = 'insert', publish_via_partition_root = true";
        let made = format!("CREATE PUBLICATION {name} FOR TABLE {table} WITH ({options})");
        Ok(client.batch_execute(&made).await?)
    }

    /// Whether there is the publication, or an error if it leaves out rows of the table.
    async fn is_published(&self, client: &Client, publication: &str) -> Result<bool, CdcError> {
        let known = "SELECT pubviaroot OR relkind <> 'p',
                         pubinsert AND EXISTS (
                             SELECT FROM pg_publication_tables AS published
                             WHERE published.pubname = $1 AND pg_class.oid
                                 = to_regclass(format('%I.%I', schemaname, tablename)))
                     FROM pg_publication, pg_class
                     WHERE pg_publication.pubname = $1 AND pg_class.oid = to_regclass($2)";
        let known = client.query_opt(known, &[&publication, &self.table.quoted()]).await?;
        match known.map(|row| (row.get(0), row.get(1))) {
            None => Ok(false),
            Some((true, true)) => Ok(true),
            Some((false, _)) => Err(CdcError::Parts(publication.to_owned())),
            Some((true, false)) => Err(CdcError::Unpublished(publication.to_owned())),
        }
    }

    /// Looks whether what is inserted comes by the stream still: of a table that was made anew nothing
    /// does, and the stream says nothing of that.
    async fn look(&self) -> Result<(), CdcError> {
        let looking = async {
            let client = self.client().await?;
            self.is_published(&client, &self.settings.publication_name).await
        };
        match timeout(STATEMENT_TIMEOUT, looking).await {
            Ok(Err(error @ (CdcError::Parts(_) | CdcError::Unpublished(_)))) => Err(error),
            outcome => {
                tracing::trace!(?outcome, "the publication was looked at");
                Ok(())
            }
        }
    }
}

/// A slot as the database has it.
#[derive(Debug)]
struct Slot {
    /// Its name with the time at which it was noted: another one of the same name, perhaps of
    /// another database, has other places in its log.
    source: Arc<str>,
    /// All transactions up to here were published, by whichever relay.
    confirmed: Lsn,
    /// Where the database's log ends.
    end: Lsn,
}

impl Slot {
    async fn of(client: &Client, slot: &str) -> Result<Self, CdcError> {
        let asked = "SELECT (extract(epoch FROM made_at) * 1000000)::bigint,
                            (coalesce(confirmed_flush_lsn, '0/0') - '0/0')::bigint,
                            (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                                  ELSE pg_current_wal_flush_lsn() END - '0/0')::bigint
                     FROM folkmoot_relay_slots JOIN pg_replication_slots ON slot_name = slot
                     WHERE slot = $1";
        let row = client.query_one(asked, &[&slot]).await?;
        let place = |column| row.get::<_, i64>(column).cast_unsigned();
        let source = format!("cdc/{slot}/{}", row.get::<_, i64>(0)).into();
        Ok(Self { source, confirmed: place(1), end: place(2) })
    }
}

/// A row of the outbox.
#[derive(Debug)]
struct Row {
    id: Option<Bytes>,
    method: Bytes,
    payload: Bytes,
    partition: Option<Bytes>,
}

impl Cdc {
    /// Whether rows of a relation are of the outbox.
    fn is_outbox(&self, relation: &Relation) -> bool {
        let (schema, name) = self.table.parts();
        relation.name == name && schema.is_none_or(|schema| relation.schema == schema)
    }

    /// An error, unless the table fits: then what does not was inserted before it did.
    async fn fits(&self) -> Result<(), CdcError> {
        let looking = async { Ok(self.table.prepare(&self.client().await?).await?) };
        timeout(STATEMENT_TIMEOUT, looking).await.unwrap_or(Err(OutboxError::Timeout.into()))
    }

    /// Keeps a row that cannot be published where people find it, as soon as the database takes it:
    /// those behind it may be published already, and must not come again.
    async fn set_aside(&self, row: &Row, error: &RpcError) {
        tracing::warn!(%error, consumer = %self.name, id = %row.id(), "a row was set aside");
        while let Err(failed) = self.try_set_aside(row, error).await {
            tracing::debug!(error = %failed, "a row could not be set aside yet");
            sleep(RETRY_AFTER).await;
        }
    }

    async fn try_set_aside(&self, row: &Row, error: &RpcError) -> Result<(), CdcError> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let partition = row.partition.as_ref().map_or_else(|| "0".to_owned(), text);
        let kept = async {
            let client = self.client().await?;
            self.table.make(&client).await?;
            if row.payload.is_empty() {
                // It was not read, and is in the table unless the backend has deleted it.
                let id = row.id().parse::<i64>().unwrap_or(0);
                let number = partition.parse::<i32>().unwrap_or(0);
                let known = format!(
                    "SELECT FROM {} WHERE id = $1 AND partition = $2 LIMIT 1",
                    self.table.quoted()
                );
                if client.query_opt(&known, &[&id, &number]).await?.is_some() {
                    let (written, place) = (None::<i64>, None::<&str>);
                    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                        [&id, &error.message, &number, &written, &place];
                    client.execute(&self.table.set_aside(), &values).await?;
                    return Ok(());
                }
            }
            let payload = if row.payload.is_empty() { "null".into() } else { text(&row.payload) };
            let method = text(&row.method);
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                [&row.id(), &method, &payload, &partition, &error.message];
            client.execute(&self.table.set_aside_values(), &values).await?;
            Ok(())
        };
        timeout(STATEMENT_TIMEOUT, kept).await.unwrap_or(Err(OutboxError::Timeout.into()))
    }
}

impl Relation {
    /// The value of a column in a row.
    fn value(&self, column: &str, values: &[Option<Bytes>]) -> Option<Bytes> {
        let place = self.columns.iter().position(|one| one == column)?;
        values.get(place).cloned().flatten()
    }
}

impl Row {
    /// A row of the outbox.
    ///
    /// # Errors
    /// The column that it lacks: the table was another one when it was inserted.
    fn read(relation: &Relation, values: &[Option<Bytes>]) -> Result<Self, &'static str> {
        let value = |column: &str| relation.value(column, values);
        let (id, partition) = (value("id"), value("partition"));
        let method = value("method").ok_or("method")?;
        let payload = value("payload").ok_or("payload")?;
        Ok(Self { id, method, payload, partition })
    }

    /// What is known of a row that cannot be read whole: its payload is empty.
    fn cut(relation: &Relation, values: &[Option<Bytes>]) -> Self {
        Self {
            id: relation.value("id", values),
            method: relation.value("method", values).unwrap_or_default(),
            payload: Bytes::new(),
            partition: relation.value("partition", values),
        }
    }

    fn id(&self) -> String {
        let id = self.id.as_ref().map(|id| String::from_utf8_lossy(id).into_owned());
        id.unwrap_or_else(|| "0".to_owned())
    }
}

//! The outbox: a table of PostgreSQL whose rows are commands of the server API. A backend writes
//! them in the transaction that changes its data, so what was committed is published, and what was
//! rolled back never.
//!
//! Rows of one partition are published in the order of their ids and deleted afterwards. A row that
//! was published and could not be deleted, because the database went away, is not published again
//! by this process, and not by its successor if its channel is durable. One that names no method or
//! is refused is set aside in the table `<outbox>_failed` with the reason, and holds nobody up.

mod backlog;
mod partition;
pub(crate) mod table;

use std::sync::Arc;
use std::time::Duration;

use althing_postgres::Connection;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_postgres::{AsyncMessage, Client};

use crate::server::Server;
use crate::settings::{ConsumerSettings, OutboxSettings, SettingsError};
use partition::Partition;
use table::Table;

/// Between two attempts to reach the database.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// How long a statement may take before the connection is taken for dead.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A table that is to be published.
#[derive(Debug)]
pub(crate) struct Outbox {
    name: Arc<str>,
    /// By which its rows are recognised.
    source: Arc<str>,
    settings: OutboxSettings,
    database: althing_postgres::Server,
    table: Table,
}

/// Why a partition cannot be read at the moment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutboxError {
    #[error("the database: {}", told(.0))]
    Database(#[from] tokio_postgres::Error),
    #[error("the database did not answer within {} s", STATEMENT_TIMEOUT.as_secs())]
    Timeout,
    #[error("the table {table} has no column `{column}` of type {wanted} NOT NULL")]
    Column { table: String, column: &'static str, wanted: &'static str },
}

/// The library says only "db error"; the server's words are in the source.
pub(crate) fn told(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

impl Outbox {
    pub(crate) fn new(consumer: ConsumerSettings) -> Result<Self, SettingsError> {
        let ConsumerSettings { name, postgresql: settings, .. } = consumer;
        let invalid = |text: String| SettingsError::Invalid(format!("consumer `{name}`: {text}"));
        let database = settings.dsn.parse::<althing_postgres::Server>();
        let mut database = database.map_err(|error| invalid(format!("dsn: {error}")))?;
        database.config.connect_timeout(STATEMENT_TIMEOUT);
        let table = Table::new(&settings.outbox_table_name)
            .ok_or_else(|| invalid("outbox_table_name is no name of a table".to_owned()))?;
        if settings.num_partitions == 0 || settings.partition_select_limit == 0 {
            let text = "num_partitions and partition_select_limit are at least 1";
            return Err(invalid(text.to_owned()));
        }
        let source = format!("outbox/{name}").into();
        Ok(Self { name: name.into(), source, settings, database, table })
    }

    /// Publishes until the server stops, each partition by a task of its own among `tasks`.
    pub(crate) fn start(self, server: &Arc<Server>, tasks: &mut JoinSet<()>) {
        let outbox = Arc::new(self);
        tasks.spawn(backlog::watch(outbox.clone(), server.clone()));
        for number in 0..outbox.settings.num_partitions {
            let partition = Partition::new(outbox.clone(), server.clone(), number);
            tasks.spawn(partition.run());
        }
    }

    /// A connection, and what is told when somebody says that there are rows.
    async fn connect(&self) -> Result<(Client, Arc<Notify>), OutboxError> {
        let (client, connection) = self.database.connect().await?;
        let told = Arc::new(Notify::new());
        tokio::spawn(drive(connection, told.clone()));
        let channel = &self.settings.partition_notification_channel;
        if !channel.is_empty() {
            client.batch_execute(&format!("LISTEN {}", table::quoted(channel))).await?;
        }
        Ok((client, told))
    }
}

/// Moves bytes until the connection ends.
async fn drive(mut connection: Connection, told: Arc<Notify>) {
    loop {
        let message = std::future::poll_fn(|cx| connection.poll_message(cx)).await;
        match message {
            Some(Ok(AsyncMessage::Notification(_))) => told.notify_one(),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, "the connection to the outbox has ended");
                return told.notify_one();
            }
            None => return told.notify_one(),
        }
    }
}

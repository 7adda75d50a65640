//! The store in a PostgreSQL database: a row for the record, and a row for the lead.
//!
//! How long a lead lasts is measured by the database's clock. Only the next leader's patience
//! depends on it: see `candidate`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use althing_postgres::Server;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::storage::{Claimant, Lead, Op, Replaced, Storage, StorageError, opened, sealed};
use crate::record::Record;

/// One of a transaction's locks, so that candidates that begin at one time make the tables once.
/// The number is arbitrary, and belongs to this library.
const TABLES: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(4842873920165431);
CREATE TABLE IF NOT EXISTS althing_cluster_record (
    cluster text PRIMARY KEY,
    writes bigint NOT NULL,
    record bytea NOT NULL
);
CREATE TABLE IF NOT EXISTS althing_cluster_lead (
    cluster text PRIMARY KEY,
    term bigint NOT NULL,
    leader bigint NOT NULL,
    address text NOT NULL,
    until timestamptz NOT NULL
);
COMMIT;";

/// Whatever the role has set: a record that was acknowledged and is lost with the server would begin
/// epochs anew, and a statement sees what others have committed while it waited for them.
const SETTINGS: &str = "
    SET default_transaction_read_only = off;
    SET default_transaction_isolation = 'read committed';
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') IN ('off', 'local')";

const RENEW: &str = "UPDATE althing_cluster_lead
    SET until = clock_timestamp() + $3 * interval '1 millisecond', address = $4
    WHERE cluster = $1 AND leader = $2 RETURNING term";

const LOOK: &str = "SELECT term, leader, address, until > clock_timestamp()
    FROM althing_cluster_lead WHERE cluster = $1";

const TAKE: &str =
    "INSERT INTO althing_cluster_lead AS lead (cluster, term, leader, address, until)
    VALUES ($1, 1, $2, $4, clock_timestamp() + $3 * interval '1 millisecond')
    ON CONFLICT (cluster) DO UPDATE
    SET term = lead.term + 1, leader = excluded.leader, address = excluded.address,
        until = excluded.until
    WHERE lead.until <= clock_timestamp()";

/// The row stays: it remembers the term.
const RESIGN: &str = "UPDATE althing_cluster_lead SET until = '-infinity', leader = 0
    WHERE cluster = $1 AND leader = $2";

/// A database, and the cluster's name in it.
pub(crate) struct Postgres {
    server: Server,
    cluster: String,
    patience: Duration,
    session: Mutex<Option<Session>>,
}

/// A connection; it ends when this is dropped, whatever the server does.
struct Session {
    client: Arc<Client>,
    connection: AbortHandle,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Postgres {
    /// Connects when it is first asked for something.
    pub(crate) fn new(mut server: Server, cluster: &str, patience: Duration) -> Self {
        let config = &mut server.config;
        config.connect_timeout(patience).tcp_user_timeout(patience);
        if config.get_application_name().is_none() {
            config.application_name("althing-cluster");
        }
        Self { server, cluster: cluster.to_owned(), patience, session: Mutex::default() }
    }

    /// Runs an operation on the connection that there is, or on a new one. One that has failed an
    /// operation is given up: nobody knows what is still under way there.
    async fn run<T, F>(
        &self,
        operation: impl FnOnce(Arc<Client>) -> F + Send,
    ) -> Result<T, StorageError>
    where
        F: Future<Output = Result<T, StorageError>> + Send,
    {
        let mut used = None;
        let run = async {
            let client = self.client().await?;
            used = Some(client.clone());
            operation(client).await
        };
        let ended = match timeout(self.patience, run).await {
            Ok(ended) => ended,
            Err(_) => Err(StorageError::Silent(self.patience)),
        };
        if ended.is_err() {
            let mut session = self.session.lock().await;
            let is_used = |session: &Session| {
                used.as_ref().is_some_and(|used| Arc::ptr_eq(used, &session.client))
            };
            if session.as_ref().is_some_and(is_used) {
                *session = None;
            }
        }
        ended
    }

    async fn client(&self) -> Result<Arc<Client>, StorageError> {
        let mut session = self.session.lock().await;
        if let Some(session) = session.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(session.client.clone());
        }
        *session = None;
        let (client, connection) = self.server.connect().await?;
        let connection = tokio::spawn(async move {
            // Whoever uses the client hears of it.
            _ = connection.await;
        });
        let made = Session { client: Arc::new(client), connection: connection.abort_handle() };
        let client = made.client.clone();
        client.batch_execute(SETTINGS).await?;
        // Who may use the tables need not be one who may make them.
        let there = "SELECT count(to_regclass(name)) = 2
            FROM unnest(ARRAY['althing_cluster_record', 'althing_cluster_lead']) AS name";
        if !client.query_one(there, &[]).await?.get::<_, bool>(0) {
            client.batch_execute(TABLES).await?;
        }
        *session = Some(made);
        Ok(client)
    }

    async fn claim_on(
        &self,
        client: &Client,
        me: &Claimant,
        lead_for: Duration,
    ) -> Result<Lead, StorageError> {
        let (id, lead_for) = (me.id.cast_signed(), lead_for.as_secs_f64() * 1_000.0);
        let mine: [&(dyn ToSql + Sync); 4] = [&self.cluster, &id, &lead_for, &me.address];
        if let Some(row) = client.query_opt(RENEW, &mine).await? {
            let term = row.get::<_, i64>(0).cast_unsigned();
            return Ok(Lead { leader: me.clone(), term });
        }
        let look = async || client.query_opt(LOOK, &[&self.cluster]).await;
        let mut row = look().await?;
        // A look costs the server nothing, an attempt to take it does.
        if !row.as_ref().is_some_and(|row| row.get(3)) {
            client.execute(TAKE, &mine).await?;
            row = look().await?;
        }
        let row =
            row.ok_or_else(|| StorageError::Damaged("the row of the lead goes".to_owned()))?;
        let id = row.get::<_, i64>(1).cast_unsigned();
        let term = row.get::<_, i64>(0).cast_unsigned();
        Ok(Lead { leader: Claimant { id, address: row.get(2) }, term })
    }
}

impl Storage for Postgres {
    fn claim<'a>(&'a self, me: &'a Claimant, lead_for: Duration) -> Op<'a, Lead> {
        Box::pin(self.run(move |client| async move { self.claim_on(&client, me, lead_for).await }))
    }

    fn resign<'a>(&'a self, me: &'a Claimant) -> Op<'a, ()> {
        Box::pin(self.run(move |client| async move {
            client.execute(RESIGN, &[&self.cluster, &me.id.cast_signed()]).await?;
            Ok(())
        }))
    }

    fn load(&self) -> Op<'_, Record> {
        Box::pin(self.run(move |client| async move {
            let select = "SELECT record FROM althing_cluster_record WHERE cluster = $1";
            match client.query_opt(select, &[&self.cluster]).await? {
                Some(row) => opened(row.get(0)),
                None => Ok(Record::empty()),
            }
        }))
    }

    fn replace<'a>(&'a self, expected: u64, record: &'a Record) -> Op<'a, Replaced> {
        Box::pin(self.run(move |client| async move {
            let (cluster, bytes) = (&self.cluster, sealed(record));
            let (expected, writes) = (expected.cast_signed(), record.writes.cast_signed());
            let replaced = if expected == 0 {
                let insert = "INSERT INTO althing_cluster_record (cluster, writes, record)
                    VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
                client.execute(insert, &[cluster, &writes, &bytes]).await?
            } else {
                let update = "UPDATE althing_cluster_record SET writes = $2, record = $3
                    WHERE cluster = $1 AND writes = $4";
                client.execute(update, &[cluster, &writes, &bytes, &expected]).await?
            };
            Ok(if replaced == 1 { Replaced::Done } else { Replaced::Refused })
        }))
    }
}

/// An error of the driver says no more than "db error"; what the server said is in its sources.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use althing_testkit::servers::PostgresServer;

    use super::Postgres;
    use crate::authority::conformance;
    use crate::authority::storage::{Claimant, Replaced, Storage};
    use crate::record::Record;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn open(server: &PostgresServer, cluster: &str, patience: Duration) -> Postgres {
        let config = server.url().parse().expect("it is a URL");
        Postgres::new(config, cluster, patience)
    }

    #[tokio::test]
    async fn postgresql_keeps_every_promise() {
        let server = PostgresServer::start();
        conformance::run(|cluster| {
            Some(Arc::new(open(&server, cluster, PATIENCE)) as Arc<dyn Storage>)
        })
        .await;
    }

    /// Settings with which other programs may want to be treated.
    const STRICT: &str = "
        CREATE ROLE strict LOGIN SUPERUSER;
        ALTER ROLE strict SET default_transaction_isolation = 'serializable';
        ALTER ROLE strict SET default_transaction_read_only = on;
        ALTER ROLE strict SET idle_session_timeout = '300ms'";

    #[tokio::test]
    async fn postgresql_keeps_every_promise_whatever_the_role_has_set() {
        let server = PostgresServer::start();
        let connected = server.url().parse::<super::Server>().expect("it is a URL").connect().await;
        let (client, connection) = connected.expect("it takes connections");
        tokio::spawn(connection);
        client.batch_execute(STRICT).await.expect("a superuser may do that");
        let url = server.url().replace("test@", "strict@");
        conformance::run(|cluster| {
            let server = url.parse().expect("it is a URL");
            Some(Arc::new(Postgres::new(server, cluster, PATIENCE)) as Arc<dyn Storage>)
        })
        .await;
    }

    #[tokio::test]
    async fn a_server_that_hangs_is_an_error_and_one_that_comes_back_has_what_it_acknowledged() {
        let mut server = PostgresServer::start();
        let store = open(&server, "one", Duration::from_millis(500));
        let record = Record { writes: 1, ..Record::empty() };
        assert_eq!(store.replace(0, &record).await.expect("it answers"), Replaced::Done);
        server.pause();
        let me = Claimant { id: 1, address: String::new() };
        let silent = store.claim(&me, PATIENCE).await.expect_err("it hangs");
        assert!(silent.to_string().contains("did not answer"), "{silent}");
        server.resume();
        server.start_again();
        // A crashed server recovers before it answers.
        let store = open(&server, "one", PATIENCE);
        assert_eq!(store.load().await.expect("it is back"), record);
    }
}

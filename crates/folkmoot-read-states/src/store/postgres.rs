//! Rows in PostgreSQL. Who saves looks in the same transaction whether the rows are still its own,
//! so a process that was replaced changes nothing any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use althing_postgres::Server;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::{Client, Error};

use super::entries::{decode, encode};
use super::{Answer, FORMAT, Row, RowStore, StoreError, VERSION_BITS, check_format};

/// How long the server may take for one answer, a connection included.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Whatever the role or the server says. A commit is on the disk when it is answered: the log forgets
/// what was saved; a setting that is stricter stays so. A statement has as long as we wait for it: a
/// batch that ended sooner would be tried again for ever. A statement sees what others have committed
/// while it waited for them.
const SETTINGS: &str = "
    SET statement_timeout = '10s';
    SET lock_timeout = 0;
    SET default_transaction_isolation = 'read committed';
    SET default_transaction_read_only = off;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') IN ('off', 'local');";

/// The lock keeps processes that start together from making the tables at once.
const TABLES: &str = "
    BEGIN;
    SELECT pg_advisory_xact_lock(1718578283, 1919247731);
    CREATE TABLE IF NOT EXISTS folkmoot_read_states (
        user_id bigint PRIMARY KEY,
        version bigint NOT NULL,
        entries bytea NOT NULL
    );
    CREATE TABLE IF NOT EXISTS folkmoot_read_states_owner (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        epoch bigint NOT NULL,
        format int NOT NULL
    );
    INSERT INTO folkmoot_read_states_owner VALUES (true, 0, 1) ON CONFLICT DO NOTHING;
    COMMIT;";

const THERE: &str = "SELECT count(to_regclass(name)) = 2
    FROM unnest(ARRAY['folkmoot_read_states', 'folkmoot_read_states_owner']) AS name";

/// Tables of a later version are left as they are.
const TAKE_OVER: &str = "UPDATE folkmoot_read_states_owner SET epoch = greatest(epoch, $1) + 1
    WHERE format <= $2 RETURNING epoch";

const FOUND_FORMAT: &str = "SELECT format FROM folkmoot_read_states_owner";

const LOAD: &str = "SELECT version, entries FROM folkmoot_read_states WHERE user_id = $1";

/// Writes nothing for one who has been replaced, and gives a row only to one who has not. The lock
/// is shared by those who save, and keeps out who takes over.
const SAVE: &str = "
    WITH owner AS (
        SELECT epoch FROM folkmoot_read_states_owner WHERE epoch = $1 FOR SHARE
    ), saved AS (
        INSERT INTO folkmoot_read_states AS stored (user_id, version, entries)
        SELECT new.* FROM owner, unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS new
        ON CONFLICT (user_id) DO UPDATE
        SET version = excluded.version, entries = excluded.entries
        WHERE excluded.version > stored.version
    )
    SELECT FROM owner";

/// Keeps rows in tables `folkmoot_read_states…` of a PostgreSQL database (13 or later), which it
/// makes itself. Loads and saves have a connection each.
pub struct PostgresRows {
    loads: Arc<Session>,
    saves: Arc<Session>,
    /// 0 until it has taken the rows over.
    epoch: Arc<Mutex<i64>>,
}

/// A connection, made again when it has ended.
struct Session {
    server: Server,
    client: Mutex<Option<Arc<Client>>>,
}

impl PostgresRows {
    /// Connects to a server by its URL, and makes the tables if they are missing. TLS is as
    /// [`althing_postgres`] has it.
    ///
    /// # Errors
    /// The URL cannot be read, the server cannot be used, or its tables are of a later version.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        const DOING: &str = "connect";
        let server = url.parse::<Server>();
        let mut server = server.map_err(|error| StoreError::new(DOING, error.to_string()))?;
        server.config.connect_timeout(ANSWER_WITHIN).tcp_user_timeout(ANSWER_WITHIN);
        if server.config.get_application_name().is_none() {
            server.config.application_name("folkmoot read-states");
        }
        let session = || Arc::new(Session { server: server.clone(), client: Mutex::default() });
        let rows = Self { loads: session(), saves: session(), epoch: Arc::default() };
        rows.saves
            .ask(DOING, async |client| {
                // Who may use the tables need not be one who may make them.
                if !client.query_one(THERE, &[]).await?.get::<_, bool>(0) {
                    client.batch_execute(TABLES).await?;
                }
                Ok(())
            })
            .await?;
        Ok(rows)
    }
}

impl Session {
    async fn ask<T>(
        &self,
        doing: &'static str,
        ask: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        let asked = async { ask(&*self.client().await?).await };
        let why = match timeout(ANSWER_WITHIN, asked).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => in_full(&error),
            Err(_) => format!("the server did not answer within {ANSWER_WITHIN:?}"),
        };
        // It may be in the middle of something: the next one begins anew.
        *self.client.lock().await = None;
        Err(StoreError::new(doing, why))
    }

    async fn client(&self) -> Result<Arc<Client>, Error> {
        let mut known = self.client.lock().await;
        if let Some(client) = known.as_ref().filter(|client| !client.is_closed()) {
            return Ok(client.clone());
        }
        let (client, connection) = self.server.connect().await?;
        tokio::spawn(async move {
            // Whoever uses the client hears of it.
            _ = connection.await;
        });
        client.batch_execute(SETTINGS).await?;
        Ok(known.insert(Arc::new(client)).clone())
    }
}

impl RowStore for PostgresRows {
    fn take_over(&self, version: u64) -> Answer<u64> {
        const DOING: &str = "take the rows over";
        let (session, ours) = (self.saves.clone(), self.epoch.clone());
        Box::pin(async move {
            let above = (version >> VERSION_BITS).cast_signed();
            let taken = session.ask(DOING, async |client| {
                let taken = client.query_opt(TAKE_OVER, &[&above, &FORMAT]).await?;
                let format = client.query_one(FOUND_FORMAT, &[]).await?;
                Ok((taken.map(|row| row.get::<_, i64>(0)), format.get(0)))
            });
            let (epoch, format) = taken.await?;
            check_format(format)?;
            let Some(epoch) = epoch else { return Err(StoreError::new(DOING, "nobody has them")) };
            *ours.lock().await = epoch;
            Ok(epoch.cast_unsigned() << VERSION_BITS)
        })
    }

    fn load(&self, user: u64) -> Answer<Option<Row>> {
        let session = self.loads.clone();
        Box::pin(async move {
            let load = async |client: &Client| client.query_opt(LOAD, &[&user.cast_signed()]).await;
            let found = session.ask("load a row", load).await?;
            Ok(found.map(|row| Row {
                user,
                version: row.get::<_, i64>(0).cast_unsigned(),
                entries: decode(row.get(1)),
            }))
        })
    }

    fn save(&self, rows: Vec<Row>) -> Answer<()> {
        const DOING: &str = "save rows";
        let (session, epoch) = (self.saves.clone(), self.epoch.clone());
        Box::pin(async move {
            if rows.is_empty() {
                return Ok(());
            }
            let epoch = *epoch.lock().await;
            let rows = newest(&rows);
            let users: Vec<_> = rows.keys().map(|user| user.cast_signed()).collect();
            let versions: Vec<_> = rows.values().map(|row| row.version.cast_signed()).collect();
            let entries: Vec<_> = rows.values().map(|row| encode(&row.entries)).collect();
            let save = async |client: &Client| {
                client.query_opt(SAVE, &[&epoch, &users, &versions, &entries]).await
            };
            let is_ours = session.ask(DOING, save).await?.is_some();
            if is_ours { Ok(()) } else { Err(StoreError::taken_over(DOING)) }
        })
    }
}

/// One row for each user: a statement changes a row once.
fn newest(rows: &[Row]) -> BTreeMap<u64, &Row> {
    let mut newest = BTreeMap::new();
    for row in rows {
        let found = newest.entry(row.user).or_insert(row);
        if found.version < row.version {
            *found = row;
        }
    }
    newest
}

/// With what it comes from: the driver's own words say little.
fn in_full(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

//! `folkmoot retention`: shows how long messages are kept and sets it, beside a running server too.
//! Without one it deletes at once what is due; a running one does that within the hour.

use std::path::Path;

use rusqlite::OpenFlags;

use crate::config::Config;
use crate::progress::Bar;
use crate::storage::retention::{of_rooms, of_server, set_of_room, set_of_server};
use crate::storage::sql::Connection;
use crate::storage::{
    AppendError, ControlError, Due, Keeps, OpenError, ReadError, Record, Retention, RoomEvent,
    RoomId, RoomRecord, RoomRetention, SqlError, Store, StoreAddress, StoreOptions, UnixMillis,
    connect_beside, database, require_directory,
};

/// A server's transaction takes milliseconds; a batch on a slow disk takes seconds.
const LOCK_PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// What to set; nothing: rules are shown, and what is due is deleted.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RetentionFlags {
    /// Of this room only; its id is in its address
    #[arg(long, value_name = "ID")]
    pub room: Option<RoomId>,
    /// Deletes messages when they are so many days old
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub days: Option<u32>,
    /// Keeps so many of the newest messages of a room
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub messages: Option<u64>,
    /// Keeps everything again
    #[arg(long, conflicts_with_all = ["days", "messages"])]
    pub forever: bool,
    /// The room has no rule of its own any more
    #[arg(long, requires = "room", conflicts_with_all = ["days", "messages", "forever"])]
    pub as_server: bool,
}

/// Why a rule was not set, or what is due not deleted; a retry goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// The data directory cannot be used.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// There is no such room.
    #[error("there is no room {0}")]
    NoRoom(RoomId),
    /// The database of a running server refused.
    #[error("the database: {0}")]
    Database(#[from] SqlError),
    /// A transaction failed.
    #[error("{0}")]
    Control(#[from] ControlError),
    /// The database cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The log refused.
    #[error("{0}")]
    Append(#[from] AppendError),
}

/// The rules as they are now, and what was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retained {
    /// Of the server.
    pub server: Retention,
    /// Of rooms with one of their own.
    pub rooms: Vec<RoomRetention>,
    /// Messages deleted; `None`: a server runs, and deletes them itself.
    pub deleted: Option<u64>,
}

impl RetentionFlags {
    /// What to set for whom: `Some(None)` takes the rule of a room away.
    fn rule(&self) -> Option<Option<Retention>> {
        let Self { days, messages, .. } = *self;
        if self.as_server {
            return Some(None);
        }
        let is_set = self.forever || days.is_some() || messages.is_some();
        is_set.then_some(Some(Retention { days, messages }))
    }
}

/// Sets what the flags say; deletes what is due if no server does.
///
/// # Errors
/// [`RetentionError`]; what was set and deleted by then stays so.
pub async fn retain(
    config: &Config,
    flags: &RetentionFlags,
    now: UnixMillis,
) -> Result<Retained, RetentionError> {
    let database = config.database.clone();
    if database.is_none() {
        // Opening would make it: a rule for a directory that was mistyped is none for the server's.
        require_directory(config.data(), Keeps::Everything)?;
    }
    let options = StoreOptions { database, ..StoreOptions::new(config.data()) };
    let opened = tokio::task::spawn_blocking(move || Store::open(&options)).await;
    match opened.expect("opening a store does not panic") {
        Ok(store) => {
            let done = retain_in(&store, flags, now).await;
            // Also after a failure: what was acknowledged goes into the database.
            store.close().await;
            done
        }
        Err(OpenError::Locked { .. } | OpenError::DatabaseInUse { .. }) => {
            let (config, flags) = (config.clone(), flags.clone());
            let set = tokio::task::spawn_blocking(move || beside_a_server(&config, &flags));
            set.await.expect("setting a rule does not panic")
        }
        Err(error) => Err(error.into()),
    }
}

async fn retain_in(
    store: &Store,
    flags: &RetentionFlags,
    now: UnixMillis,
) -> Result<Retained, RetentionError> {
    if let Some(rule) = flags.rule() {
        match flags.room {
            Some(room) => match store.set_room_retention(room, rule).await {
                Err(ControlError::NotFound(_)) => return Err(RetentionError::NoRoom(room)),
                set => set?,
            },
            None => store.set_retention(rule.unwrap_or_default()).await?,
        }
    }
    let deleted = Some(delete_due(store, now).await?);
    let (server, rooms) = (store.retention().await?, store.room_retentions().await?);
    Ok(Retained { server, rooms, deleted })
}

/// In the database itself, which the server reads whenever it looks.
fn beside_a_server(config: &Config, flags: &RetentionFlags) -> Result<Retained, RetentionError> {
    let database = match &config.database {
        Some(StoreAddress::Postgres(address)) => connect_beside(address)?,
        Some(StoreAddress::Cassandra(address)) => {
            let (task, address) = ("`folkmoot retention`", address.clone());
            return Err(OpenError::NotBeside { task, address }.into());
        }
        None => open_beside(&database(config.data()))?,
    };
    let transaction = database.begin()?;
    if let Some(rule) = flags.rule() {
        match flags.room {
            Some(room) if !set_of_room(&transaction, room, rule)? => {
                return Err(RetentionError::NoRoom(room));
            }
            Some(_) => {}
            None => set_of_server(&transaction, rule.unwrap_or_default())?,
        }
    }
    let (server, rooms) = (of_server(&transaction)?, of_rooms(&transaction)?);
    transaction.commit()?;
    Ok(Retained { server, rooms, deleted: None })
}

fn open_beside(path: &Path) -> Result<Connection, SqlError> {
    let open = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = rusqlite::Connection::open_with_flags(path, open)?;
    database.busy_timeout(LOCK_PATIENCE)?;
    let database = Connection::from(database);
    // As the server's own connection: its segments are deleted once SQLite has their records.
    database.execute_batch("PRAGMA synchronous = FULL")?;
    Ok(database)
}

/// Deletes all that is due, as rooms do; there is no server that has them in memory.
async fn delete_due(store: &Store, now: UnixMillis) -> Result<u64, RetentionError> {
    let (mut rooms, mut after) = (Vec::new(), None);
    loop {
        let page = store.rooms_with_due(after, now).await?;
        rooms.extend(page.rooms);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let mut bar = Bar::new("rooms", rooms.len() as u64);
    let mut deleted = 0;
    for room in rooms {
        while let Some(due) = store.due(room, now).await? {
            deleted += due.messages;
            expire(store, due, now).await?;
        }
        bar.add(1);
    }
    bar.end();
    Ok(deleted)
}

async fn expire(store: &Store, due: Due, at: UnixMillis) -> Result<(), RetentionError> {
    store.ready().await?;
    let Due { room, up_to, .. } = due;
    let epoch = store.write_epoch();
    // Deleted meanwhile by nobody: the directory is ours.
    let Some(found) = store.room(room).await? else { return Ok(()) };
    let (offset, event) = (found.last_offset.next(), RoomEvent::Expired { up_to });
    let record = Record::Room(RoomRecord { room, offset, at, event });
    store.append(epoch, &record).await?;
    Ok(())
}

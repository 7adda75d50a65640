//! The statements, prepared once. The first word of each name says what it is about.

use scylla::client::session::Session;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use super::CassandraError;
use super::session::server;

/// The sort of a reply's row in `althing_actors`; a head's is 0, an event's 1, a delivery's 2.
pub(super) const REPLY: i8 = 3;

const HEAD_READ: &str = "
    SELECT epoch, version, last_event, moved, opened, written FROM althing_actors
    WHERE part = ? AND kind = ? AND key = ? AND sort = 0 AND number = 0 AND name = 0x";

const HEAD_OPEN: &str = "
    UPDATE althing_actors SET epoch = ?, opened = ?
    WHERE part = ? AND kind = ? AND key = ? AND sort = 0 AND number = 0 AND name = 0x IF epoch <= ?";

const HEAD_MAKE: &str = "
    INSERT INTO althing_actors
        (part, kind, key, sort, number, name, epoch, version, last_event, moved, opened)
    VALUES (?, ?, ?, 0, 0, 0x, ?, 0, 0, 0, ?) IF NOT EXISTS";

const HEAD_WRITE: &str = "
    UPDATE althing_actors SET epoch = ?, version = ?, last_event = ?, written = ?
    WHERE part = ? AND kind = ? AND key = ? AND sort = 0 AND number = 0 AND name = 0x
    IF epoch = ? AND version = ? AND opened = ?";

/// With the state, which is in the same row: as two statements it would cost the server twice.
const HEAD_WRITE_STATE: &str = "
    UPDATE althing_actors
    SET epoch = ?, version = ?, last_event = ?, written = ?, form = ?, body = ?, at = ?
    WHERE part = ? AND kind = ? AND key = ? AND sort = 0 AND number = 0 AND name = 0x
    IF epoch = ? AND version = ? AND opened = ?";

const HEAD_EXCLUDE: &str = "
    UPDATE althing_actors SET opened = ?
    WHERE part = ? AND kind = ? AND key = ? AND sort = 0 AND number = 0 AND name = 0x IF opened = ?";

const HEAD_MOVED: &str = "
    UPDATE althing_actors SET moved = ?
    WHERE part = ? AND kind = ? AND key = ? AND sort = 0 AND number = 0 AND name = 0x IF moved = ?";

const KEPT_READ: &str = "
    SELECT sort, number, form, body, at, request,
        epoch, version, last_event, moved, opened, written
    FROM althing_actors WHERE part = ? AND kind = ? AND key = ? AND sort IN (0, 3)";

const EVENT_WRITE: &str = "
    INSERT INTO althing_actors (part, kind, key, sort, number, name, form, body)
    VALUES (?, ?, ?, 1, ?, 0x, ?, ?)";

const EVENT_READ: &str = "
    SELECT number, form, body FROM althing_actors
    WHERE part = ? AND kind = ? AND key = ? AND sort = 1 AND number > ? AND number <= ? LIMIT ?";

const EVENT_FORGET: &str = "
    DELETE FROM althing_actors WHERE part = ? AND kind = ? AND key = ? AND sort = 1 AND number <= ?";

const BUCKET_WRITE: &str = "
    INSERT INTO althing_events (kind, key, bucket, number, form, body) VALUES (?, ?, ?, ?, ?, ?)";

const BUCKET_READ: &str = "
    SELECT number, form, body FROM althing_events
    WHERE kind = ? AND key = ? AND bucket = ? AND number > ? AND number <= ? LIMIT ?";

const REPLY_WRITE: &str = "
    INSERT INTO althing_actors (part, kind, key, sort, number, name, request, at, body)
    VALUES (?, ?, ?, 3, ?, 0x, ?, ?, ?)";

const REPLY_FORGET: &str = "
    DELETE FROM althing_actors WHERE part = ? AND kind = ? AND key = ? AND sort = 3 AND number <= ?";

const DELIVERY_WRITE: &str = "
    INSERT INTO althing_actors
        (part, kind, key, sort, number, name, at, entry, cron, to_kind, to_key, message, body)
    VALUES (?, ?, ?, 2, 0, ?, ?, ?, ?, ?, ?, ?, ?)";

const DELIVERY_READ: &str = "
    SELECT at, entry, cron, to_kind, to_key, message, body FROM althing_actors
    WHERE part = ? AND kind = ? AND key = ? AND sort = 2 AND number = 0 AND name = ?";

const DELIVERY_LEFT: &str = "
    SELECT name, at, entry, cron, to_kind, to_key, message, body FROM althing_actors
    WHERE part = ? AND kind = ? AND key = ? AND sort = 2 AND number = 0 AND name >= ? AND name < ?
    LIMIT ?";

const DELIVERY_CANCEL: &str = "
    DELETE FROM althing_actors
    WHERE part = ? AND kind = ? AND key = ? AND sort = 2 AND number = 0 AND name = ?";

const DELIVERY_TAKEN: &str = "
    DELETE FROM althing_actors
    WHERE part = ? AND kind = ? AND key = ? AND sort = 2 AND number = 0 AND name = ? IF at = ? AND entry = ?";

const DELIVERY_AGAIN: &str = "
    UPDATE althing_actors SET at = ?, entry = ?
    WHERE part = ? AND kind = ? AND key = ? AND sort = 2 AND number = 0 AND name = ? IF at = ? AND entry = ?";

const DUE_WRITE: &str = "
    INSERT INTO althing_due (bucket, shard, at, kind, key, name, entry, made)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

const DUE_REMOVE: &str = "
    DELETE FROM althing_due
    WHERE bucket = ? AND shard = ? AND at = ? AND kind = ? AND key = ? AND name = ? AND entry = ?";

const DUE_READ: &str = "
    SELECT at, kind, key, name, entry, made FROM althing_due
    WHERE bucket = ? AND shard = ? AND (at, kind, key, name, entry) > (?, ?, ?, ?, ?) AND (at) <= (?)
    LIMIT ?";

const MINUTE_WRITE: &str = "
    INSERT INTO althing_due_buckets (one, bucket) VALUES (1, ?) USING TIMESTAMP ?";

const MINUTE_REMOVE: &str = "
    DELETE FROM althing_due_buckets USING TIMESTAMP ? WHERE one = 1 AND bucket = ?";

const MINUTE_READ: &str = "
    SELECT bucket FROM althing_due_buckets WHERE one = 1 AND bucket >= ? AND bucket <= ?";

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $cql:ident),* $(,)?) => {
        /// All statements of the store.
        #[derive(Debug)]
        pub(super) struct Statements {
            $($(#[$doc])* pub(super) $name: PreparedStatement,)*
        }

        impl Statements {
            pub(super) async fn prepare(session: &Session) -> Result<Self, CassandraError> {
                // One by one: a task could not connect if this were joined, because the compiler
                // does not see that it is `Send` then.
                let mut made = Self { $($name: session.prepare($cql).await.map_err(server)?,)* };
                made.set_up();
                Ok(made)
            }
        }
    };
}

statements! {
    /// Reads what the last conditional write has left, whoever still works on one.
    head_serial = HEAD_READ,
    head_open = HEAD_OPEN,
    head_make = HEAD_MAKE,
    head_write = HEAD_WRITE,
    head_write_state = HEAD_WRITE_STATE,
    head_exclude = HEAD_EXCLUDE,
    head_moved = HEAD_MOVED,
    /// Head and replies.
    kept_read = KEPT_READ,
    head_read = HEAD_READ,
    event_write = EVENT_WRITE,
    event_read = EVENT_READ,
    event_forget = EVENT_FORGET,
    bucket_write = BUCKET_WRITE,
    bucket_read = BUCKET_READ,
    reply_write = REPLY_WRITE,
    reply_forget = REPLY_FORGET,
    delivery_write = DELIVERY_WRITE,
    delivery_read = DELIVERY_READ,
    /// As `head_serial`.
    delivery_serial = DELIVERY_READ,
    /// What an actor has left between two names.
    delivery_left = DELIVERY_LEFT,
    delivery_cancel = DELIVERY_CANCEL,
    delivery_taken = DELIVERY_TAKEN,
    delivery_again = DELIVERY_AGAIN,
    due_write = DUE_WRITE,
    due_remove = DUE_REMOVE,
    due_read = DUE_READ,
    minute_write = MINUTE_WRITE,
    minute_remove = MINUTE_REMOVE,
    minute_read = MINUTE_READ,
}

impl Statements {
    fn set_up(&mut self) {
        self.head_serial.set_consistency(Consistency::Serial);
        self.delivery_serial.set_consistency(Consistency::Serial);
    }
}

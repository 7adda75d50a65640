//! What is asked of the server, prepared once for each connection. No value is ever part of a
//! statement's text.

use futures_util::future::join_all;
use tokio_postgres::{Client, Error, Statement};

const MAKE: &str = "
    INSERT INTO althing_actors (kind, key, epoch, version, last_event)
    SELECT kind, key, 0, 0, 0 FROM unnest($1::bytea[], $2::bytea[]) AS asked (kind, key)
    ON CONFLICT (kind, key) DO NOTHING";

const LOCK: &str = "
    SELECT asked.place, epoch, version, last_event, schema, includes,
        CASE WHEN asked.is_read THEN state END
    FROM unnest($1::bytea[], $2::bytea[], $3::boolean[])
        WITH ORDINALITY AS asked (kind, key, is_read, place)
    JOIN althing_actors AS actors ON actors.kind = asked.kind AND actors.key = asked.key
    ORDER BY asked.place
    FOR UPDATE OF actors";

const REPLIES: &str = "
    SELECT asked.place, number, request, at, body
    FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS asked (kind, key, place)
    JOIN althing_replies AS replies ON replies.kind = asked.kind AND replies.key = asked.key
    ORDER BY asked.place, number";

const WRITE: &str = "
    UPDATE althing_actors AS actors SET
        epoch = written.epoch,
        version = written.version,
        last_event = written.last_event,
        schema = coalesce(written.schema, actors.schema),
        state = coalesce(written.state, actors.state),
        includes = coalesce(written.includes, actors.includes)
    FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
        $7::bytea[], $8::bigint[])
        AS written (kind, key, epoch, version, last_event, schema, state, includes)
    WHERE actors.kind = written.kind AND actors.key = written.key";

const ADD: &str = "
    INSERT INTO althing_events (kind, key, number, schema, body)
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bytea[])";

const READ: &str = "
    SELECT number, schema, body FROM althing_events
    WHERE kind = $1 AND key = $2 AND number > $3 ORDER BY number LIMIT $4";

const PUT: &str = "
    INSERT INTO althing_deliveries
        (kind, key, name, due, cron, to_kind, to_key, message, body)
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[],
        $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[])
    ON CONFLICT (kind, key, name) DO UPDATE SET
        due = excluded.due,
        cron = excluded.cron,
        to_kind = excluded.to_kind,
        to_key = excluded.to_key,
        message = excluded.message,
        body = excluded.body";

const CANCEL: &str = "
    DELETE FROM althing_deliveries AS kept
    USING unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS gone (kind, key, name)
    WHERE kept.kind = gone.kind AND kept.key = gone.key AND kept.name = gone.name";

const TAKEN: &str = "
    DELETE FROM althing_deliveries AS kept
    USING unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[])
        AS taken (kind, key, name, due)
    WHERE kept.kind = taken.kind AND kept.key = taken.key AND kept.name = taken.name
        AND kept.due = taken.due";

const AGAIN: &str = "
    UPDATE althing_deliveries AS kept SET due = taken.next
    FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[])
        AS taken (kind, key, name, due, next)
    WHERE kept.kind = taken.kind AND kept.key = taken.key AND kept.name = taken.name
        AND kept.due = taken.due";

const DUE: &str = "
    SELECT kind, key, name, due, cron, to_kind, to_key, message, body FROM althing_deliveries
    WHERE due <= $1 AND (due, kind, key, name) > ($2::bigint, $3::bytea, $4::bytea, $5::bytea)
    ORDER BY due, kind, key, name LIMIT $6";

/// As `DUE`, and limited for each owner: one who has left very much is not read to the end.
const LEFT: &str = "
    SELECT kept.* FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS asked (kind, key, name),
        LATERAL (
            SELECT kind, key, name, due, cron, to_kind, to_key, message, body
            FROM althing_deliveries AS own
            WHERE own.kind = asked.kind AND own.key = asked.key AND own.name < asked.name
            ORDER BY own.name LIMIT $4
        ) AS kept
    ORDER BY kept.kind, kept.key, kept.name LIMIT $4";

const KEEP: &str = "
    INSERT INTO althing_replies (kind, key, number, request, at, body)
    SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bytea[], $5::bigint[],
        $6::bytea[])";

const FORGET: &str = "
    DELETE FROM althing_replies AS kept
    USING unnest($1::bytea[], $2::bytea[], $3::bigint[]) AS gone (kind, key, number)
    WHERE kept.kind = gone.kind AND kept.key = gone.key AND kept.number <= gone.number";

const ALL: [&str; 14] =
    [MAKE, LOCK, REPLIES, WRITE, ADD, READ, PUT, CANCEL, TAKEN, AGAIN, DUE, LEFT, KEEP, FORGET];

/// All statements of one connection.
pub(super) struct Statements {
    /// Makes rows that are not there.
    pub(super) make: Statement,
    /// Locks rows, and reads them.
    pub(super) lock: Statement,
    pub(super) replies: Statement,
    pub(super) write: Statement,
    /// Adds events.
    pub(super) add: Statement,
    /// Reads events.
    pub(super) read: Statement,
    pub(super) put: Statement,
    pub(super) cancel: Statement,
    /// Removes deliveries that were taken.
    pub(super) taken: Statement,
    /// Moves deliveries that were taken to when they are due again.
    pub(super) again: Statement,
    pub(super) due: Statement,
    /// Reads what some actors have left.
    pub(super) left: Statement,
    pub(super) keep: Statement,
    pub(super) forget: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let prepared = join_all(ALL.map(|sql| client.prepare(sql))).await;
        let prepared: Vec<_> = prepared.into_iter().collect::<Result<_, _>>()?;
        let Ok(
            [
                make,
                lock,
                replies,
                write,
                add,
                read,
                put,
                cancel,
                taken,
                again,
                due,
                left,
                keep,
                forget,
            ],
        ) = <[Statement; ALL.len()]>::try_from(prepared)
        else {
            unreachable!("as many are prepared as were asked for")
        };
        Ok(Self {
            make,
            lock,
            replies,
            write,
            add,
            read,
            put,
            cancel,
            taken,
            again,
            due,
            left,
            keep,
            forget,
        })
    }
}

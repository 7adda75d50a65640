//! The table of an outbox, and the one beside it for rows that cannot be published.

use tokio_postgres::{Client, Row};

use super::OutboxError;

#[derive(Debug)]
pub(crate) struct Table {
    /// As the operator wrote it.
    name: String,
    outbox: String,
    failed: String,
}

/// What a row must have.
const COLUMNS: [(&str, &str); 4] =
    [("id", "int8"), ("method", "text"), ("payload", "jsonb"), ("partition", "int4")];

/// The transaction that has written a row: another one if the row was changed, or its id given to
/// another row.
const XMIN: &str = "xmin::text::bigint";

/// Where a row is stored: tells rows that one transaction gave the same id apart.
const PLACE: &str = "tableoid::text || ctid::text";

impl Table {
    /// `None`: the name is empty, or has a NUL in it.
    pub(crate) fn new(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.split('.').collect();
        if parts.len() > 2 || parts.iter().any(|part| part.is_empty() || part.contains('\0')) {
            return None;
        }
        let quote = |suffix: &str| {
            let mut quoted: Vec<String> = parts.iter().map(|part| quoted(part)).collect();
            if let (Some(last), Some(part)) = (quoted.last_mut(), parts.last()) {
                *last = self::quoted(&format!("{part}{suffix}"));
            }
            quoted.join(".")
        };
        Some(Self { name: name.to_owned(), outbox: quote(""), failed: quote("_failed") })
    }

    /// Makes what is missing.
    pub(crate) async fn make(&self, client: &Client) -> Result<(), OutboxError> {
        let Self { outbox, failed, .. } = self;
        // Several connections may make the same table at once, which PostgreSQL does not forgive.
        client
            .batch_execute(&format!(
                "BEGIN;
                 SELECT pg_advisory_xact_lock(hashtext('folkmoot relay'), 0);
                 CREATE TABLE IF NOT EXISTS {outbox} (
                     id BIGSERIAL PRIMARY KEY,
                     method text NOT NULL,
                     payload jsonb NOT NULL,
                     partition integer NOT NULL DEFAULT 0,
                     created_at timestamptz NOT NULL DEFAULT now());
                 CREATE TABLE IF NOT EXISTS {failed} (
                     id bigint,
                     method text NOT NULL,
                     payload jsonb NOT NULL,
                     partition integer NOT NULL,
                     error text NOT NULL,
                     failed_at timestamptz NOT NULL DEFAULT now(),
                     PRIMARY KEY (id, failed_at));
                 COMMIT;"
            ))
            .await?;
        Ok(())
    }

    /// Makes what is missing, and says what does not fit.
    pub(crate) async fn prepare(&self, client: &Client) -> Result<(), OutboxError> {
        let Self { outbox, .. } = self;
        self.make(client).await?;
        self.let_ids_come_again(client).await?;
        // A row without one of them could be neither published nor set aside.
        let shape = "SELECT attname::text, typname::text
                     FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
                     WHERE attrelid = $1::text::regclass AND attnotnull AND NOT attisdropped";
        let shape = client.query(shape, &[outbox]).await?;
        for (column, wanted) in COLUMNS {
            let fits =
                |row: &Row| row.get::<_, &str>(0) == column && row.get::<_, &str>(1) == wanted;
            if !shape.iter().any(fits) {
                let table = self.name.clone();
                return Err(OutboxError::Column { table, column, wanted });
            }
        }
        Ok(())
    }

    /// Former versions made the table of rows that failed with one row for each id. But an id may
    /// come again, after `TRUNCATE … RESTART IDENTITY`, and so may be that of a row that fails.
    async fn let_ids_come_again(&self, client: &Client) -> Result<(), OutboxError> {
        let failed = &self.failed;
        let key = "SELECT conname::text FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid
                   WHERE conrelid = $1::text::regclass AND contype IN ('p', 'u')
                     AND conkey = ARRAY[attnum] AND attname = 'id'";
        for key in client.query(key, &[failed]).await? {
            let key = quoted(key.get(0));
            let alter = format!(
                "ALTER TABLE {failed} DROP CONSTRAINT {key}, ADD PRIMARY KEY (id, failed_at)"
            );
            if let Err(error) = client.batch_execute(&alter).await {
                let (error, text) = (super::told(&error), "it cannot keep two rows of one id");
                tracing::warn!(%error, table = %failed, "{text}");
            }
        }
        Ok(())
    }

    /// Takes a partition for this transaction, if nobody else has it.
    pub(super) fn lock(&self) -> String {
        // By the table's own number, so that two outboxes do not wait for each other.
        "SELECT pg_try_advisory_xact_lock($1::text::regclass::oid::int, $2)".to_owned()
    }

    /// For a regclass.
    pub(crate) fn quoted(&self) -> &str {
        &self.outbox
    }

    /// The next rows, each with the length of its payload, and without the payload if that is
    /// longer than `$3`; the transaction that has written it; and its place. The text is made once
    /// for each row, when the row is sent.
    pub(super) fn select(&self) -> String {
        format!(
            "SELECT id, method, CASE WHEN octet_length(payload) <= $3 THEN payload END,
                 octet_length(payload), xmin, place
             FROM (SELECT id, method, payload::text, {XMIN} AS xmin, {PLACE} AS place
                   FROM {} WHERE partition = $1 ORDER BY id LIMIT $2) AS next
             ORDER BY id",
            self.outbox
        )
    }

    /// Deletes rows of the partition `$4` with these ids that these transactions have written, from
    /// these places.
    pub(super) fn delete(&self) -> String {
        format!(
            "DELETE FROM {} WHERE id = ANY($1) AND partition = $4 AND (id, {XMIN}, {PLACE})
                 IN (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]))",
            self.outbox
        )
    }

    /// How many rows wait, how many of them in no partition from 0 to before `$1`, and how many were
    /// set aside.
    pub(super) fn count(&self) -> String {
        let Self { outbox, failed, .. } = self;
        format!(
            "SELECT count(*), count(*) FILTER (WHERE partition < 0 OR partition >= $1),
                 (SELECT count(*) FROM {failed}) FROM {outbox}"
        )
    }

    /// Schema and name as the database reports them, without quotes; the schema may be left out.
    pub(crate) fn parts(&self) -> (Option<&str>, &str) {
        match self.name.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, &self.name),
        }
    }

    /// Sets a row of the partition `$3` aside with its reason `$2`, as it is in the table, if the
    /// transaction `$4` has written it to the place `$5`; NULL: all of this id. They differ in their
    /// time.
    pub(crate) fn set_aside(&self) -> String {
        let Self { outbox, failed, .. } = self;
        format!(
            "INSERT INTO {failed} (id, method, payload, partition, error, failed_at)
             SELECT id, method, payload, partition, $2,
                 clock_timestamp() + row_number() OVER () * interval '1 microsecond'
             FROM {outbox} AS outbox
             WHERE id = $1 AND partition = $3 AND ($4::bigint IS NULL OR {XMIN} = $4)
                 AND ($5::text IS NULL OR {PLACE} = $5) AND {}",
            self.is_missing("outbox.id", "outbox.method", "outbox.payload", "outbox.partition")
        )
    }

    /// Sets a row aside of which this is known, with its reason `$5`.
    pub(crate) fn set_aside_values(&self) -> String {
        let values = ["$1::text::bigint", "$2::text", "$3::text::jsonb", "$4::text::integer"];
        let [id, method, payload, partition] = values;
        format!(
            "INSERT INTO {} (id, method, payload, partition, error)
             SELECT {}, $5::text WHERE {}",
            self.failed,
            values.join(", "),
            self.is_missing(id, method, payload, partition)
        )
    }

    /// Whether a row is not set aside yet: from the log it may come twice.
    fn is_missing(&self, id: &str, method: &str, payload: &str, partition: &str) -> String {
        format!(
            "NOT EXISTS (SELECT FROM {} AS known WHERE known.id = {id} AND known.method = {method}
                 AND known.payload = {payload} AND known.partition = {partition})",
            self.failed
        )
    }
}

/// A name as SQL takes it, whatever is in it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_none_can_leave_its_quotes() {
        let table = Table::new("app.out\"box").unwrap();
        assert_eq!(table.outbox, "\"app\".\"out\"\"box\"");
        assert_eq!(table.failed, "\"app\".\"out\"\"box_failed\"");
        for wrong in ["", "a.b.c", "a.", "\0"] {
            assert!(Table::new(wrong).is_none(), "{wrong:?}");
        }
    }
}

//! Deliveries and kept replies: each function sends one statement, so that all of a batch are sent
//! in their order before the first is answered.

use althing::remote::Letter;
use althing::{ActorId, Timestamp};
use tokio_postgres::{Error, Row};

use super::rows::{Name, Rows, name};
use super::session::Session;
use crate::delivery::{Delivery, Mark, Reply, Settled};

/// Times are kept as signed numbers; those beyond are further away than anybody waits.
fn signed(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// Kinds, keys and names, each as a column.
type Columns<'a> = (Vec<&'a [u8]>, Vec<&'a [u8]>, Vec<&'a [u8]>);

fn columns<'a>(marks: impl Iterator<Item = (Name<'a>, &'a str)>) -> Columns<'a> {
    let mut columns = Columns::default();
    for ((kind, key), name) in marks {
        columns.0.push(kind);
        columns.1.push(key);
        columns.2.push(name.as_bytes());
    }
    columns
}

/// A delivery that was taken, and when it is due again.
type Taken<'a> = (&'a Mark, Option<Timestamp>);

/// What was taken, in the order in which rows are locked. One statement takes down all of it, and
/// sees each row as it was before: so what was taken again when it was due again goes to the end.
fn in_order<'a>(settled: &[&'a Settled]) -> Vec<Taken<'a>> {
    let mut taken: Vec<Taken<'a>> = settled.iter().map(|it| (&it.mark, it.next)).collect();
    taken.sort_by_key(|(mark, _)| (name(&mark.owner), &mark.name, mark.due));
    // Said twice, the first one counts.
    taken.dedup_by_key(|(mark, _)| *mark);
    for place in (1..taken.len()).rev() {
        let (mark, next) = taken[place];
        let (before, until) = &mut taken[place - 1];
        if *until == Some(mark.due) && (&before.owner, &before.name) == (&mark.owner, &mark.name) {
            *until = next;
        }
    }
    taken
}

fn marks<'a>(taken: &[Taken<'a>]) -> (Columns<'a>, Vec<i64>) {
    let due = taken.iter().map(|(mark, _)| signed(mark.due)).collect();
    let marks = taken.iter().map(|(mark, _)| (name(&mark.owner), mark.name.as_str()));
    (columns(marks), due)
}

impl Session {
    pub(super) async fn put(&self, rows: &Rows<'_>) -> Result<(), Error> {
        let put: Vec<_> = rows.postings.values().filter_map(|posting| *posting).collect();
        if put.is_empty() {
            return Ok(());
        }
        let (kinds, keys, names) =
            columns(put.iter().map(|it| (name(&it.owner), it.name.as_str())));
        let due: Vec<_> = put.iter().map(|delivery| signed(delivery.due)).collect();
        let crons: Vec<_> =
            put.iter().map(|delivery| delivery.cron.as_ref().map(String::as_bytes)).collect();
        let (to_kinds, to_keys): (Vec<_>, Vec<_>) =
            put.iter().map(|delivery| name(&delivery.letter.to)).unzip();
        let messages: Vec<_> =
            put.iter().map(|delivery| delivery.letter.message.as_bytes()).collect();
        let bodies: Vec<_> = put.iter().map(|delivery| &delivery.letter.body[..]).collect();
        let (client, sql) = (self.client(), &self.statements.put);
        client
            .execute(
                sql,
                &[&kinds, &keys, &names, &due, &crons, &to_kinds, &to_keys, &messages, &bodies],
            )
            .await?;
        Ok(())
    }

    pub(super) async fn cancel(&self, rows: &Rows<'_>) -> Result<(), Error> {
        let gone = rows.postings.iter().filter(|(_, posting)| posting.is_none());
        let (kinds, keys, names) = columns(gone.map(|((name, own), _)| (*name, *own)));
        if kinds.is_empty() {
            return Ok(());
        }
        self.client().execute(&self.statements.cancel, &[&kinds, &keys, &names]).await?;
        Ok(())
    }

    pub(super) async fn remove_taken(&self, rows: &Rows<'_>) -> Result<(), Error> {
        let mut taken = in_order(&rows.settled);
        taken.retain(|(_, next)| next.is_none());
        if taken.is_empty() {
            return Ok(());
        }
        let ((kinds, keys, names), due) = marks(&taken);
        self.client().execute(&self.statements.taken, &[&kinds, &keys, &names, &due]).await?;
        Ok(())
    }

    pub(super) async fn move_taken(&self, rows: &Rows<'_>) -> Result<(), Error> {
        let mut taken = in_order(&rows.settled);
        taken.retain(|(_, next)| next.is_some());
        if taken.is_empty() {
            return Ok(());
        }
        let ((kinds, keys, names), due) = marks(&taken);
        let next: Vec<_> = taken.iter().map(|(_, next)| next.map(signed)).collect();
        let sql = &self.statements.again;
        self.client().execute(sql, &[&kinds, &keys, &names, &due, &next]).await?;
        Ok(())
    }

    pub(super) async fn keep(&self, rows: &Rows<'_>) -> Result<(), Error> {
        let kept = &rows.kept;
        if kept.is_empty() {
            return Ok(());
        }
        let (kinds, keys): (Vec<_>, Vec<_>) = kept.iter().map(|(name, _)| *name).unzip();
        let numbers: Vec<_> = kept.iter().map(|(_, reply)| reply.number.cast_signed()).collect();
        let requests: Vec<_> = kept.iter().map(|(_, reply)| reply.request.as_bytes()).collect();
        let at: Vec<_> = kept.iter().map(|(_, reply)| signed(reply.at)).collect();
        let bodies: Vec<_> = kept.iter().map(|(_, reply)| &reply.bytes[..]).collect();
        let sql = &self.statements.keep;
        self.client().execute(sql, &[&kinds, &keys, &numbers, &requests, &at, &bodies]).await?;
        Ok(())
    }

    pub(super) async fn forget(&self, rows: &Rows<'_>) -> Result<(), Error> {
        if rows.forgotten.is_empty() {
            return Ok(());
        }
        let (kinds, keys): (Vec<_>, Vec<_>) = rows.forgotten.keys().copied().unzip();
        let numbers: Vec<_> = rows.forgotten.values().map(|number| number.cast_signed()).collect();
        self.client().execute(&self.statements.forget, &[&kinds, &keys, &numbers]).await?;
        Ok(())
    }

    /// The replies that are kept of rows, each with its row's place among those asked for, from 1
    /// on.
    pub(super) async fn replies(
        &self,
        kinds: &[&[u8]],
        keys: &[&[u8]],
    ) -> Result<Vec<(i64, Reply)>, Error> {
        if kinds.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.client().query(&self.statements.replies, &[&kinds, &keys]).await?;
        Ok(found.iter().map(|row| (row.get(0), reply(row))).collect())
    }

    pub(super) async fn due(
        &self,
        until: Timestamp,
        after: Option<&Mark>,
        limit: usize,
    ) -> Result<Vec<Delivery>, Error> {
        let (from, (kind, key), own) = match after {
            None => (-1, (&[][..], &[][..]), &[][..]),
            Some(mark) => (signed(mark.due), name(&mark.owner), mark.name.as_bytes()),
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let until = signed(until);
        let sql = &self.statements.due;
        let found = self.client().query(sql, &[&until, &from, &kind, &key, &own, &limit]).await?;
        Ok(found.iter().map(delivery).collect())
    }

    /// What actors have left under names before those.
    pub(super) async fn left_before(
        &self,
        names: &[(ActorId, String)],
        limit: usize,
    ) -> Result<Vec<Delivery>, Error> {
        let (kinds, keys, names) =
            columns(names.iter().map(|(id, before)| (name(id), before.as_str())));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = &self.statements.left;
        let found = self.client().query(sql, &[&kinds, &keys, &names, &limit]).await?;
        Ok(found.iter().map(delivery).collect())
    }
}

fn reply(row: &Row) -> Reply {
    let (number, at): (i64, i64) = (row.get(1), row.get(3));
    let (number, at) = (number.cast_unsigned(), Timestamp(at.cast_unsigned()));
    Reply { number, request: text(row, 2), at, bytes: row.get(4) }
}

fn delivery(row: &Row) -> Delivery {
    let id = |kind, key| ActorId::named(&text(row, kind), text(row, key));
    let due: i64 = row.get(3);
    let cron = row.get::<_, Option<&[u8]>>(4).map(lossless);
    let letter = Letter { to: id(5, 6), message: text(row, 7), body: row.get(8) };
    let (owner, name, due) = (id(0, 1), text(row, 2), Timestamp(due.cast_unsigned()));
    Delivery { owner, name, due, cron, letter }
}

fn text(row: &Row, column: usize) -> String {
    lossless(row.get(column))
}

/// Text is kept as bytes, because PostgreSQL's has no NUL; what is there was text when it was
/// written.
fn lossless(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

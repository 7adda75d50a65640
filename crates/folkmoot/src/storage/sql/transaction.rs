//! Transactions: what is done in one is kept whole or not at all.

use std::ops::Deref;

use super::connection::Connection;
use super::error::Result;
use super::local::Local;

/// The one savepoint that there is at a time.
const SAVEPOINT: &str = "one";

/// A transaction of a connection; taken back when it is dropped without being committed.
pub(crate) struct Transaction<'c> {
    connection: &'c Connection,
    is_open: bool,
}

impl Connection {
    /// Begins a transaction that writes, and waits for the one that does.
    pub(crate) fn begin(&self) -> Result<Transaction<'_>> {
        match self {
            Self::Sqlite(_) => self.execute_batch("BEGIN IMMEDIATE")?,
            Self::Postgres(session) => session.batch_later("BEGIN")?,
        }
        Ok(Transaction { connection: self, is_open: true })
    }

    /// Begins a transaction that reads, and sees one state of the database throughout.
    pub(crate) fn begin_reading(&self) -> Result<Transaction<'_>> {
        match self {
            Self::Sqlite(_) => self.execute_batch("BEGIN")?,
            Self::Postgres(session) => {
                session.batch_later("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")?;
            }
        }
        Ok(Transaction { connection: self, is_open: true })
    }

    /// Has the connection see one state of the database for as long as it lives.
    pub(crate) fn begin_snapshot(&self) -> Result<()> {
        self.begin_reading()?.is_open = false;
        Ok(())
    }

    /// Whether the database has taken the transaction back by itself, as it does when its disk is
    /// full or broken, or it is away.
    pub(crate) fn is_taken_back(&self) -> bool {
        match self {
            Self::Sqlite(connection) => connection.is_autocommit(),
            Self::Postgres(session) => session.is_broken(),
        }
    }
}

impl Transaction<'_> {
    /// Keeps what was done.
    pub(crate) fn commit(mut self) -> Result<()> {
        self.connection.execute_batch("COMMIT")?;
        self.is_open = false;
        Ok(())
    }

    /// Begins a part that can be taken back alone.
    pub(crate) fn savepoint(&self) -> Result<Savepoint<'_>> {
        match self.connection {
            Connection::Sqlite(connection) => {
                connection.execute_batch(&format!("SAVEPOINT {SAVEPOINT}"))?;
            }
            Connection::Postgres(session) => {
                session.batch_later(&format!("SAVEPOINT {SAVEPOINT}"))?
            }
        }
        let mark = self.local().map_or(0, Local::mark);
        Ok(Savepoint { connection: self.connection, mark, is_open: true })
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_open && !self.connection.is_taken_back() {
            // What cannot be taken back is a connection that is lost, and its transaction with it.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// A part of a transaction; taken back when it is dropped without being kept.
pub(crate) struct Savepoint<'c> {
    connection: &'c Connection,
    /// How much was taken down before it.
    mark: usize,
    is_open: bool,
}

impl Savepoint<'_> {
    /// Keeps what was done, as far as the transaction does.
    pub(crate) fn keep(mut self) -> Result<()> {
        self.connection.execute_batch(&format!("RELEASE SAVEPOINT {SAVEPOINT}"))?;
        self.is_open = false;
        Ok(())
    }
}

impl Deref for Savepoint<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        if let (true, Some(local)) = (self.is_open, self.local()) {
            local.forget(self.mark);
        }
        if self.is_open && !self.connection.is_taken_back() {
            let taken_back = self.connection.execute_batch(&format!(
                "ROLLBACK TO SAVEPOINT {SAVEPOINT}; RELEASE SAVEPOINT {SAVEPOINT}"
            ));
            if let Err(error) = taken_back {
                tracing::error!(%error, "a part of a transaction was not taken back");
            }
        }
    }
}

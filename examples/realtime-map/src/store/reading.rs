//! The thread that reads snapshots for vehicles that wake: whatever waits is read under one lock of
//! the file.
//!
//! Taking and giving back that lock costs several system calls and more than reading a row, and
//! after a restart all vehicles of a city wake at once. Who asks after a save was confirmed sees
//! it, because a batch is gathered before its transaction begins.

use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::{mpsc, oneshot};

use super::StoreError;
use crate::hfp::VehicleId;

/// Snapshots per transaction: many share a lock, and a writer's log does not grow behind a long
/// one.
const BATCH_LEN_MAX: usize = 256;

/// A question, and who waits for the answer.
pub(super) struct Read {
    pub(super) id: VehicleId,
    pub(super) answer: oneshot::Sender<Result<Option<Vec<u8>>, StoreError>>,
}

/// Answers until nobody can ask any more.
pub(super) fn read_all(connection: &Connection, mut waiting: mpsc::Receiver<Read>) {
    let mut batch = Vec::new();
    while waiting.blocking_recv_many(&mut batch, BATCH_LEN_MAX) > 0 {
        // It locks nothing before its first read; should it fail, each read takes a lock of its
        // own.
        let transaction = connection.unchecked_transaction();
        for Read { id, answer } in batch.drain(..) {
            // Who no longer waits does not mind.
            answer.send(read(connection, id).map_err(StoreError::from)).ok();
        }
        drop(transaction);
    }
}

fn read(connection: &Connection, id: VehicleId) -> Result<Option<Vec<u8>>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT snapshot FROM vehicle WHERE id = ?1")?
        .query_row(params![id.packed()], |row| row.get(0))
        .optional()
}

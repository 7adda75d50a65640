//! What messages do to the files they name: one that names them keeps them, its deletion lets them
//! go.

use super::apply::to_sql;
use crate::storage::ids::{RoomId, Seq};
use crate::storage::record::Message;
use crate::storage::sql::{self, Connection, params};

/// Keeps the files that a message names.
pub(super) fn sent(transaction: &Connection, room: RoomId, message: &Message) -> sql::Result<()> {
    for attachment in &message.attachments {
        let kept = transaction
            .prepare_cached(
                "UPDATE attachments SET seq = ?3, expires_at = NULL WHERE id = ?1 AND room = ?2",
            )?
            .execute([
                to_sql(attachment.id.as_u64()),
                to_sql(room.as_u64()),
                to_sql(message.seq.as_u64()),
            ])?;
        if kept == 0 {
            tracing::error!(%room, id = %attachment.id, "a message names a file that is gone");
        }
    }
    Ok(())
}

/// Lets the files of a deleted message go: they are removed at once, as if they had always been
/// expired.
pub(super) fn deleted(transaction: &Connection, room: RoomId, seq: Seq) -> sql::Result<()> {
    transaction
        .prepare_cached("UPDATE attachments SET expires_at = 0 WHERE room = ?1 AND seq = ?2")?
        .execute(params![to_sql(room.as_u64()), to_sql(seq.as_u64())])?;
    Ok(())
}

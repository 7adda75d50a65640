//! Files on their way into a message, and what is known of those that arrived. Bytes are elsewhere;
//! a row is there before the first byte and until after the last one is gone, so no byte is ever
//! without a row.
//!
//! `expires_at` says it all: a file that a message names has none, one that waits for a message has
//! a moment in the future, one to be removed has a moment in the past.

use serde::{Deserialize, Serialize};

use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{AttachmentId, RoomId, UnixMillis, UserId};
use crate::storage::progress::Stream;
use crate::storage::record::{Attachment, Picture};
use crate::storage::sql::{self, Connection, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::store::Store;

const COLUMNS: &str = "id, room, user, seq, name, media_type, size, width, height, expires_at";

/// An upload that is about to begin.
#[derive(Clone, Debug)]
pub struct NewUpload {
    /// A fresh id.
    pub id: AttachmentId,
    /// The room whose message will name it.
    pub room: RoomId,
    /// Who uploads it.
    pub by: UserId,
    /// The most bytes that it may come to.
    pub size_max: u64,
    /// When it is removed unless a message names it.
    pub expires_at: UnixMillis,
    /// Bytes that all files of this user may take, this one included.
    pub user_bytes_max: u64,
    /// Files of this user that may wait for a message, this one included.
    pub unsent_max: usize,
}

/// What came of announcing an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Its bytes are reserved.
    Yes,
    /// The user's files would take more than they may; so many bytes are left.
    OverQuota {
        /// What is left.
        left: u64,
    },
    /// Too many files of the user wait for a message.
    TooManyUnsent,
}

/// A complete file that waits for a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The room whose message will name it.
    pub room: RoomId,
    /// Who uploaded it.
    pub by: UserId,
    /// The file.
    pub file: Attachment,
    /// When it is removed unless a message names it.
    pub expires_at: UnixMillis,
}

/// A file as a reader meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttachment {
    /// Whose members may read it.
    pub room: RoomId,
    /// Who uploaded it.
    pub by: UserId,
    /// Whether a message names it; until then only its uploader may read it.
    pub is_sent: bool,
    /// The file.
    pub file: Attachment,
}

impl Store {
    /// Reserves the bytes of an upload.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn begin_upload(&self, new: NewUpload) -> Result<Begun, ControlError> {
        self.control(move |connection| {
            let user = to_sql(new.by.as_u64());
            let left = new.user_bytes_max.saturating_sub(bytes_of(connection, new.by)?);
            if new.size_max > left {
                return Ok(Begun::OverQuota { left });
            }
            let unsent: i64 = connection
                .prepare_cached(
                    "SELECT count(*) FROM attachments WHERE user = ?1 AND seq IS NULL AND expires_at > 0",
                )?
                .query_row([user], |row| row.get(0))?;
            if usize::try_from(unsent).is_ok_and(|unsent| unsent >= new.unsent_max) {
                return Ok(Begun::TooManyUnsent);
            }
            connection.execute(
                "INSERT INTO attachments VALUES (?1, ?2, ?3, NULL, '', '', ?4, 0, 0, ?5)",
                [
                    to_sql(new.id.as_u64()),
                    to_sql(new.room.as_u64()),
                    user,
                    to_sql(new.size_max),
                    to_sql(new.expires_at.as_u64()),
                ],
            )?;
            Ok(Begun::Yes)
        })
        .await
    }

    /// Notes that all of an upload has arrived.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if it took so long that it was removed meanwhile.
    pub async fn finish_upload(&self, file: Attachment) -> Result<(), ControlError> {
        self.control(move |connection| {
            let (width, height) =
                file.picture.map_or((0, 0), |picture| (picture.width, picture.height));
            let known = connection.execute(
                "UPDATE attachments SET name = ?2, media_type = ?3, size = ?4, width = ?5, \
                 height = ?6 WHERE id = ?1 AND expires_at > 0",
                params![
                    to_sql(file.id.as_u64()),
                    file.name,
                    file.media_type,
                    to_sql(file.size),
                    width,
                    height
                ],
            )?;
            if known == 0 { Err(ControlError::NotFound("upload")) } else { Ok(()) }
        })
        .await
    }

    /// Gives up an upload: its bytes are removed with the next sweep.
    ///
    /// # Errors
    /// What every control transaction can meet; it then expires in its time.
    pub async fn cancel_upload(&self, id: AttachmentId) -> Result<(), ControlError> {
        self.control(move |connection| {
            connection.execute(
                "UPDATE attachments SET expires_at = 0 WHERE id = ?1 AND expires_at IS NOT NULL",
                [to_sql(id.as_u64())],
            )?;
            Ok(())
        })
        .await
    }

    /// Gives up every upload that has not arrived: after a start nothing is on its way any more.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn cancel_unfinished_uploads(&self) -> Result<(), ControlError> {
        self.control(|connection| {
            connection.execute(
                "UPDATE attachments SET expires_at = 0 \
                 WHERE expires_at IS NOT NULL AND media_type = ''",
                [],
            )?;
            Ok(())
        })
        .await
    }

    /// Files to be removed at `now`, at most `limit`. Each message that was appended before the
    /// call keeps its files.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn expired_attachments(
        &self,
        now: UnixMillis,
        limit: u32,
    ) -> Result<Vec<AttachmentId>, ReadError> {
        self.barrier().await?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id FROM attachments WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2",
            )?;
            let rows = statement.query_map(params![to_sql(now.as_u64()), limit], |row| {
                Ok(AttachmentId::from_u64(from_sql(row.get(0)?)))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Forgets files whose bytes are gone.
    ///
    /// # Errors
    /// What every control transaction can meet; a later sweep finds them again.
    pub async fn forget_attachments(&self, ids: Vec<AttachmentId>) -> Result<(), ControlError> {
        self.control(move |connection| {
            let mut delete = connection.prepare_cached("DELETE FROM attachments WHERE id = ?1")?;
            for id in ids {
                delete.execute([to_sql(id.as_u64())])?;
            }
            Ok(())
        })
        .await
    }

    /// A file that can be read: complete, and neither expired at `now` nor of a deleted message.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn attachment(
        &self,
        id: AttachmentId,
        now: UnixMillis,
    ) -> Result<Option<StoredAttachment>, ReadError> {
        // First which room it belongs to, then that room's log: a deletion may be on its way into
        // the table.
        let Some((stored, _)) = self.read(move |connection| find(connection, id)).await? else {
            return Ok(None);
        };
        self.barrier_for(&[Stream::Room(stored.room)]).await?;
        let found = self.read(move |connection| find(connection, id)).await?;
        Ok(found.and_then(|(stored, expires_at)| {
            let is_there = expires_at.is_none_or(|at| at > now);
            (is_there && !stored.file.media_type.is_empty()).then_some(stored)
        }))
    }

    /// Bytes that the files of a user take, those that are being uploaded included.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn attachment_bytes(&self, user: UserId) -> Result<u64, ReadError> {
        self.read(move |connection| Ok(bytes_of(connection, user)?)).await
    }
}

/// The files that wait for a message of a room.
pub(crate) fn unsent(
    connection: &Connection,
    room: RoomId,
    now: UnixMillis,
) -> Result<Vec<Upload>, ReadError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM attachments \
         WHERE room = ?1 AND seq IS NULL AND expires_at > ?2 AND media_type <> ''"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let place = [to_sql(room.as_u64()), to_sql(now.as_u64())];
    let rows = statement.query_map(place, |row| {
        let (StoredAttachment { room, by, file, .. }, expires_at) = read(row)?;
        Ok(Upload { room, by, file, expires_at: expires_at.unwrap_or_default() })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn bytes_of(connection: &Connection, user: UserId) -> sql::Result<u64> {
    connection
        .prepare_cached("SELECT coalesce(sum(size), 0) FROM attachments WHERE user = ?1")?
        .query_row([to_sql(user.as_u64())], |row| row.get(0))
        .map(from_sql)
}

type Found = (StoredAttachment, Option<UnixMillis>);

fn find(connection: &Connection, id: AttachmentId) -> Result<Option<Found>, ReadError> {
    let sql = format!("SELECT {COLUMNS} FROM attachments WHERE id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    Ok(statement.query_row([to_sql(id.as_u64())], read).optional()?)
}

fn read(row: &Row<'_>) -> sql::Result<Found> {
    let (width, height): (u32, u32) = (row.get(7)?, row.get(8)?);
    let file = Attachment {
        id: AttachmentId::from_u64(from_sql(row.get(0)?)),
        name: row.get(4)?,
        media_type: row.get(5)?,
        size: from_sql(row.get(6)?),
        picture: (width > 0).then_some(Picture { width, height }),
    };
    let expires_at = row.get::<Option<i64>>(9)?.map(|at| UnixMillis::from_u64(from_sql(at)));
    let stored = StoredAttachment {
        room: RoomId::from_u64(from_sql(row.get(1)?)),
        by: UserId::from_u64(from_sql(row.get(2)?)),
        is_sent: row.get::<Option<i64>>(3)?.is_some(),
        file,
    };
    Ok((stored, expires_at))
}

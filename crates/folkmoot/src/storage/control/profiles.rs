//! What users show of themselves: names to show, pictures, what they are up to. A picture is only
//! named here; its bytes are with the files.

use folkmoot_protocol::chat::Status;

use super::accounts::{Account, existing};
use crate::storage::error::{ControlError, ReadError};
use crate::storage::ids::{PictureId, UnixMillis, UserId};
use crate::storage::moment;
use crate::storage::sql::{self, OptionalExtension, Row, params};
use crate::storage::sqlite::apply::{from_sql, to_sql};
use crate::storage::sqlite::name_words::note_words;
use crate::storage::store::Store;

impl Store {
    /// Changes the name to show.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such account.
    pub async fn set_display_name(
        &self,
        user: UserId,
        display_name: String,
    ) -> Result<Account, ControlError> {
        self.control(move |connection| {
            connection.execute(
                "UPDATE users SET display_name = ?2 WHERE id = ?1",
                params![to_sql(user.as_u64()), display_name],
            )?;
            let account = existing(connection, user)?;
            note_words(connection, to_sql(user.as_u64()), &account.name, &display_name)?;
            Ok(account)
        })
        .await
    }

    /// Says what a user is up to; `None`: nothing any more.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such account.
    pub async fn set_status(
        &self,
        user: UserId,
        status: Option<Status>,
    ) -> Result<Account, ControlError> {
        self.control(move |connection| {
            let until = status.as_ref().and_then(|status| status.until);
            let (emoji, text) =
                status.as_ref().map_or(("", ""), |status| (&*status.emoji, &*status.text));
            connection.execute(
                "UPDATE users SET status_emoji = ?2, status_text = ?3, status_until = ?4 \
                 WHERE id = ?1",
                params![
                    to_sql(user.as_u64()),
                    emoji,
                    text,
                    until.map(|until| to_sql(until.as_u64()))
                ],
            )?;
            existing(connection, user)
        })
        .await
    }

    /// Shows another picture, or none; says which one it replaces.
    ///
    /// # Errors
    /// [`ControlError::NotFound`] if there is no such account.
    pub async fn set_picture(
        &self,
        user: UserId,
        picture: Option<PictureId>,
    ) -> Result<(Account, Option<PictureId>), ControlError> {
        self.control(move |connection| {
            let id = to_sql(user.as_u64());
            let replaced: Option<Option<i64>> = connection
                .query_row("SELECT picture FROM users WHERE id = ?1", [id], |row| row.get(0))
                .optional()?;
            connection.execute(
                "UPDATE users SET picture = ?2 WHERE id = ?1",
                params![id, picture.map(|picture| to_sql(picture.as_u64()))],
            )?;
            let account = existing(connection, user)?;
            let replaced = replaced.flatten().map(|known| PictureId::from_u64(from_sql(known)));
            Ok((account, replaced))
        })
        .await
    }

    /// The pictures that people show.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn shown_pictures(&self) -> Result<Vec<PictureId>, ReadError> {
        self.read(|connection| Ok(moment::pictures(connection)?)).await
    }
}

/// The picture in a column.
pub(crate) fn read_picture(row: &Row<'_>, at: usize) -> sql::Result<Option<PictureId>> {
    let picture: Option<i64> = row.get(at)?;
    Ok(picture.map(|picture| PictureId::from_u64(from_sql(picture))))
}

/// The status in a column and the two after it.
pub(crate) fn read_status(row: &Row<'_>, at: usize) -> sql::Result<Option<Status>> {
    let (emoji, text): (String, String) = (row.get(at)?, row.get(at + 1)?);
    if emoji.is_empty() && text.is_empty() {
        return Ok(None);
    }
    let until: Option<i64> = row.get(at + 2)?;
    let until = until.map(|until| UnixMillis::from_u64(from_sql(until)));
    Ok(Some(Status { emoji, text, until }))
}

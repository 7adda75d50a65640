//! Settings that administrators choose from the browser: named values, kept as the text they are
//! given as.

use crate::storage::error::{ControlError, ReadError};
use crate::storage::sql::OptionalExtension;
use crate::storage::store::Store;

impl Store {
    /// A setting; `None` if nobody has chosen it.
    ///
    /// # Errors
    /// [`ReadError`] only if the database fails.
    pub async fn setting(&self, name: &'static str) -> Result<Option<String>, ReadError> {
        self.read(move |connection| {
            let sql = "SELECT value FROM settings WHERE name = ?1";
            Ok(connection.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// Chooses a setting.
    ///
    /// # Errors
    /// What every control transaction can meet.
    pub async fn set_setting(&self, name: &'static str, value: String) -> Result<(), ControlError> {
        self.control(move |connection| {
            let sql = "INSERT INTO settings VALUES (?1, ?2) \
 ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            connection.execute(sql, [name, &value])?;
            Ok(())
        })
        .await
    }
}

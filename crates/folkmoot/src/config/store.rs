//! What `--store` says. It may hold a password, so it is shown nowhere: not in an error about it, not
//! in a list of all settings.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::storage::{AddressError, StoreAddress};

/// `embedded`, or the address of a database; looked at only once all settings are there.
#[derive(Clone, Deserialize)]
pub struct StoreText(String);

impl StoreText {
    /// Where the database is, if it is not embedded.
    pub(super) fn database(&self) -> Option<Result<StoreAddress, AddressError>> {
        (self.0 != "embedded").then(|| self.0.parse())
    }
}

impl StoreText {
    /// The text of it.
    pub(super) fn address(&self) -> Option<&str> {
        (self.0 != "embedded").then_some(self.0.as_str())
    }
}

impl FromStr for StoreText {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for StoreText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreText")
    }
}

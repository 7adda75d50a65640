//! Where a store is: in a directory, or in a database.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::storage::postgres::address::{AddressError, DatabaseAddress};

/// Where a store is. Shown without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Site {
    /// The embedded store of a data directory.
    Directory(PathBuf),
    /// PostgreSQL.
    Database(DatabaseAddress),
}

impl FromStr for Site {
    type Err = AddressError;

    /// What begins like an address is one; anything else is a directory.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if ["postgres://", "postgresql://"].iter().any(|begin| text.starts_with(begin)) {
            return Ok(Self::Database(text.parse()?));
        }
        let directory: Result<PathBuf, Infallible> = text.parse();
        Ok(Self::Directory(directory.unwrap_or_default()))
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "{}", path.display()),
            Self::Database(address) => write!(f, "{address}"),
        }
    }
}

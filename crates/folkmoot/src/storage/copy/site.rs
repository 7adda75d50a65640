//! Where a store is: in a directory, or on servers of its own.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::storage::address::StoreAddress;
use crate::storage::cassandra::address::CassandraAddress;
use crate::storage::directory::Keeps;
use crate::storage::postgres::address::{AddressError, DatabaseAddress};

/// Where a store is. Shown without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Site {
    /// The embedded store of a data directory.
    Directory(PathBuf),
    /// PostgreSQL.
    Database(DatabaseAddress),
    /// Cassandra.
    Keyspace(CassandraAddress),
}

impl Site {
    /// What the data directory of its server has.
    pub(crate) fn keeps(&self) -> Keeps {
        match self {
            Self::Directory(_) => Keeps::Everything,
            Self::Database(_) => Keeps::Files,
            Self::Keyspace(_) => Keeps::Index,
        }
    }
}

impl FromStr for Site {
    type Err = AddressError;

    /// What begins like an address is one; anything else is a directory.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        if StoreAddress::is_one(text) {
            return Ok(text.parse::<StoreAddress>()?.into());
        }
        let directory: Result<PathBuf, Infallible> = text.parse();
        Ok(Self::Directory(directory.unwrap_or_default()))
    }
}

impl From<StoreAddress> for Site {
    fn from(address: StoreAddress) -> Self {
        match address {
            StoreAddress::Postgres(address) => Self::Database(address),
            StoreAddress::Cassandra(address) => Self::Keyspace(address),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(f, "{}", path.display()),
            Self::Database(address) => write!(f, "{address}"),
            Self::Keyspace(address) => write!(f, "{address}"),
        }
    }
}

//! Where a store is that is not in the data directory.

use std::fmt;
use std::str::FromStr;

use super::cassandra::address::CassandraAddress;
use super::postgres::address::{AddressError, DatabaseAddress};

const EXAMPLE: &str = "postgres://user:password@host:5432/database";

/// A store on servers of its own. Shown without a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// All of it is in PostgreSQL.
    Postgres(DatabaseAddress),
    /// Its log is in Cassandra.
    Cassandra(CassandraAddress),
}

impl StoreAddress {
    /// Whether a text is to be read as the address of one.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        ["postgres://", "postgresql://", "cassandra://"].iter().any(|it| text.starts_with(it))
    }
}

impl FromStr for StoreAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if !Self::is_one(text) {
            let why = "it begins neither with postgres:// nor with cassandra://";
            return Err(AddressError::new(EXAMPLE, why));
        }
        match text.starts_with("cassandra://") {
            true => text.parse().map(Self::Cassandra),
            false => text.parse().map(Self::Postgres),
        }
    }
}

impl From<DatabaseAddress> for StoreAddress {
    fn from(address: DatabaseAddress) -> Self {
        Self::Postgres(address)
    }
}

impl From<CassandraAddress> for StoreAddress {
    fn from(address: CassandraAddress) -> Self {
        Self::Cassandra(address)
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(address) => address.fmt(f),
            Self::Cassandra(address) => address.fmt(f),
        }
    }
}

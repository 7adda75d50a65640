//! Where a Cassandra is, and when Folkmoot writes snapshots there. Its password is shown nowhere.

use std::fmt;
use std::str::FromStr;

use althing_cassandra::Address;

use crate::storage::postgres::address::AddressError;

const EXAMPLE: &str = "cassandra://user:password@host:9042/keyspace";
/// MiB of entries before a snapshot, if the address does not say.
const SNAPSHOT_MIB: u32 = 64;

/// The address of a keyspace, as
/// `cassandra://[user:password@]host[:port][,…]/keyspace[?replicas=3&snapshot_mib=64]`.
#[derive(Clone, PartialEq, Eq)]
pub struct CassandraAddress(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    servers: Address,
    snapshot_mib: u32,
}

impl CassandraAddress {
    pub(super) fn servers(&self) -> &Address {
        &self.0.servers
    }

    /// Bytes of entries after which a snapshot is written, if it is no larger itself.
    pub(super) fn snapshot_bytes(&self) -> u64 {
        u64::from(self.0.snapshot_mib) << 20
    }
}

impl FromStr for CassandraAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (servers, [snapshot_mib]) = Address::read_with(text, ["snapshot_mib"])
            .map_err(|why| AddressError::new(EXAMPLE, why.to_string()))?;
        let snapshot_mib = snapshot_mib.unwrap_or(SNAPSHOT_MIB);
        Ok(Self(Box::new(Parts { servers, snapshot_mib })))
    }
}

impl fmt::Display for CassandraAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.servers.fmt(f)
    }
}

impl fmt::Debug for CassandraAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.servers.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_when_snapshots_are_written_and_never_its_password() {
        let text = "cassandra://ana:hush@a:9042,b/chat?replicas=2&snapshot_mib=8";
        let address: CassandraAddress = text.parse().unwrap();
        assert_eq!((address.servers().replicas, address.snapshot_bytes()), (2, 8 << 20));
        assert_eq!(format!("{address} {address:?}").matches("hush").count(), 0);
        let plain: CassandraAddress = "cassandra://a/chat".parse().unwrap();
        assert_eq!(plain.snapshot_bytes(), 64 << 20);
        let said = "cassandra://hush@a/chat".parse::<CassandraAddress>().unwrap_err().to_string();
        assert!(!said.contains("hush@") && said.contains(EXAMPLE), "{said}");
    }
}

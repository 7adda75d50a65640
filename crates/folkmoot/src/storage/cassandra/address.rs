//! Where a Cassandra is, and who we are there. Its password is shown nowhere.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use crate::storage::postgres::address::AddressError;

const EXAMPLE: &str = "cassandra://user:password@host:9042/keyspace";
/// Cassandra's own limit for the name of a keyspace.
const KEYSPACE_CHARS_MAX: usize = 48;

/// The address of a keyspace, as
/// `cassandra://[user:password@]host[:port][,…]/keyspace[?replicas=3&snapshot_mib=64]`.
#[derive(Clone, PartialEq, Eq)]
pub struct CassandraAddress(Box<Parts>);

/// What an address says.
#[derive(Clone, PartialEq, Eq)]
pub struct Parts {
    pub(super) nodes: Vec<String>,
    pub(super) login: Option<(String, String)>,
    pub(super) keyspace: String,
    /// Replicas in each data centre, if the keyspace is made.
    pub(super) replicas: u32,
    /// MiB of entries after which a snapshot is written, if it is no larger itself.
    pub(super) snapshot_mib: u32,
}

impl Deref for CassandraAddress {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl FromStr for CassandraAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parts = read(text).map_err(|why| AddressError::new(EXAMPLE, why))?;
        Ok(Self(Box::new(parts)))
    }
}

/// What goes wrong is said without the text, which may have a password.
fn read(text: &str) -> Result<Parts, &'static str> {
    let rest = text.strip_prefix("cassandra://").ok_or("it begins not with cassandra://")?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (servers, keyspace) = rest.split_once('/').ok_or("the keyspace is missing")?;
    // It becomes part of statements.
    let is_name = keyspace.starts_with(|first: char| first.is_ascii_lowercase())
        && keyspace.len() <= KEYSPACE_CHARS_MAX
        && keyspace.chars().all(|it| matches!(it, 'a'..='z' | '0'..='9' | '_'));
    if !is_name {
        return Err("a keyspace has lower-case letters, digits and underscores, begins with a \
                    letter and has 48 characters at most");
    }
    let (login, nodes) = match servers.rsplit_once('@') {
        None => (None, servers),
        Some((login, nodes)) => {
            let (user, password) = login.split_once(':').ok_or("the password is missing")?;
            (Some((user.to_owned(), password.to_owned())), nodes)
        }
    };
    let nodes: Vec<_> = nodes.split(',').map(str::to_owned).collect();
    if nodes.iter().any(|node| node.is_empty() || node.starts_with(':')) {
        return Err("the host is missing");
    }
    let keyspace = keyspace.to_owned();
    let mut address = Parts { nodes, login, keyspace, replicas: 3, snapshot_mib: 64 };
    for setting in query.split('&').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let value = value.parse().ok().filter(|value| *value > 0);
        let value = value.ok_or("a setting behind the question mark is not a number above 0")?;
        match name {
            "replicas" => address.replicas = value,
            "snapshot_mib" => address.snapshot_mib = value,
            _ => return Err("behind the question mark there are replicas and snapshot_mib only"),
        }
    }
    Ok(address)
}

impl fmt::Display for CassandraAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cassandra://{}/{}", self.nodes.join(","), self.keyspace)
    }
}

impl fmt::Debug for CassandraAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_what_is_wrong_with_one_is_said_without_its_password() {
        let text = "cassandra://ana:hush@a:9042,b/chat?replicas=2&snapshot_mib=8";
        let address: CassandraAddress = text.parse().unwrap();
        assert_eq!(address.nodes, ["a:9042", "b"]);
        assert_eq!(address.login, Some(("ana".to_owned(), "hush".to_owned())));
        assert_eq!((address.replicas, address.snapshot_mib), (2, 8));
        assert_eq!(format!("{address} {address:?}").matches("hush").count(), 0);
        let plain: CassandraAddress = "cassandra://a/chat".parse().unwrap();
        assert_eq!((plain.replicas, plain.snapshot_mib), (3, 64));
        for wrong in [
            "postgres://ana:hush@a/chat",
            "cassandra://ana:hush@a",
            "cassandra://ana:hush@/chat",
            "cassandra://ana:hush@a,/chat",
            "cassandra://hush@a/chat",
            "cassandra://ana:hush@a/Chat; DROP",
            "cassandra://ana:hush@a/chat?replicas=0",
            "cassandra://ana:hush@a/chat?hush=1",
        ] {
            let said = wrong.parse::<CassandraAddress>().unwrap_err().to_string();
            assert!(!said.contains("hush") && said.contains("cassandra://"), "{said}");
        }
    }
}

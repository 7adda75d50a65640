//! Where a keyspace is, and who we are there. Its password is shown nowhere.

use std::fmt;
use std::str::FromStr;

/// Cassandra's own limit for the name of a keyspace.
const KEYSPACE_CHARS_MAX: usize = 48;

/// The address of a keyspace, as `cassandra://[user:password@]host[:port][,…]/keyspace[?replicas=3]`.
///
/// ```
/// use althing_cassandra::Address;
///
/// let address: Address = "cassandra://ana:secret@db-1:9042,db-2/chat?replicas=2".parse()?;
/// assert_eq!(address.nodes, ["db-1:9042", "db-2"]);
/// assert_eq!(address.to_string(), "cassandra://db-1:9042,db-2/chat");
/// # Ok::<(), althing_cassandra::AddressError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Some of the nodes, each a host and perhaps a port; the others are heard of from them.
    pub nodes: Vec<String>,
    /// User and password, if the servers want them.
    pub login: Option<(String, String)>,
    /// Where the tables are.
    pub keyspace: String,
    /// Replicas in each data centre, if the keyspace is made.
    pub replicas: u32,
}

/// Why a text is no address of a keyspace. It never holds the text, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

impl Address {
    /// Reads an address in which there may also be numbers of the caller's own behind the question
    /// mark; what it says of each comes back in the order of `own`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_with<const N: usize>(
        text: &str,
        own: [&str; N],
    ) -> Result<(Self, [Option<u32>; N]), AddressError> {
        read(text, own).map_err(AddressError)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::read_with(text, []).map(|(address, [])| address)
    }
}

fn read<const N: usize>(text: &str, own: [&str; N]) -> Result<(Address, [Option<u32>; N]), String> {
    let rest = text.strip_prefix("cassandra://").ok_or("it begins not with cassandra://")?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (servers, keyspace) = rest.split_once('/').ok_or("the keyspace is missing")?;
    if !is_keyspace(keyspace) {
        let is = "a keyspace has lower-case letters, digits and underscores, begins with a letter";
        return Err(format!("{is} and has {KEYSPACE_CHARS_MAX} characters at most"));
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
        return Err("the host is missing".to_owned());
    }
    let mut address = Address { nodes, login, keyspace: keyspace.to_owned(), replicas: 3 };
    let mut owned = [None; N];
    for setting in query.split('&').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let at = own.iter().position(|own| *own == name);
        if at.is_none() && name != "replicas" {
            let all: Vec<_> = ["replicas"].into_iter().chain(own).collect();
            return Err(format!("behind the question mark there may only be {}", all.join(", ")));
        }
        let value = value.parse().ok().filter(|value| *value > 0);
        let value = value.ok_or_else(|| format!("{} is not a number above 0", named(at, &own)))?;
        match at {
            Some(at) => owned[at] = Some(value),
            None => address.replicas = value,
        }
    }
    Ok((address, owned))
}

fn named<'n>(at: Option<usize>, own: &[&'n str]) -> &'n str {
    at.map_or("replicas", |at| own[at])
}

/// Whether it is the name of a keyspace that can become part of a statement as it is.
pub fn is_keyspace(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= KEYSPACE_CHARS_MAX
        && name.chars().all(|it| matches!(it, 'a'..='z' | '0'..='9' | '_'))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cassandra://{}/{}", self.nodes.join(","), self.keyspace)
    }
}

impl fmt::Debug for Address {
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
        let (address, own) = Address::read_with(text, ["snapshot_mib", "other"]).expect("it is");
        assert_eq!(address.nodes, ["a:9042", "b"]);
        assert_eq!(address.login, Some(("ana".to_owned(), "hush".to_owned())));
        assert_eq!((&*address.keyspace, address.replicas), ("chat", 2));
        assert_eq!(own, [Some(8), None]);
        assert_eq!(format!("{address} {address:?}").matches("hush").count(), 0);
        assert_eq!("cassandra://a/chat".parse::<Address>().map(|it| it.replicas), Ok(3));
        for (wrong, why) in [
            ("postgres://ana:hush@a/chat", "cassandra://"),
            ("cassandra://ana:hush@a", "keyspace"),
            ("cassandra://ana:hush@/chat", "host"),
            ("cassandra://ana:hush@a,/chat", "host"),
            ("cassandra://hush@a/chat", "password"),
            ("cassandra://ana:hush@a/Chat; DROP", "48 characters"),
            ("cassandra://ana:hush@a/chat?replicas=0", "replicas is not a number above 0"),
            ("cassandra://ana:hush@a/chat?snapshot_mib=x", "snapshot_mib is not a number above 0"),
            ("cassandra://ana:hush@a/chat?hush=1", "replicas, snapshot_mib"),
        ] {
            let said = Address::read_with(wrong, ["snapshot_mib"]).expect_err(wrong).to_string();
            assert!(said.contains(why) && !said.contains("hush"), "{said}");
        }
    }
}

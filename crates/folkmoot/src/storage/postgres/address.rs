//! Where a PostgreSQL database is, and who we are there. Its password is shown nowhere.

use std::fmt;
use std::str::FromStr;

use althing_postgres::Server;
use tokio_postgres::config::Host;

/// What every session asks for, whatever the role has set: our own tables, commits that are on disk
/// when they are answered, no end of one that is idle, because its locks keep other servers out; and
/// an end of sessions whose server has gone without a word, which would keep the next one out.
const OPTIONS: &str = "-c search_path=folkmoot -c synchronous_commit=on \
     -c default_transaction_isolation=read\\ committed -c default_transaction_read_only=off \
     -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=60000 \
     -c idle_session_timeout=0 \
     -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 \
     -c tcp_user_timeout=30000";

/// The address of a database, as `postgres://user:password@host:port/database`, and whether sessions
/// are encrypted, as [`althing_postgres`] has it.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseAddress(Box<Server>);

/// Why a text is no address of a database. It never holds the text, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not an address such as {example}: {why}")]
pub struct AddressError {
    example: &'static str,
    why: String,
}

impl AddressError {
    pub(crate) fn new(example: &'static str, why: impl Into<String>) -> Self {
        Self { example, why: why.into() }
    }
}

const EXAMPLE: &str = "postgres://user:password@host:5432/database";

impl FromStr for DatabaseAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            let why = "it begins neither with postgres:// nor postgresql://";
            return Err(AddressError::new(EXAMPLE, why));
        }
        let server = Server::from_str(text)
            .map_err(|error| AddressError::new(EXAMPLE, error.to_string()))?;
        let config = &server.config;
        for (missing, name) in [
            (config.get_hosts().is_empty(), "host"),
            (config.get_user().is_none(), "user"),
            (config.get_dbname().is_none(), "database"),
        ] {
            if missing {
                return Err(AddressError::new(EXAMPLE, format!("the {name} is missing")));
            }
        }
        Ok(Self(Box::new(server)))
    }
}

impl DatabaseAddress {
    /// How to connect, under a name that PostgreSQL shows.
    pub(crate) fn server(&self, name: &str) -> Server {
        let mut server = (*self.0).clone();
        let options = match server.config.get_options() {
            Some(given) => format!("{given} {OPTIONS}"),
            None => OPTIONS.to_owned(),
        };
        server.config.options(options).application_name(name);
        server
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.0.config;
        write!(f, "postgres://{}@", config.get_user().unwrap_or_default())?;
        for (index, host) in config.get_hosts().iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match host {
                Host::Tcp(host) => write!(f, "{comma}{host}")?,
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
            // One port may stand for all hosts.
            let port = config.get_ports().get(index).or(config.get_ports().first());
            write!(f, ":{}", port.unwrap_or(&5432))?;
        }
        write!(f, "/{}", config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let address: DatabaseAddress = "postgres://ana:hush@db.example:6543/chat".parse().unwrap();
        let shown = format!("{address} {address:?}");
        assert!(!shown.contains("hush"), "{shown}");
        assert_eq!(address.to_string(), "postgres://ana@db.example:6543/chat");
        for wrong in [
            "mysql://ana:hush@db/chat",
            "postgres://ana:hush@db:no/chat",
            "postgres://ana:hush@db/chat?hush=1",
            "postgres://ana:hush@db/chat?sslmode=allow",
            "postgres://ana:hush@db/chat?sslmode=verify-ca&sslrootcert=/not/there",
            "postgres://ana:hush@db",
            "postgres://db/chat",
        ] {
            let error = wrong.parse::<DatabaseAddress>().unwrap_err().to_string();
            assert!(!error.contains("ana:hush"), "{wrong}: {error}");
        }
    }
}

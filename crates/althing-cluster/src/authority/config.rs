//! How a candidate takes part, and where the record is kept.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use super::LEASE_DEFAULT;
#[cfg(feature = "etcd")]
use super::etcd::Endpoints;
use super::file::Directory;
use super::storage::Storage;
#[cfg(any(feature = "postgres", feature = "etcd"))]
use super::storage::patience;
use crate::tls::Tls;

/// Where the candidates of a cluster keep its record.
///
/// It has to keep what it has acknowledged: a record that comes back older than it was begins
/// epochs anew. A database that fails over to a copy needs that copy to be synchronous.
#[derive(Clone)]
pub struct RecordStore(Kind);

#[derive(Clone)]
enum Kind {
    Directory(PathBuf),
    #[cfg(feature = "postgres")]
    Postgres(Box<althing_postgres::Server>),
    #[cfg(feature = "etcd")]
    Etcd(Endpoints),
}

impl RecordStore {
    /// A directory, for one candidate.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self(Kind::Directory(path.into()))
    }

    /// A PostgreSQL database (13 or later), by its URL; several hosts may stand in it. Two tables
    /// `althing_cluster_…` are made where they are missing.
    ///
    /// Whether connections are encrypted, and whom they believe, is in the URL (`sslmode` and
    /// `sslrootcert`), as [`althing_postgres`] has it.
    ///
    /// # Errors
    /// The URL cannot be read, or the certificates that it names.
    #[cfg(feature = "postgres")]
    pub fn postgres(url: &str) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let server: althing_postgres::Server = url.parse().map_err(invalid)?;
        Ok(Self(Kind::Postgres(Box::new(server))))
    }

    /// etcd (3.4 or later), by the hosts and ports of its servers; one that does not answer makes
    /// way for the next. Keys begin with `althing/`. Let it compact what is old
    /// (`--auto-compaction-retention`): each change of the record leaves some 100 KB of history.
    ///
    /// Connections are not encrypted: use a network that you trust.
    ///
    /// # Errors
    /// There is no host, or one is no host with a port.
    #[cfg(feature = "etcd")]
    pub fn etcd<H: AsRef<str>>(hosts: impl IntoIterator<Item = H>) -> io::Result<Self> {
        let mut known = Vec::new();
        for host in hosts {
            let host = host.as_ref();
            let host = host.strip_prefix("http://").unwrap_or(host).trim_end_matches('/');
            let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            if port.is_none() || host.contains('/') {
                let text = format!("`{host}` is no host with a port, without encryption");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            known.push(host.to_owned());
        }
        if known.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no host of etcd"));
        }
        Ok(Self(Kind::Etcd(Endpoints { hosts: known, credentials: None })))
    }

    /// As [`RecordStore::etcd`], as a user of etcd's.
    ///
    /// # Errors
    /// As `etcd`.
    #[cfg(feature = "etcd")]
    pub fn etcd_as<H: AsRef<str>>(
        hosts: impl IntoIterator<Item = H>,
        name: &str,
        password: &str,
    ) -> io::Result<Self> {
        let mut store = Self::etcd(hosts)?;
        if let Kind::Etcd(endpoints) = &mut store.0 {
            endpoints.credentials = Some((name.to_owned(), password.to_owned()));
        }
        Ok(store)
    }

    /// Whether several candidates can share it.
    pub(super) fn is_shared(&self) -> bool {
        !matches!(self.0, Kind::Directory(_))
    }

    #[cfg_attr(
        not(any(feature = "postgres", feature = "etcd")),
        allow(unused_variables, reason = "a directory is one cluster's and answers at once")
    )]
    pub(super) fn open(&self, cluster: &str, lead_for: Duration) -> io::Result<Arc<dyn Storage>> {
        Ok(match &self.0 {
            Kind::Directory(path) => Arc::new(Directory::open(path)?),
            #[cfg(feature = "postgres")]
            Kind::Postgres(server) => {
                let server = (**server).clone();
                Arc::new(super::postgres::Postgres::new(server, cluster, patience(lead_for)))
            }
            #[cfg(feature = "etcd")]
            Kind::Etcd(endpoints) => {
                Arc::new(super::etcd::Etcd::new(endpoints.clone(), cluster, patience(lead_for)))
            }
        })
    }
}

/// Without what may be a password.
impl fmt::Debug for RecordStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Directory(path) => f.debug_tuple("Directory").field(path).finish(),
            #[cfg(feature = "postgres")]
            Kind::Postgres(server) => {
                f.debug_tuple("Postgres").field(&server.config.get_hosts()).finish()
            }
            #[cfg(feature = "etcd")]
            Kind::Etcd(endpoints) => f.debug_tuple("Etcd").field(&endpoints.hosts).finish(),
        }
    }
}

/// How a process takes part in being the authority.
///
/// Each of three processes, so that two may be lost:
///
/// ```no_run
/// # #[cfg(feature = "postgres")] {
/// use althing_cluster::{Authority, AuthorityConfig, RecordStore, Tls};
///
/// # fn main() -> std::io::Result<()> {
/// let store = RecordStore::postgres("postgres://shop@db/shop")?;
/// let config = AuthorityConfig::new("shop", store, Tls::from_directory("/srv/shop/tls", "shop-1"))
///     .listen("0.0.0.0:7400".parse().expect("an address"))
///     .advertised("shop-1.internal:7400");
/// let authority = Authority::serve(config)?;
/// # Ok(())
/// # }
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthorityConfig {
    /// Name of the cluster; several may share a store.
    pub cluster: String,
    /// Where the record is kept.
    pub store: RecordStore,
    /// Where members connect.
    pub listen: SocketAddr,
    /// The address that is told to members, if it is not the one listened at.
    pub advertised: Option<String>,
    /// How long a member's lease lasts. A leader that is lost is replaced before the leases have
    /// run out; with etcd, whose own leases last two seconds at least, only if they are of 5 s or
    /// more. All candidates should say the same.
    pub lease: Duration,
    /// The certificate of any node of the cluster, or plaintext like that of all others.
    pub tls: Tls,
}

impl AuthorityConfig {
    /// A candidate that listens on any port of 127.0.0.1 and gives leases of 5 s.
    pub fn new(cluster: impl Into<String>, store: RecordStore, tls: Tls) -> Self {
        Self {
            cluster: cluster.into(),
            store,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertised: None,
            lease: LEASE_DEFAULT,
            tls,
        }
    }

    /// Sets where members connect.
    #[must_use]
    pub fn listen(mut self, listen: SocketAddr) -> Self {
        self.listen = listen;
        self
    }

    /// Sets the address that is told to members.
    #[must_use]
    pub fn advertised(mut self, address: impl Into<String>) -> Self {
        self.advertised = Some(address.into());
        self
    }

    /// Sets how long a member's lease lasts.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }
}

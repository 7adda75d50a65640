//! Who may talk to whom: each node has a certificate that the cluster's own authority signed, and
//! both sides of every connection show theirs.
//!
//! A certificate says which node of which cluster it is for by a DNS name,
//! `<node>.<cluster>.althing`; that name is compared with the member that the other side claims to
//! be, never with the host that was dialled. TLS 1.3 only, and no session is resumed: each
//! connection is judged by the certificates of its day.

mod keys;
mod strangers;
#[cfg(test)]
mod tests;
mod verify;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use self::keys::{Keys, look_on};
pub use self::strangers::{Refusals, RefusedFor};
pub(crate) use self::strangers::{Strangers, Untrusted};
pub(crate) use self::verify::expected_name;

/// The last labels of the names in certificates.
const SUFFIX: &str = "althing";

/// How connections between the processes of a cluster are protected.
///
/// The certificate is that of the node, followed by any between it and the authority; the authority
/// signs for this cluster only. `folkmoot cluster init` makes all of them, and so does
/// `CertificateAuthority` (feature `certificates`).
#[derive(Clone)]
pub struct Tls(Source);

#[derive(Clone)]
enum Source {
    Files(Files),
    Pem(Arc<Pem>),
    Plaintext,
}

#[derive(Clone, Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authority: PathBuf,
}

/// What stands in the files.
#[derive(PartialEq, Eq)]
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

impl Tls {
    /// By the certificate, its key and the authority's certificate in these files, in PEM. They are
    /// looked at every two seconds: a new certificate counts for new connections, and one that
    /// cannot be used, or that other nodes would not trust, changes nothing but the log. The file
    /// of the authority may hold several, while one takes the place of another.
    pub fn from_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
        authority: impl Into<PathBuf>,
    ) -> Self {
        let (certificate, key, authority) = (certificate.into(), key.into(), authority.into());
        Self(Source::Files(Files { certificate, key, authority }))
    }

    /// By the files that `folkmoot cluster init` made for the node in that directory.
    pub fn from_directory(directory: impl AsRef<Path>, node: &str) -> Self {
        let file = |name: String| directory.as_ref().join(name);
        Self::from_files(
            file(format!("{node}.pem")),
            file(format!("{node}.key")),
            file("ca.pem".to_owned()),
        )
    }

    /// By a certificate, its key and the authority's certificate in PEM, which stay what they are.
    pub fn from_pem(
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
        authority: impl Into<Vec<u8>>,
    ) -> Self {
        let (certificate, key, authority) = (certificate.into(), key.into(), authority.into());
        Self(Source::Pem(Arc::new(Pem { certificate, key, authority })))
    }

    /// Not at all: whoever knows the cluster's name and reaches the ports can read, change and join.
    /// Of use on loopback, and within a network that encrypts by itself.
    pub fn insecure_plaintext() -> Self {
        Self(Source::Plaintext)
    }

    /// What connections of that cluster are made with; `None` in plaintext. Blocks. With a node, the
    /// certificate has to be for it.
    fn keys(&self, cluster: &str, node: Option<&str>) -> io::Result<Option<Keys>> {
        match self.0 {
            Source::Plaintext => Ok(None),
            _ => Keys::open(self.clone(), cluster, node).map(Some),
        }
    }

    fn read(&self) -> io::Result<Arc<Pem>> {
        let Files { certificate, key, authority } = match &self.0 {
            Source::Files(files) => files,
            Source::Pem(pem) => return Ok(pem.clone()),
            Source::Plaintext => return Err(io::ErrorKind::Unsupported.into()),
        };
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
            })
        };
        let pem =
            Pem { certificate: read(certificate)?, key: read(key)?, authority: read(authority)? };
        Ok(Arc::new(pem))
    }

    /// Whether it may become another one.
    fn changes(&self) -> bool {
        matches!(self.0, Source::Files(_))
    }
}

/// Without the keys.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Files(files) => files.fmt(f),
            Source::Pem(_) => f.write_str("Pem"),
            Source::Plaintext => f.write_str("Plaintext"),
        }
    }
}

/// What protects the connections of one process: its keys, and what it has refused.
pub(crate) struct Guard {
    pub(crate) keys: Option<Keys>,
    pub(crate) strangers: Strangers,
}

impl Guard {
    /// # Errors
    /// The certificates cannot be used for that cluster or that node.
    pub(crate) fn open(tls: &Tls, cluster: &str, node: Option<&str>) -> io::Result<Arc<Self>> {
        let keys = tls.keys(cluster, node)?;
        Ok(Arc::new(Self { keys, strangers: Strangers::default() }))
    }
}

//! The certificates in use: read at the start, looked at again while the process runs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::time::sleep;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::verify::{Judge, nodes_of};
use super::{Pem, Source, Tls, Untrusted};

/// How often the files are looked at: they are small, and a certificate is renewed long before its
/// end.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What the next connection is made with, by either side.
#[derive(Clone)]
pub(crate) struct Configs {
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) server: Arc<ServerConfig>,
}

/// The certificates of one process.
pub(crate) struct Keys {
    tls: Tls,
    cluster: String,
    node: Option<String>,
    current: RwLock<Configs>,
    /// What was looked at last.
    seen: Mutex<Seen>,
}

struct Seen {
    pem: Arc<Pem>,
    /// It could not be used; that may pass, as when it does not count yet.
    is_refused: bool,
}

impl Keys {
    pub(super) fn open(tls: Tls, cluster: &str, node: Option<&str>) -> io::Result<Self> {
        if cluster.is_empty() || cluster.contains('.') {
            let text = format!("the cluster's name `{cluster}` cannot stand in a certificate");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let pem = tls.read()?;
        let (current, own) = tls.usable(&pem, cluster, node)?;
        if let Err(why) = own.check() {
            tracing::error!(%why, "other nodes will not trust this node's certificate");
        }
        let current = RwLock::new(current);
        let (cluster, node) = (cluster.to_owned(), node.map(str::to_owned));
        let seen = Mutex::new(Seen { pem, is_refused: false });
        Ok(Self { tls, cluster, node, current, seen })
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    /// What the next connection is made with.
    pub(crate) fn current(&self) -> Configs {
        self.current.read().clone()
    }

    /// The nodes of this cluster that a certificate is for.
    pub(crate) fn nodes_of(&self, certificate: &CertificateDer<'_>) -> Vec<String> {
        nodes_of(certificate, &self.cluster)
    }

    /// Whether other nodes would trust what is in the files.
    #[cfg(test)]
    pub(super) fn check_own(&self) -> io::Result<()> {
        let (_, own) = self.tls.usable(&*self.tls.read()?, &self.cluster, self.node.as_deref())?;
        own.check()
    }

    /// Takes the files in if they have changed; says whether it has. Blocks.
    ///
    /// # Errors
    /// They cannot be used, or other nodes would not trust them, which is told once for each change;
    /// what was in use stays.
    pub(super) fn look(&self) -> io::Result<bool> {
        let pem = self.tls.read()?;
        let mut seen = self.seen.lock();
        let is_known = seen.pem == pem;
        if is_known && !seen.is_refused {
            return Ok(false);
        }
        let usable = self.tls.usable(&pem, &self.cluster, self.node.as_deref());
        let usable = usable.and_then(|(configs, own)| own.check().map(|()| configs));
        *seen = Seen { pem, is_refused: usable.is_err() };
        match usable {
            Ok(configs) => {
                *self.current.write() = configs;
                Ok(true)
            }
            Err(_) if is_known => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Looks at the files now and then until the runtime ends.
pub(crate) async fn look_on(guard: Arc<super::Guard>) {
    let mut is_unreadable = false;
    while guard.keys.as_ref().is_some_and(|keys| keys.tls.changes()) {
        sleep(LOOK_EVERY).await;
        let looking = guard.clone();
        let look = move || looking.keys.as_ref().map_or(Ok(false), Keys::look);
        match tokio::task::spawn_blocking(look).await {
            Ok(Ok(true)) => tracing::info!("the node's certificate was read anew"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => {
                let is_new = error.kind() == io::ErrorKind::InvalidData || !is_unreadable;
                is_unreadable = error.kind() != io::ErrorKind::InvalidData;
                // Said once: files are looked for every other second.
                if is_new {
                    tracing::error!(%error, "the node's certificate in use stays");
                }
                continue;
            }
            Err(_) => return,
        }
        is_unreadable = false;
    }
}

/// A node's own certificate, and how the others judge it if they trust the same authorities.
struct Own {
    place: String,
    judge: Arc<Judge>,
    chain: Vec<CertificateDer<'static>>,
    name: ServerName<'static>,
}

impl Own {
    /// # Errors
    /// They would not trust it now.
    fn check(&self) -> io::Result<()> {
        self.judge.trusts(&self.chain, &self.name, UnixTime::now()).map_err(|error| {
            let why = Untrusted::from(&error);
            invalid(format!("no other node would trust {}: {why}", self.place))
        })
    }
}

impl Tls {
    fn usable(&self, pem: &Pem, cluster: &str, node: Option<&str>) -> io::Result<(Configs, Own)> {
        let missing = |what: &str, error: pem::Error| {
            invalid(format!("{} has no {what} in PEM: {error}", self.place(what)))
        };
        let chain =
            certificates(&pem.certificate).map_err(|error| missing("certificate", error))?;
        let authorities = certificates(&pem.authority);
        let authorities = authorities.map_err(|error| missing("authority", error))?;
        let key = PrivateKeyDer::from_pem_slice(&pem.key);
        let key = key.map_err(|error| missing("key", error))?;
        let nodes = nodes_of(&chain[0], cluster);
        let is_for = |node: &str| nodes.iter().any(|known| known == node);
        if nodes.is_empty() || node.is_some_and(|node| !is_for(node)) {
            let (place, node) = (self.place("certificate"), node.unwrap_or("<node>"));
            let wanted = super::expected_name(cluster, Some(node));
            let wanted = wanted.map_or_else(|why| why.to_string(), |name| name.to_str().into());
            let found =
                if nodes.is_empty() { "nothing of it".to_owned() } else { nodes.join(", ") };
            return Err(invalid(format!(
                "{place} is not for this node: it has to name `{wanted}`, and names {found}"
            )));
        }
        let mut roots = RootCertStore::empty();
        let unusable = |error: &dyn std::fmt::Display| {
            invalid(format!("{} cannot be used: {error}", self.place("certificate")))
        };
        for authority in authorities {
            roots.add(authority).map_err(|error| unusable(&error))?;
        }
        let judge = Judge::new(cluster, roots, Arc::new(default_provider()));
        let judge = Arc::new(judge.map_err(|error| unusable(&error))?);
        let name = super::expected_name(cluster, node).map_err(|error| unusable(&error))?;
        let place = self.place("certificate");
        let own = Own { place, judge: judge.clone(), chain: chain.clone(), name };
        let configs = configs(judge, chain, key).map_err(|error| unusable(&error))?;
        Ok((configs, own))
    }

    /// Where something is, for a message.
    fn place(&self, what: &str) -> String {
        match (&self.0, what) {
            (Source::Files(files), "key") => files.key.display().to_string(),
            (Source::Files(files), "authority") => files.authority.display().to_string(),
            (Source::Files(files), _) => files.certificate.display().to_string(),
            _ => format!("the {what}"),
        }
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?;
    if found.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(found) }
}

fn configs(
    judge: Arc<Judge>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Configs, Box<dyn std::error::Error>> {
    let provider = Arc::new(default_provider());
    let client = ClientConfig::builder_with_provider(provider.clone());
    let mut client = client
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(judge.clone())
        .with_client_auth_cert(chain.clone(), key.clone_key())?;
    let server = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13])?;
    let mut server = server.with_client_cert_verifier(judge).with_single_cert(chain, key)?;
    // A session that goes on would not be judged again, and the name is no host's.
    client.resumption = Resumption::disabled();
    client.enable_sni = false;
    server.session_storage = Arc::new(NoServerSessionStorage {});
    server.send_tls13_tickets = 0;
    Ok(Configs { client: Arc::new(client), server: Arc::new(server) })
}

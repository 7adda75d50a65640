//! TLS at the front door, by a certificate and a key that the operator names. Both files are looked
//! at again while the server runs, so that a renewed certificate needs no restart; a pair that
//! cannot be used changes nothing but the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, ServerConfig};

/// How often the files are looked at: they are small, and a certificate is renewed weeks before its
/// end.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Where the certificate and its key are, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What is spoken behind the encryption: a client and the server agree on it in the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// As the routes and WebSockets have it.
    Http1,
    /// As gRPC has it.
    Http2,
}

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// As configured.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file has nothing of what it is for.
    #[error("{path} has no {what} in PEM: {source}")]
    Missing {
        /// As configured.
        path: PathBuf,
        /// A certificate, or a private key.
        what: &'static str,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// They do not belong together, or are of a kind that is not supported.
    #[error("the certificate {certificate} cannot be used with the key {key}: {source}")]
    Unusable {
        /// As configured.
        certificate: PathBuf,
        /// As configured.
        key: PathBuf,
        /// The library's reason.
        source: Error,
    },
}

/// What connections are encrypted by at the moment.
pub struct Tls {
    files: TlsFiles,
    spoken: Spoken,
    current: RwLock<Arc<ServerConfig>>,
    /// The bytes that were looked at last, usable or not.
    seen: Mutex<Pair>,
}

#[derive(PartialEq, Eq)]
struct Pair {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// Reads the files, for connections that speak HTTP/1.1. Blocks.
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        Self::open_for(Spoken::Http1, files)
    }

    /// Reads the files, for connections that speak something. Blocks.
    ///
    /// # Errors
    /// [`TlsError`], which names the file.
    pub fn open_for(spoken: Spoken, files: TlsFiles) -> Result<Self, TlsError> {
        let pair = Pair::read(&files)?;
        let current = RwLock::new(usable(spoken, &files, &pair)?);
        Ok(Self { files, spoken, current, seen: Mutex::new(pair) })
    }

    /// What the next connection is encrypted by.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.read().clone())
    }

    /// Takes the files in if they have changed; says whether they had. Blocks.
    ///
    /// # Errors
    /// [`TlsError`], once for each change; connections are encrypted as before.
    pub fn look(&self) -> Result<bool, TlsError> {
        let pair = Pair::read(&self.files)?;
        let mut seen = self.seen.lock();
        if *seen == pair {
            return Ok(false);
        }
        let usable = usable(self.spoken, &self.files, &pair);
        *seen = pair;
        drop(seen);
        *self.current.write() = usable?;
        Ok(true)
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Pair {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
        };
        Ok(Self { certificate: read(&files.certificate)?, key: read(&files.key)? })
    }
}

fn usable(spoken: Spoken, files: &TlsFiles, pair: &Pair) -> Result<Arc<ServerConfig>, TlsError> {
    let missing = |path: &Path, what| {
        let path = path.to_owned();
        move |source| TlsError::Missing { path, what, source }
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pair.certificate).collect();
    let chain = chain.and_then(|chain| match chain.is_empty() {
        true => Err(pem::Error::NoItemsFound),
        false => Ok(chain),
    });
    let chain = chain.map_err(missing(&files.certificate, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&pair.key);
    let key = key.map_err(missing(&files.key, "private key"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    let mut config = config.map_err(|source| TlsError::Unusable {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        source,
    })?;
    config.alpn_protocols = vec![match spoken {
        // A WebSocket begins as a request of HTTP/1.1, and the routes are served by nothing else.
        Spoken::Http1 => b"http/1.1".to_vec(),
        Spoken::Http2 => b"h2".to_vec(),
    }];
    Ok(Arc::new(config))
}

/// Looks at the files now and then until the server stops.
pub async fn look_until_stopped(tls: Arc<Tls>, mut stopping: watch::Receiver<bool>) {
    let mut is_unreadable = false;
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stops| *stops) => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let looking = tls.clone();
        match tokio::task::spawn_blocking(move || looking.look())
            .await
            .expect("looking does not panic")
        {
            Ok(true) => tracing::info!("the certificate was read anew"),
            Ok(false) => {}
            // Said once: it is looked for every other second.
            Err(TlsError::Unreadable { .. }) if is_unreadable => continue,
            Err(error) => {
                is_unreadable = matches!(error, TlsError::Unreadable { .. });
                tracing::error!(%error, "the certificate in use stays");
                continue;
            }
        }
        is_unreadable = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with a pair that belongs together.
    struct Files(PathBuf, TlsFiles);

    impl Files {
        fn new(name: &str) -> Self {
            let name = format!("folkmoot-tls-{name}-{}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&directory).unwrap();
            let [certificate, key] = ["cert.pem", "key.pem"].map(|name| directory.join(name));
            let files = Self(directory, TlsFiles { certificate, key });
            let (certificate, key) = pair();
            files.write(&certificate, &key);
            files
        }

        fn write(&self, certificate: &str, key: &str) {
            std::fs::write(&self.1.certificate, certificate).unwrap();
            std::fs::write(&self.1.key, key).unwrap();
        }

        fn refused(&self) -> String {
            Tls::open(self.1.clone()).unwrap_err().to_string()
        }
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_file() {
        let files = Files::new("named");
        let (certificate, key) = pair();
        let other_key = pair().1;
        for (certificate, key, words) in [
            ("nonsense", key.as_str(), ["cert.pem", "no certificate"]),
            (&certificate, "nonsense", ["key.pem", "no private key"]),
            (&certificate, &other_key, ["cert.pem", "key.pem"]),
        ] {
            files.write(certificate, key);
            let refused = files.refused();
            assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
        }
        std::fs::remove_file(&files.1.key).unwrap();
        assert!(files.refused().contains("key.pem"));
    }

    #[test]
    fn a_changed_pair_is_taken_and_a_bad_one_leaves_the_old() {
        let files = Files::new("reload");
        let tls = Tls::open(files.1.clone()).unwrap();
        let first = tls.current.read().clone();
        assert!(!tls.look().unwrap(), "nothing has changed");
        let (certificate, key) = pair();
        // Half of a renewal.
        std::fs::write(&files.1.certificate, &certificate).unwrap();
        assert!(matches!(tls.look(), Err(TlsError::Unusable { .. })));
        assert!(Arc::ptr_eq(&first, &tls.current.read()));
        assert!(!tls.look().unwrap(), "the same trouble is told once");
        std::fs::write(&files.1.key, key).unwrap();
        assert!(tls.look().unwrap());
        let second = tls.current.read().clone();
        assert!(!Arc::ptr_eq(&first, &second));
        files.write("nonsense", "nonsense");
        assert!(tls.look().is_err());
        assert!(Arc::ptr_eq(&second, &tls.current.read()));
    }
}

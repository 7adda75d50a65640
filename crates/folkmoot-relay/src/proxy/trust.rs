//! Which certificates are believed where a URL is `https://`: those that the system's authorities
//! or the operator's own vouch for.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Where systems keep the authorities that they believe; the first one that is there counts.
const OF_SYSTEM: [&str; 4] = [
    // Debian and those after it, Alpine.
    "/etc/ssl/certs/ca-certificates.crt",
    // Red Hat and those after it.
    "/etc/pki/tls/certs/ca-bundle.crt",
    // SUSE.
    "/etc/ssl/ca-bundle.pem",
    // BSD, macOS.
    "/etc/ssl/cert.pem",
];

/// Whom to believe, read when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// Authorities in PEM, beside those of the system.
    ca: Option<PathBuf>,
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Trust {
    pub(crate) fn new(ca: Option<PathBuf>) -> Self {
        Self { ca, config: OnceLock::new() }
    }

    /// How connections are opened; an error says what is wrong with the settings or the system.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, String> {
        self.config.get_or_init(|| self.authorities().and_then(config)).clone()
    }

    fn authorities(&self) -> Result<RootCertStore, String> {
        let mut believed = RootCertStore::empty();
        if let Some(certificates) =
            OF_SYSTEM.iter().find_map(|path| CertificateDer::pem_file_iter(path).ok())
        {
            // One of an old kind must not make the others worthless.
            believed.add_parsable_certificates(certificates.filter_map(Result::ok));
        }
        if let Some(ca) = &self.ca {
            let wrong =
                |error: &dyn std::fmt::Display| format!("tls.ca: {}: {error}", ca.display());
            let certificates = CertificateDer::pem_file_iter(ca).map_err(|error| wrong(&error))?;
            let before = believed.len();
            for certificate in certificates {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                believed.add(certificate).map_err(|error| wrong(&error))?;
            }
            if believed.len() == before {
                return Err(wrong(&"it has no certificate in PEM"));
            }
        }
        if believed.is_empty() {
            return Err("the system has no authorities for https://; name some in tls.ca".into());
        }
        Ok(believed)
    }
}

fn config(authorities: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = config.with_root_certificates(authorities).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

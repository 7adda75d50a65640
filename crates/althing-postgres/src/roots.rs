//! Which authorities are believed.

use std::path::{Path, PathBuf};

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::tls::TlsError;

/// The word that stands for the authorities of the system.
pub(crate) const SYSTEM: &str = "system";

/// Where systems keep the authorities that they believe; the first one that is there counts.
const SYSTEM_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Where libpq looks in the user's home.
const DEFAULT_FILE: &str = ".postgresql/root.crt";

/// The authorities in the file that was named, or in the default one.
pub(crate) fn read(named: Option<&str>) -> Result<RootCertStore, TlsError> {
    let path = match named {
        Some(SYSTEM) => SYSTEM_FILES.iter().map(PathBuf::from).find(|path| path.exists()),
        Some(named) => Some(PathBuf::from(named)),
        None => std::env::home_dir().map(|home| home.join(DEFAULT_FILE)),
    };
    let path = path.ok_or(TlsError::NoRoots)?;
    if named.is_none() && !path.exists() {
        return Err(TlsError::NoRoots);
    }
    file(&path)
}

fn file(path: &Path) -> Result<RootCertStore, TlsError> {
    let failed = |why: String| TlsError::Roots { path: path.to_owned(), why };
    let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in found {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(failed("it has no certificate".to_owned()));
    }
    Ok(roots)
}

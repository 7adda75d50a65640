//! Settings of encryption where the relay listens.

use std::path::PathBuf;

use folkmoot_gateway::{Spoken, Tls, TlsFiles};
use serde::Deserialize;

use super::SettingsError;

/// Of where clients and backends call by HTTP; the address is none of the settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpServerSettings {
    pub(crate) tls: ListenerTls,
}

/// The certificate of one listener. Both are files, so that a renewed one can be read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListenerTls {
    pub(crate) enabled: bool,
    /// A file with the certificate in PEM, followed by those that vouch for it.
    pub(crate) cert_pem: PathBuf,
    /// A file with its private key in PEM.
    pub(crate) key_pem: PathBuf,
}

impl ListenerTls {
    /// Reads the files, if the operator wants encryption; `name` is that of these settings.
    pub(crate) async fn open(
        &self,
        name: &str,
        spoken: Spoken,
    ) -> Result<Option<Tls>, SettingsError> {
        let has_files = [&self.cert_pem, &self.key_pem].map(|file| !file.as_os_str().is_empty());
        let invalid = |text: String| Err(SettingsError::Invalid(format!("{name}{text}")));
        match (self.enabled, has_files) {
            (false, [false, false]) => return Ok(None),
            // Whoever names a certificate must not be left with connections in the clear.
            (false, _) => return invalid(" has a certificate or a key, and is not enabled".into()),
            (true, [false, _]) => return invalid(".enabled needs cert_pem, a file".into()),
            (true, [_, false]) => return invalid(".enabled needs key_pem, a file".into()),
            (true, [true, true]) => {}
        }
        let files = TlsFiles { certificate: self.cert_pem.clone(), key: self.key_pem.clone() };
        let opened = tokio::task::spawn_blocking(move || Tls::open_for(spoken, files)).await;
        let opened = opened.expect("reading two files does not panic");
        opened.map(Some).or_else(|error| invalid(format!(": {error}")))
    }
}

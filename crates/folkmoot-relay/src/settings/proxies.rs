//! Which backends are asked about what clients do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::Span;

/// An endpoint of a backend.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ProxySettings {
    /// For those that are not of channels.
    pub(crate) enabled: bool,
    /// `http://…` or `https://…`.
    pub(crate) endpoint: String,
    pub(crate) timeout: Span,
    /// Headers of the client's request that are passed on.
    pub(crate) http_headers: Vec<String>,
    /// The same of those that the client says in its connect command.
    pub(crate) emulated_headers: Vec<String>,
    pub(crate) http: HttpSettings,
    /// Whether requests say the `meta` of the connection.
    pub(crate) include_connection_meta: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpSettings {
    pub(crate) static_headers: BTreeMap<String, String>,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            enabled: false,
            endpoint: String::new(),
            timeout: Span(Duration::from_secs(1)),
            http_headers: Vec::new(),
            emulated_headers: Vec::new(),
            http: HttpSettings::default(),
            include_connection_meta: false,
        }
    }
}

/// Whom to believe where the URL of a backend is `https://…`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsSettings {
    /// A file of authorities in PEM, beside those of the system.
    pub(crate) ca: Option<PathBuf>,
}

/// About connections.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClientProxies {
    pub(crate) connect: ProxySettings,
    pub(crate) refresh: ProxySettings,
}

/// About channels, in the namespaces that say so.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChannelProxies {
    pub(crate) subscribe: ProxySettings,
    pub(crate) publish: ProxySettings,
    pub(crate) sub_refresh: ProxySettings,
}

/// About calls.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RpcSettings {
    pub(crate) proxy: ProxySettings,
    pub(crate) without_namespace: CallSettings,
    pub(crate) namespaces: Vec<CallSettings>,
}

/// Calls whose names begin alike.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CallSettings {
    pub(crate) name: String,
    pub(crate) proxy_enabled: bool,
}

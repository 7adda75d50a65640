//! Settings of the server API over gRPC.

use serde::Deserialize;

use super::{ErrorMode, KeySettings, ListenerTls};

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GrpcSettings {
    pub(crate) enabled: bool,
    /// An IP address; empty: that of the relay.
    pub(crate) address: String,
    pub(crate) port: u16,
    /// Who knows it may do everything; empty: nobody may.
    pub(crate) key: String,
    /// Those who know one of these may do a part.
    pub(crate) keys: Vec<KeySettings>,
    /// Bytes of one call; 0: as many as is usual.
    pub(crate) max_receive_message_size: usize,
    pub(crate) error_mode: ErrorMode,
    pub(crate) tls: ListenerTls,
}

impl Default for GrpcSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            address: String::new(),
            port: 10_000,
            key: String::new(),
            keys: Vec::new(),
            max_receive_message_size: 0,
            error_mode: ErrorMode::Answer,
            tls: ListenerTls::default(),
        }
    }
}

//! How sockets are kept: how long one may be silent, how many there may be, how much may wait.

use std::time::Duration;

use folkmoot_gateway::Settings;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GatewaySection {
    ping_s: u64,
    pong_timeout_s: u64,
    connect_timeout_s: u64,
    header_timeout_s: u64,
    connections_max: Option<usize>,
    connections_per_address_max: usize,
    connections_per_user_max: usize,
    outgoing_queue_bytes_max: usize,
}

impl Default for GatewaySection {
    fn default() -> Self {
        Self {
            // Below the 30 to 60 s after which home routers forget a connection.
            ping_s: 25,
            // A phone that sends a file at the edge of its network has ten seconds of it in a queue,
            // and the pong waits behind that.
            pong_timeout_s: 20,
            connect_timeout_s: 10,
            header_timeout_s: 10,
            connections_max: None,
            // An office or a school behind one address.
            connections_per_address_max: 1_000,
            // Some devices with many windows each.
            connections_per_user_max: 100,
            outgoing_queue_bytes_max: 1024 * 1024,
        }
    }
}

/// How the server treats its sockets.
#[derive(Debug, Clone)]
pub(crate) struct GatewayConfig {
    pub(crate) ping: Duration,
    pub(crate) pong_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    /// Until the headers of a request must be there, and how long a connection may be quiet
    /// between two requests.
    pub(crate) header_timeout: Duration,
    /// `None`: as many as the system has descriptors for.
    pub(crate) connections_max: Option<usize>,
    pub(crate) connections_per_address_max: usize,
    pub(crate) connections_per_user_max: usize,
    pub(crate) outgoing_queue_bytes_max: usize,
}

impl GatewayConfig {
    /// How each socket is kept.
    pub(crate) fn sockets(&self) -> Settings {
        Settings {
            ping: self.ping,
            pong_timeout: self.pong_timeout,
            connect_timeout: self.connect_timeout,
            outgoing_queue_bytes_max: self.outgoing_queue_bytes_max,
        }
    }
}

impl From<GatewaySection> for GatewayConfig {
    fn from(section: GatewaySection) -> Self {
        Self {
            ping: Duration::from_secs(section.ping_s),
            pong_timeout: Duration::from_secs(section.pong_timeout_s),
            connect_timeout: Duration::from_secs(section.connect_timeout_s),
            header_timeout: Duration::from_secs(section.header_timeout_s),
            connections_max: section.connections_max,
            connections_per_address_max: section.connections_per_address_max,
            connections_per_user_max: section.connections_per_user_max,
            outgoing_queue_bytes_max: section.outgoing_queue_bytes_max,
        }
    }
}

//! The broker inside: rumqttd as a library, on a loopback port, speaking MQTT 5.
//!
//! It has threads of its own and no way to stop them; they end with the process.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};

/// A publisher that sends a larger payload is disconnected by the broker, to nobody else's harm.
const PAYLOAD_LEN_MAX: usize = 16 * 1_024;
const CONNECTIONS_MAX: usize = 1_024;
/// Log segments of the router: enough for a second of the heaviest load, little enough to forget.
const SEGMENT_LEN_MAX: usize = 16 * 1_024 * 1_024;
const SEGMENTS_MAX: usize = 4;
const START_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Starts the broker; returns once it accepts connections. Port 0 takes a free one.
///
/// # Errors
/// If the port is taken or the broker does not come up.
pub(crate) fn start(port: u16) -> anyhow::Result<SocketAddr> {
    let listen = free_address(port)?;
    let mut broker = Broker::new(config(listen));
    thread::Builder::new().name("broker".to_owned()).spawn(move || {
        if let Err(error) = broker.start() {
            tracing::error!(%error, "the embedded broker has ended");
        }
    })?;
    let deadline = Instant::now() + START_MAX;
    while TcpStream::connect(listen).is_err() {
        if Instant::now() > deadline {
            bail!("the embedded broker does not accept connections on {listen}");
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(listen)
}

/// rumqttd binds by itself and does not tell its port, so a free one is found before.
fn free_address(port: u16) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("port {port} for the embedded broker"))?;
    Ok(listener.local_addr()?)
}

fn config(listen: SocketAddr) -> Config {
    let connections = ConnectionSettings {
        connection_timeout_ms: 5_000,
        max_payload_size: PAYLOAD_LEN_MAX,
        max_inflight_count: 100,
        auth: None,
        external_auth: None,
        dynamic_filters: false,
    };
    let server = ServerSettings {
        name: "mqtt".to_owned(),
        listen,
        tls: None,
        next_connection_delay_ms: 1,
        connections,
    };
    Config {
        router: RouterConfig {
            max_connections: CONNECTIONS_MAX,
            max_outgoing_packet_count: 500,
            max_segment_size: SEGMENT_LEN_MAX,
            max_segment_count: SEGMENTS_MAX,
            ..RouterConfig::default()
        },
        v5: Some(HashMap::from([("mqtt".to_owned(), server)])),
        ..Config::default()
    }
}

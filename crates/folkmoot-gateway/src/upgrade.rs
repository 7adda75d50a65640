//! From an HTTP request to a socket of the client protocol: its format, its limits, its settings.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use folkmoot_protocol::{Format, PROTOBUF_SUBPROTOCOL};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::accept::Visit;
use crate::accept::lent::Lent;
use crate::connection::Application;
use crate::websocket::{self, Incoming};

/// The SDKs name it when they speak JSON.
const JSON_SUBPROTOCOL: &str = "centrifuge-json";
/// Values of `?format=` and `?cf_protocol=` that ask for protobuf; the first is Centrifugo's.
const PROTOBUF_FORMATS: [&str; 2] = ["protobuf", "cf_protobuf"];
/// Of WebSocket (RFC 6455).
const VERSION: &str = "13";

/// How sockets are kept.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Between two pings of the server.
    pub ping: Duration,
    /// For the answer to a ping.
    pub pong_timeout: Duration,
    /// For the connect command.
    pub connect_timeout: Duration,
    /// Encoded events that may wait for one connection, in bytes.
    pub outgoing_queue_bytes_max: usize,
}

/// How a client may choose its format in the URL.
#[derive(Debug, Default, Deserialize)]
pub struct SocketQuery {
    #[serde(default)]
    format: String,
    #[serde(default)]
    cf_protocol: String,
}

/// A request to make its connection a WebSocket. Any other is answered with 426.
#[derive(Debug)]
pub struct Handshake {
    /// What the client wants to see back.
    accept: String,
    /// The one that both speak.
    protocol: Option<&'static str>,
    on_upgrade: OnUpgrade,
}

impl<S: Send + Sync> FromRequestParts<S> for Handshake {
    type Rejection = (StatusCode, [(HeaderName, &'static str); 2], &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let on_upgrade = parts.extensions.remove::<OnUpgrade>();
        let (Some(key), Some(on_upgrade)) = (websocket_key(&parts.headers), on_upgrade) else {
            let wanted = [(header::UPGRADE, "websocket"), (header::SEC_WEBSOCKET_VERSION, VERSION)];
            let text = "here is a WebSocket of version 13\n";
            return Err((StatusCode::UPGRADE_REQUIRED, wanted, text));
        };
        let accept = derive_accept_key(key.as_bytes());
        Ok(Self { accept, protocol: protocol(&parts.headers), on_upgrade })
    }
}

/// Answers the request for a socket, and serves it until it ends.
pub fn upgrade<A: Application>(
    handshake: Handshake,
    query: &SocketQuery,
    visit: Arc<Visit>,
    settings: Settings,
    application: A,
) -> Response {
    let Handshake { accept, protocol, on_upgrade } = handshake;
    let asks_for_protobuf = [&query.format, &query.cf_protocol]
        .into_iter()
        .any(|value| PROTOBUF_FORMATS.contains(&value.as_str()));
    let format = match protocol == Some(PROTOBUF_SUBPROTOCOL) || asks_for_protobuf {
        true => Format::Protobuf,
        false => Format::Json,
    };
    // The socket is ours once the answer below is written. It is served by a task of its own, which
    // has no room for what comes before.
    tokio::spawn(async move {
        match on_upgrade.await.map(bare) {
            Ok(Bare::Clear(socket, begun)) => {
                let (read, write) = socket.into_split();
                let incoming = Incoming { read, begun, format };
                let serving = websocket::serve(incoming, write, application, visit, &settings);
                drop(tokio::spawn(serving));
            }
            Ok(Bare::Encrypted(socket)) => {
                let (read, write) = tokio::io::split(TokioIo::new(socket));
                let incoming = Incoming { read, begun: Vec::new(), format };
                let serving =
                    websocket::serve_encrypted(incoming, write, application, visit, &settings);
                drop(tokio::spawn(serving));
            }
            Err(error) => tracing::debug!(%error, "a client went before its upgrade"),
        }
    });
    let headers = [
        (header::CONNECTION, "upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_ACCEPT, &accept),
    ];
    let protocol = protocol.map(|protocol| [(header::SEC_WEBSOCKET_PROTOCOL, protocol)]);
    (StatusCode::SWITCHING_PROTOCOLS, headers, protocol, Body::empty()).into_response()
}

/// What is below HTTP.
enum Bare {
    /// The socket, and what has come of the new protocol already.
    Clear(TcpStream, Vec<u8>),
    Encrypted(Upgraded),
}

/// Takes a socket in the clear out of the HTTP library, whose buffers go.
fn bare(upgraded: Upgraded) -> Bare {
    match upgraded.downcast::<TokioIo<Lent<TcpStream>>>() {
        Ok(parts) => {
            let socket = parts.io.into_inner().take().expect("nobody else takes it");
            // Copied: it would keep the whole buffer.
            Bare::Clear(socket, parts.read_buf.to_vec())
        }
        Err(upgraded) => Bare::Encrypted(upgraded),
    }
}

fn websocket_key(headers: &HeaderMap) -> Option<&str> {
    let asks = names(headers, header::CONNECTION, "upgrade")
        && names(headers, header::UPGRADE, "websocket")
        && names(headers, header::SEC_WEBSOCKET_VERSION, VERSION);
    headers.get(header::SEC_WEBSOCKET_KEY)?.to_str().ok().filter(|_| asks)
}

/// Of the sub-protocols that the client offers the one that says most.
fn protocol(headers: &HeaderMap) -> Option<&'static str> {
    let offers = |name: &&str| names(headers, header::SEC_WEBSOCKET_PROTOCOL, name);
    [PROTOBUF_SUBPROTOCOL, JSON_SUBPROTOCOL].into_iter().find(offers)
}

/// Whether a header that is a list, in one line or several, has an entry.
fn names(headers: &HeaderMap, name: HeaderName, entry: &str) -> bool {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|part| part.trim().eq_ignore_ascii_case(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [(&str, &str); 4] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    fn headers<'a>(of: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_a_whole_handshake_has_a_key() {
        assert_eq!(websocket_key(&headers(WHOLE)), Some("dGhlIHNhbXBsZSBub25jZQ=="));
        for (missing, _) in WHOLE {
            let others = WHOLE.into_iter().filter(|(name, _)| *name != missing);
            assert_eq!(websocket_key(&headers(others)), None, "{missing}");
        }
    }

    #[test]
    fn of_what_a_client_speaks_protobuf_comes_first() {
        let offering = |offers: &[&'static str]| {
            protocol(&headers(offers.iter().map(|offer| ("sec-websocket-protocol", *offer))))
        };
        assert_eq!(
            offering(&["centrifuge-json, centrifuge-protobuf"]),
            Some("centrifuge-protobuf")
        );
        assert_eq!(offering(&["other", "centrifuge-json"]), Some("centrifuge-json"));
        assert_eq!(offering(&["centrifuge-json-2"]), None);
        assert_eq!(offering(&[]), None);
    }
}

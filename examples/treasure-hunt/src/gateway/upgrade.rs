//! From an HTTP request to a bare socket that speaks WebSocket.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::socket::{Conversation, Socket};

const VERSION: &str = "13";

/// Who talks with the clients that come.
pub(crate) trait Host: Send + Sync + 'static {
    /// With one of them.
    type Conversation: Conversation;
    /// Begins one.
    fn open(self: &Arc<Self>) -> Self::Conversation;
}

/// Answers the request for a socket, and serves it until it ends.
pub(crate) async fn upgrade<H: Host>(State(host): State<Arc<H>>, mut request: Request) -> Response {
    let headers = request.headers();
    if !is_same_origin(headers) {
        return (StatusCode::FORBIDDEN, "this page is not from here\n").into_response();
    }
    let Some(key) = websocket_key(headers) else {
        let versions = [(header::SEC_WEBSOCKET_VERSION, VERSION), (header::UPGRADE, "websocket")];
        return (StatusCode::UPGRADE_REQUIRED, versions, "here is a WebSocket\n").into_response();
    };
    let accept = derive_accept_key(key.as_bytes());
    let upgraded = hyper::upgrade::on(&mut request);
    // The socket is ours once the answer below is written.
    tokio::spawn(async move {
        match upgraded.await.map(bare) {
            Ok(Some((stream, begun))) => Socket::open(stream, host.open()).serve(begun).await,
            Ok(None) => tracing::error!("the listener's sockets are of another type"),
            Err(why) => tracing::debug!(%why, "a client went before its upgrade"),
        }
    });
    let headers = [
        (header::CONNECTION, "upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response()
}

/// The socket below hyper, and what has come of the new protocol already. hyper's buffers go.
fn bare(upgraded: Upgraded) -> Option<(TcpStream, Vec<u8>)> {
    let parts = downcast::<TokioIo<TcpStream>>(upgraded).ok()?;
    // Copied: it would keep the whole buffer.
    Some((parts.io.into_inner(), parts.read_buf.to_vec()))
}

fn websocket_key(headers: &HeaderMap) -> Option<&str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let names_it =
        |name, word: &str| text(name).is_some_and(|text| text.to_lowercase().contains(word));
    let asks = names_it(header::CONNECTION, "upgrade") && names_it(header::UPGRADE, "websocket");
    let key = text(header::SEC_WEBSOCKET_KEY)?;
    (asks && text(header::SEC_WEBSOCKET_VERSION) == Some(VERSION)).then_some(key)
}

/// Browsers name the page that connects; programs name none.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN).map(|origin| origin.to_str()) else {
        return true;
    };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let own = |origin: &str| origin.split_once("://").map(|(_, rest)| rest.to_owned());
    origin.is_ok_and(|origin| own(origin).as_deref() == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_hosts_may_not_connect() {
        let with = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:7000".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            is_same_origin(&headers)
        };
        assert!(with(None) && with(Some("http://127.0.0.1:7000")));
        assert!(!with(Some("http://elsewhere.example")) && !with(Some("null")));
    }

    #[test]
    fn only_a_whole_handshake_has_a_key() {
        let whole = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let headers = |skip: Option<&str>| -> HeaderMap {
            let kept = whole.iter().filter(|(name, _)| Some(*name) != skip);
            kept.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect::<Vec<(header::HeaderName, header::HeaderValue)>>()
                .into_iter()
                .collect()
        };
        assert_eq!(websocket_key(&headers(None)), Some("dGhlIHNhbXBsZSBub25jZQ=="));
        for (name, _) in whole {
            assert_eq!(websocket_key(&headers(Some(name))), None, "{name}");
        }
    }
}

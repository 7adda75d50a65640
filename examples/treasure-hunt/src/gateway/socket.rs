//! One WebSocket: reads messages, writes the outbox, and says goodbye properly.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite;

use super::connection::Connection;
use super::outbox::{Ended, Outbox};
use crate::limits::{FRAME_LEN_MAX, MALFORMED_MAX, PING_EVERY};
use crate::wire::Notice;
use crate::world::World;

/// Bytes of the socket's own buffers: small, because there is one pair per connection.
const BUFFER_LEN: usize = 4 * 1_024;
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

pub(super) async fn upgrade(
    State(world): State<Arc<World>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if !is_same_origin(&headers) {
        return (StatusCode::FORBIDDEN, "this page is not from here\n").into_response();
    }
    upgrade
        .max_message_size(FRAME_LEN_MAX)
        .max_frame_size(FRAME_LEN_MAX)
        .read_buffer_size(BUFFER_LEN)
        .write_buffer_size(0)
        .on_upgrade(move |socket| serve(socket, world))
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

async fn serve(socket: WebSocket, world: Arc<World>) {
    let (mut sink, mut stream) = socket.split();
    let outbox = Arc::new(Outbox::default());
    let connection = Connection::open(world.clone(), outbox.clone());
    let counters = world.clone();
    let writer = tokio::spawn(async move {
        let mut pings =
            tokio::time::interval_at(tokio::time::Instant::now() + PING_EVERY, PING_EVERY);
        let goodbye = loop {
            let message = tokio::select! {
                next = outbox.next() => next.map(Message::Binary),
                _ = pings.tick() => Ok(Message::Ping(Vec::new().into())),
            };
            match message {
                Ok(message) => {
                    if sink.send(message).await.is_err() {
                        return;
                    }
                }
                Err(Ended::Closed) => break None,
                Err(Ended::Overflow) => {
                    counters.counters.slow.count();
                    break Some((close_code::POLICY, "reads too slowly"));
                }
            }
        };
        let frame = goodbye.map(|(code, reason)| CloseFrame { code, reason: reason.into() });
        tokio::time::timeout(GOODBYE, sink.send(Message::Close(frame))).await.ok();
    });
    let mut malformed = 0;
    while malformed < MALFORMED_MAX && !writer.is_finished() {
        let message = match stream.next().await {
            None | Some(Ok(Message::Close(_))) => break,
            Some(Ok(message)) => message,
            Some(Err(error)) => {
                if is_too_large(error) {
                    world.counters.oversized.count();
                    let text = format!("a message has at most {FRAME_LEN_MAX} bytes");
                    connection.outbox().answer(&Notice::Fault(text.into()));
                }
                break;
            }
        };
        let read = match message {
            Message::Binary(bytes) => connection.read(&bytes).map_err(|why| why.to_string()),
            Message::Text(_) => Err("frames are binary".to_owned()),
            _ => Ok(()),
        };
        if let Err(why) = read {
            malformed += 1;
            world.counters.malformed.count();
            connection.outbox().answer(&Notice::Fault(why.into()));
        }
    }
    connection.close();
    writer.await.ok();
}

fn is_too_large(error: axum::Error) -> bool {
    error
        .into_inner()
        .downcast_ref::<tungstenite::Error>()
        .is_some_and(|error| matches!(error, tungstenite::Error::Capacity(_)))
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
}

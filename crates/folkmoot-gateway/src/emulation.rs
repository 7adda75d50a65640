//! Two-way connections over HTTP: what the server says is one long response, and each of the
//! client's commands is a request of its own, which names its session.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use folkmoot_protocol::Format;
use futures_util::{Stream, stream};
use parking_lot::Mutex;
use prost::Message;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::connection::Session;
use crate::ids::Ids;

/// Requests of one client that wait to be read; further ones wait to be answered.
const WAITING_LEN_MAX: usize = 16;

/// The sessions of one node.
#[derive(Debug)]
pub struct Emulation {
    node: String,
    ids: Ids,
    sessions: Mutex<HashMap<String, mpsc::Sender<Bytes>>>,
}

/// A command of a session.
#[derive(Message, Deserialize)]
#[serde(default)]
struct Request {
    #[prost(string, tag = "1")]
    node: String,
    #[prost(string, tag = "2")]
    session: String,
    #[prost(bytes = "vec", tag = "3")]
    #[serde(deserialize_with = "text")]
    data: Vec<u8>,
}

/// The SDKs send JSON commands as a string.
fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    String::deserialize(deserializer).map(String::into_bytes)
}

/// Forgets its session when dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    emulation: Arc<Emulation>,
    id: String,
}

impl Default for Emulation {
    fn default() -> Self {
        let ids = Ids::default();
        Self { node: ids.next(), ids, sessions: Mutex::default() }
    }
}

impl Emulation {
    /// Makes a session; its commands come as frames until it is forgotten.
    pub(crate) fn open(
        self: &Arc<Self>,
    ) -> (Session, Kept, impl Stream<Item = Bytes> + Unpin + Send + 'static + use<>) {
        let (sender, receiver) = mpsc::channel(WAITING_LEN_MAX);
        let id = self.ids.next();
        self.sessions.lock().insert(id.clone(), sender);
        let frames = stream::unfold(receiver, async |mut receiver| {
            let frame: Bytes = receiver.recv().await?;
            Some((frame, receiver))
        });
        let session = Session { id: id.clone(), node: self.node.clone() };
        (session, Kept { emulation: self.clone(), id }, Box::pin(frames))
    }

    /// Takes a request with commands: 204, 404 if the session was on another node, 400 if it is
    /// none. A session that has ended says so by the end of its response.
    pub async fn deliver(&self, headers: &HeaderMap, body: Bytes) -> StatusCode {
        self.deliver_as(format(headers), body).await
    }

    /// The same for a body in that format, which another node may have been sent.
    pub async fn deliver_as(&self, format: Format, body: Bytes) -> StatusCode {
        let request = match format {
            Format::Protobuf => Request::decode(body).ok(),
            Format::Json => serde_json::from_slice(&body).ok(),
        };
        let Some(request) = request else { return StatusCode::BAD_REQUEST };
        if request.node != self.node {
            return StatusCode::NOT_FOUND;
        }
        let session = self.sessions.lock().get(&request.session).cloned();
        if let Some(session) = session {
            // An error: it ends just now.
            let _ = session.send(request.data.into()).await;
        }
        StatusCode::NO_CONTENT
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.emulation.sessions.lock().remove(&self.id);
    }
}

/// What the SDKs say of a body.
pub fn format(headers: &HeaderMap) -> Format {
    let kind = headers.get(axum::http::header::CONTENT_TYPE);
    match kind.is_some_and(|kind| kind == "application/octet-stream") {
        true => Format::Protobuf,
        false => Format::Json,
    }
}

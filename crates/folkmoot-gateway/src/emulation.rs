//! Two-way connections over HTTP: what the server says is one long response, and each of the
//! client's commands is a request of its own, which names its session.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::HeaderMap;
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

/// A request with a command of a session.
#[derive(Message, Deserialize)]
#[serde(default)]
pub struct Emulated {
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

/// Where a command has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// To its session.
    There,
    /// Nowhere: its session has ended, or never was. One that has ended says so by the end of its
    /// response.
    Nowhere,
}

impl Emulated {
    /// Reads the body of a request; `None`: it is none.
    pub fn read(format: Format, body: Bytes) -> Option<Self> {
        match format {
            Format::Protobuf => Self::decode(body).ok(),
            Format::Json => serde_json::from_slice(&body).ok(),
        }
    }

    /// Which node the session is on, as that node was named when it began.
    pub fn node(&self) -> &str {
        &self.node
    }
}

/// Forgets its session when dropped.
#[derive(Debug)]
pub(crate) struct Kept {
    emulation: Arc<Emulation>,
    id: String,
}

impl Emulation {
    /// Sessions of a node; `name` begins what its clients call it, and may be empty.
    pub fn on(name: &str) -> Arc<Self> {
        let ids = Ids::default();
        let node = format!("{name}{}", ids.next());
        Arc::new(Self { node, ids, sessions: Mutex::default() })
    }

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

    /// Whether a request is for a session of this node.
    pub fn is_meant(&self, request: &Emulated) -> bool {
        request.node == self.node
    }

    /// Gives a command to its session, if it is on this node.
    pub async fn deliver(&self, request: Emulated) -> Delivered {
        if !self.is_meant(&request) {
            return Delivered::Nowhere;
        }
        let session = self.sessions.lock().get(&request.session).cloned();
        let Some(session) = session else { return Delivered::Nowhere };
        match session.send(request.data.into()).await {
            Ok(()) => Delivered::There,
            // It ends just now.
            Err(_) => Delivered::Nowhere,
        }
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

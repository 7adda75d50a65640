//! etcd's JSON over HTTP: calls by path, on connections that are kept.
//!
//! etcd's own protocol is gRPC, whose client needs a protobuf compiler when it is built; the
//! gateway is part of every etcd and needs none. Bytes travel as Base64, and 64-bit numbers as
//! text.

use std::sync::atomic::{AtomicUsize, Ordering};

use base64ct::{Base64, Encoding};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::Endpoints;

/// Longest answer: etcd's own limit for a value is 1.5 MiB, which Base64 makes a third longer.
const ANSWER_LEN_MAX: usize = 4 << 20;

/// Connections that are kept: for a claim and a record.
const KEPT_MAX: usize = 2;

/// Why a call was not answered. It may have had its effect.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    #[error("etcd cannot be reached: {0}")]
    Io(#[from] std::io::Error),
    #[error("the connection to etcd failed: {0}")]
    Http(#[from] hyper::Error),
    #[error("etcd answered with {0}: {1}")]
    Refused(StatusCode, String),
    #[error("etcd's answer cannot be read: {0}")]
    Unreadable(&'static str),
}

/// One etcd, of as many servers as it has.
pub(super) struct Gateway {
    endpoints: Endpoints,
    at: AtomicUsize,
    kept: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    token: Mutex<Option<String>>,
}

impl Gateway {
    pub(super) fn new(endpoints: Endpoints) -> Self {
        let (kept, token) = (Mutex::default(), Mutex::default());
        Self { endpoints, at: AtomicUsize::new(0), kept, token }
    }

    /// The next call goes to the next server, as somebody who has to prove who he is.
    pub(super) fn turn_away(&self) {
        self.at.fetch_add(1, Ordering::Relaxed);
        self.kept.lock().clear();
        *self.token.lock() = None;
    }

    /// Calls what is below `/v3/`.
    pub(super) async fn call(&self, path: &str, body: &Value) -> Result<Value, EtcdError> {
        let token = self.token().await?;
        self.post(path, body, token.as_deref()).await
    }

    async fn token(&self) -> Result<Option<String>, EtcdError> {
        let Some((name, password)) = &self.endpoints.credentials else { return Ok(None) };
        if let Some(token) = self.token.lock().clone() {
            return Ok(Some(token));
        }
        let body = json!({"name": name, "password": password});
        let answer = self.post("auth/authenticate", &body, None).await?;
        let token = answer["token"].as_str().ok_or(EtcdError::Unreadable("no token"))?.to_owned();
        *self.token.lock() = Some(token.clone());
        Ok(Some(token))
    }

    async fn post(
        &self,
        path: &str,
        body: &Value,
        token: Option<&str>,
    ) -> Result<Value, EtcdError> {
        let hosts = &self.endpoints.hosts;
        let host = &hosts[self.at.load(Ordering::Relaxed) % hosts.len()];
        let mut connection = self.connection(host).await?;
        let mut request = Request::post(format!("/v3/{path}")).header("host", host);
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        let unfit = |_| EtcdError::Unreadable("a name that fits no header");
        let request = request.body(Full::from(body.to_string())).map_err(unfit)?;
        let answer = connection.send_request(request).await?;
        let status = answer.status();
        let read = Limited::new(answer.into_body(), ANSWER_LEN_MAX).collect().await;
        let bytes =
            read.map_err(|_| EtcdError::Unreadable("it is cut off or too long"))?.to_bytes();
        if status != StatusCode::OK {
            return Err(EtcdError::Refused(status, String::from_utf8_lossy(&bytes).into_owned()));
        }
        let mut kept = self.kept.lock();
        if kept.len() < KEPT_MAX {
            kept.push(connection);
        }
        serde_json::from_slice(&bytes).map_err(|_| EtcdError::Unreadable("it is no JSON"))
    }

    async fn connection(&self, host: &str) -> Result<SendRequest<Full<Bytes>>, EtcdError> {
        while let Some(mut kept) = { self.kept.lock().pop() } {
            if kept.ready().await.is_ok() {
                return Ok(kept);
            }
        }
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends with its sender.
        tokio::spawn(async move {
            _ = connection.await;
        });
        Ok(sender)
    }
}

/// Bytes, as JSON has them.
pub(super) fn text_of(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

pub(super) fn bytes_of(value: &Value) -> Result<Vec<u8>, EtcdError> {
    let text = value.as_str().unwrap_or_default();
    Base64::decode_vec(text).map_err(|_| EtcdError::Unreadable("no Base64"))
}

/// A 64-bit number; one that is 0 is left out.
pub(super) fn number_of(value: &Value) -> Result<i64, EtcdError> {
    match value {
        Value::Null => Ok(0),
        Value::String(text) => text.parse().map_err(|_| EtcdError::Unreadable("no number")),
        other => other.as_i64().ok_or(EtcdError::Unreadable("no number")),
    }
}

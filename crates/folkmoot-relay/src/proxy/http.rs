//! Posts JSON to one endpoint of a backend over HTTP/1.1, in the clear or by TLS, and keeps
//! connections for the next time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, Request, StatusCode, Uri};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::trust::Trust;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Requests under way at once; the others wait for them as long as for an answer.
const UNDER_WAY_MAX: usize = 256;
/// Connections that are kept for the next request.
const IDLE_MAX: usize = 32;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    #[error("the connection: {0}")]
    Io(#[from] std::io::Error),
    #[error("the exchange: {0}")]
    Exchange(#[from] hyper::Error),
    #[error("the answer cannot be read: {0}")]
    Body(axum::Error),
    #[error("it answers with status {0}")]
    Status(StatusCode),
}

/// What may be sent a second time, where the backend has closed the connection that was kept for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// A question, which changes nothing.
    Always,
    /// Only what was not sent.
    IfUnsent,
}

/// An address of a backend.
#[derive(Debug)]
pub(crate) struct Endpoint {
    host: String,
    port: u16,
    path: String,
    timeout: Duration,
    headers: HeaderMap,
    /// `None`: in the clear.
    tls: Option<Tls>,
    idle: Mutex<Vec<SendRequest<Body>>>,
    under_way: Semaphore,
}

/// How an endpoint is reached by TLS, and whose its certificate must be.
#[derive(Debug)]
struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Endpoint {
    /// An endpoint by its URL; an error says what is wrong with it.
    pub(crate) fn new(
        url: &str,
        timeout: Duration,
        headers: &BTreeMap<String, String>,
        trust: &Trust,
    ) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("`{url}`: {error}"))?;
        let host = uri.host().ok_or_else(|| format!("`{url}` has no host"))?;
        // An address of IPv6 stands in brackets in URLs only.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let (tls, usual_port) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => {
                let name = ServerName::try_from(host.clone());
                let name = name.map_err(|error| format!("`{url}`: {error}"))?;
                (Some(Tls { config: trust.config()?, name }), 443)
            }
            _ => return Err(format!("`{url}` is no http:// or https:// URL")),
        };
        let port = uri.port_u16().unwrap_or(usual_port);
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let name = name.parse::<HeaderName>().map_err(|error| format!("{name}: {error}"))?;
            let value = value.parse().map_err(|error| format!("{name}: {error}"))?;
            all.insert(name, value);
        }
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let authority = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
        all.insert(HOST, authority);
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let (idle, under_way) = (Mutex::default(), Semaphore::new(UNDER_WAY_MAX));
        Ok(Self { host, port, path, timeout, headers: all, tls, idle, under_way })
    }

    /// Posts JSON with further headers; returns what comes back with status 200.
    pub(crate) async fn post(
        &self,
        headers: &HeaderMap,
        body: Bytes,
        repeat: Repeat,
    ) -> Result<Bytes, HttpError> {
        let mut all = self.headers.clone();
        all.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.ask(&Method::POST, &all, body, repeat).await
    }

    /// Reads what is there.
    pub(crate) async fn get(&self) -> Result<Bytes, HttpError> {
        self.ask(&Method::GET, &self.headers, Bytes::new(), Repeat::Always).await
    }

    async fn ask(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: Bytes,
        repeat: Repeat,
    ) -> Result<Bytes, HttpError> {
        let request = || {
            let mut request = Request::new(Body::from(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = self.path.parse().expect("it was a part of a URL");
            *request.headers_mut() = headers.clone();
            request
        };
        let asking = async {
            let _place = self.under_way.acquire().await.expect("it is never closed");
            while let Some(kept) = self.kept().await {
                match self.exchange(kept, request()).await {
                    // The backend was about to close it, and need not have seen the request.
                    Err(HttpError::Exchange(error))
                        if error.is_canceled() || repeat == Repeat::Always => {}
                    outcome => return outcome,
                }
            }
            self.exchange(self.connect().await?, request()).await
        };
        timeout(self.timeout, asking).await.unwrap_or(Err(HttpError::Timeout(self.timeout)))
    }

    async fn exchange(
        &self,
        mut connection: SendRequest<Body>,
        request: Request<Body>,
    ) -> Result<Bytes, HttpError> {
        let answer = connection.send_request(request).await?;
        let status = answer.status();
        let answer = to_bytes(Body::new(answer.into_body()), ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(HttpError::Body)?;
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        if status == StatusCode::OK { Ok(answer) } else { Err(HttpError::Status(status)) }
    }

    /// A connection that was kept and takes a request.
    async fn kept(&self) -> Option<SendRequest<Body>> {
        loop {
            let mut kept = self.idle.lock().pop()?;
            // The backend may have closed it.
            if kept.ready().await.is_ok() {
                return Some(kept);
            }
        }
    }

    async fn connect(&self) -> Result<SendRequest<Body>, HttpError> {
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await?;
        socket.set_nodelay(true)?;
        match &self.tls {
            None => speak(socket).await,
            Some(Tls { config, name }) => {
                let connector = TlsConnector::from(config.clone());
                speak(connector.connect(name.clone(), socket).await?).await
            }
        }
    }
}

/// What takes requests by this socket.
async fn speak(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Body>, HttpError> {
    let (requests, connection) = handshake(TokioIo::new(socket)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a backend has ended");
        }
    });
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::*;

    /// A backend that answers one request by each connection and closes it when it is told to.
    fn closing_backend() -> (String, mpsc::Sender<()>, mpsc::Receiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let ((close, closes), (closed, is_closed)) = (mpsc::channel(), mpsc::channel());
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (mut socket, mut read) = (socket.unwrap(), [0; 4_096]);
                assert!(socket.read(&mut read).unwrap() > 0);
                socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
                if closes.recv().is_err() {
                    return;
                }
                drop(socket);
                let _ = closed.send(());
            }
        });
        (url, close, is_closed)
    }

    /// On one thread, so that nobody notices the end of the connection before it is used.
    #[tokio::test]
    async fn a_connection_that_the_backend_has_just_closed_fails_no_question() {
        let (url, close, is_closed) = closing_backend();
        let (timeout, headers) = (Duration::from_secs(30), BTreeMap::new());
        let endpoint = Endpoint::new(&url, timeout, &headers, &Trust::default()).unwrap();
        for _ in 0..20 {
            let answer = endpoint.post(&HeaderMap::new(), Bytes::new(), Repeat::Always).await;
            assert_eq!(answer.unwrap(), "ok");
            close.send(()).unwrap();
            is_closed.recv().unwrap();
        }
    }
}

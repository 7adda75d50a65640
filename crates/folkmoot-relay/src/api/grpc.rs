//! The server API over gRPC, at an address of its own: unary calls over HTTP/2, whose metadata has
//! the key (`authorization: apikey …`). What a method refuses is an `error` in its answer, as over
//! HTTP, unless the operator or the call wants the status to tell it; else the status tells only of
//! what is no call. Connections are encrypted where the operator has named a certificate.

mod call;
mod convert;
mod framing;
mod messages;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use bytes::Bytes;
use folkmoot_gateway::{Doorman, Room, Spoken, Tls, Visit, look_until_stopped};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::caller::Caller;
use super::keys::Rights;
use super::mode;
use crate::server::{Server, StartError};
use crate::settings::{ErrorMode, GrpcSettings, SettingsError};
use framing::{Answer, Status};

/// The service, before the name of a method.
const SERVICE: &str = "/centrifugal.centrifugo.api.CentrifugoApi/";
/// Connections of backends; a client library makes one and calls beside each other in it. A newcomer
/// takes the place of the oldest one that has shown no key.
const CONNECTIONS_MAX: usize = 1_024;
/// The largest message unless another limit is set, as gRPC's libraries have it.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Calls under way in one connection.
const CALLS_MAX: u32 = 256;
/// Until a connection must have called something: a silent one takes a place.
const FIRST_CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Between signs of life, and for the answer to one.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// How long to leave the listener alone when the system has no room for another socket.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where calls are taken, and which.
#[derive(Debug)]
pub(crate) struct Grpc {
    listener: TcpListener,
    address: SocketAddr,
    terms: Arc<Terms>,
    /// `None`: connections are in the clear.
    tls: Option<Arc<Tls>>,
}

/// What every call has to keep.
#[derive(Debug)]
struct Terms {
    message_bytes_max: usize,
    error_mode: ErrorMode,
}

impl Grpc {
    /// Listens, if the operator wants it: at the relay's own IP address unless another is set.
    pub(crate) async fn bind(
        settings: GrpcSettings,
        relay: SocketAddr,
    ) -> Result<Option<Self>, StartError> {
        if !settings.enabled {
            return Ok(None);
        }
        let wrong = |text: &str| SettingsError::Invalid(format!("grpc_api.{text}"));
        if settings.key.is_empty() && settings.keys.is_empty() {
            return Err(wrong("enabled needs grpc_api.key or grpc_api.keys").into());
        }
        let ip: IpAddr = match settings.address.as_str() {
            "" => relay.ip(),
            address => address.parse().map_err(|_| wrong("address is no IP address"))?,
        };
        let tls = settings.tls.open("grpc_api.tls", Spoken::Http2).await?.map(Arc::new);
        let at = SocketAddr::new(ip, settings.port);
        let listen = |source| StartError::Listen { address: at, source };
        let listener = TcpListener::bind(at).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        tracing::info!(%address, is_encrypted = tls.is_some(), "the server API is called by gRPC");
        if tls.is_none() && !ip.to_canonical().is_loopback() {
            let text = "gRPC is in the clear beyond this machine, keys included; see grpc_api.tls";
            tracing::warn!(%address, "{text}");
        }
        let message_bytes_max = match settings.max_receive_message_size {
            0 => MESSAGE_BYTES_MAX,
            len => len,
        };
        let terms = Arc::new(Terms { message_bytes_max, error_mode: settings.error_mode });
        Ok(Some(Self { listener, address, terms, tls }))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes calls until the server stops, and lets those under way end.
    pub(crate) fn start(self, server: Arc<Server>) -> JoinHandle<()> {
        tokio::spawn(self.accept_until_stopped(server))
    }

    async fn accept_until_stopped(self, server: Arc<Server>) {
        let mut stopping = server.stopping();
        if let Some(tls) = &self.tls {
            tokio::spawn(look_until_stopped(tls.clone(), server.stopping()));
        }
        let room = Room {
            connections_max: CONNECTIONS_MAX,
            per_address_max: CONNECTIONS_MAX,
            unlimited: Vec::new(),
        };
        let (doorman, mut connections) = (Doorman::new(room), JoinSet::new());
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
                () = stops(&mut stopping) => break,
            };
            match accepted {
                Ok((socket, peer)) => {
                    let Some(visit) = doorman.enter(peer.ip()) else {
                        tracing::warn!("no room for another connection of gRPC");
                        continue;
                    };
                    let served =
                        serve(socket, self.tls.clone(), self.terms.clone(), server.clone(), visit);
                    connections.spawn(served);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection of gRPC could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
    }
}

/// Waits until the server stops.
async fn stops(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stops| *stops).await;
}

/// Serves one connection, in the clear or encrypted.
async fn serve(
    socket: TcpStream,
    tls: Option<Arc<Tls>>,
    terms: Arc<Terms>,
    server: Arc<Server>,
    visit: Visit,
) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let Some(tls) = tls else { return converse(socket, terms, server, &visit).await };
    let mut stopping = server.stopping();
    let encrypted = tokio::select! {
        encrypted = timeout(FIRST_CALL_TIMEOUT, tls.acceptor().accept(socket)) => encrypted,
        () = stops(&mut stopping) => return,
        () = visit.asked_to_leave() => return,
    };
    match encrypted {
        Ok(Ok(socket)) => converse(socket, terms, server, &visit).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection of gRPC could not be encrypted"),
        Err(_) => tracing::debug!("a connection of gRPC was not encrypted in time"),
    }
}

/// Serves one connection until it ends, or says nothing.
async fn converse<S>(socket: S, terms: Arc<Terms>, server: Arc<Server>, visit: &Visit)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stopping = server.stopping();
    let has_called = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        // Who knows no key is to be gone in time, whatever it calls: places are few.
        if rights(&server, request.headers()).is_some() {
            has_called.store(true, Ordering::Relaxed);
            visit.has_spoken();
        }
        let (terms, server) = (terms.clone(), server.clone());
        async move { Ok::<_, Infallible>(answer(&terms, &server, request).await) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(CALLS_MAX)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .serve_connection(TokioIo::new(socket), service);
    let (mut connection, mut late) = (pin!(connection), pin!(sleep(FIRST_CALL_TIMEOUT)));
    let mut is_early = true;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            () = visit.asked_to_leave() => return,
            () = late.as_mut(), if is_early => {
                if !has_called.load(Ordering::Relaxed) {
                    return;
                }
                is_early = false;
            }
            () = stops(&mut stopping) => {
                if !has_called.load(Ordering::Relaxed) {
                    return;
                }
                connection.as_mut().graceful_shutdown();
                break connection.await;
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of gRPC ended early");
    }
}

async fn answer(
    terms: &Terms,
    server: &Arc<Server>,
    request: Request<Incoming>,
) -> Response<Answer> {
    let kind = request.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    let is_call = kind.is_some_and(|kind| kind.starts_with(b"application/grpc"));
    if request.method() != Method::POST || !is_call {
        let mut response = Response::new(Answer::default());
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    match run(terms, server, request).await {
        Ok(message) => framing::response(&message),
        Err(status) => framing::failed(&status),
    }
}

/// What who calls has a right to, if it knows a key.
fn rights(server: &Server, headers: &HeaderMap) -> Option<Arc<Rights>> {
    let key = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    server.grpc_keys.rights(key?.strip_prefix(b"apikey ")?)
}

/// Makes a call of a request, and runs it. Nothing is read of who does not know the key.
async fn run(
    terms: &Terms,
    server: &Arc<Server>,
    request: Request<Incoming>,
) -> Result<Vec<u8>, Status> {
    let Some(rights) = rights(server, request.headers()) else {
        return Err(Status::new(Status::UNAUTHENTICATED, "the API key is missing or wrong"));
    };
    let caller = Caller { server: server.clone(), rights };
    let mode = mode::of(request.headers(), terms.error_mode);
    let (head, body) = request.into_parts();
    let method = head.uri.path().strip_prefix(SERVICE).unwrap_or_default();
    if !call::is_known(method) {
        let text = format!("{} is not offered", head.uri.path());
        return Err(Status::new(Status::UNIMPLEMENTED, text));
    }
    let message: Bytes = framing::read(body, terms.message_bytes_max).await?;
    call::run(&caller, method, message, mode).await
}

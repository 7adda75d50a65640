//! The front door: accepts connections, gives each its time limits, and hands what it asks to the
//! routes. Knows nothing of chat, and nothing of HTTP beyond how long its headers may take.

mod body;
pub(crate) mod client_address;
mod descriptors;
mod doorman;
pub(crate) mod lasting;
pub(crate) mod lent;
pub(crate) mod tls;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};

pub use descriptors::raise_descriptors;
pub use doorman::{Doorman, Room, Visit};
pub use tls::look_until_stopped;

use body::Coming;
use lasting::{Lasting, Written, may_last};
use lent::Lent;
use tls::Tls;

/// How long to leave the listener alone when the system has no room for another socket.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The visit that a request belongs to, among the request's extensions.
#[derive(Debug, Clone)]
pub struct Guest(pub Arc<Visit>);

/// What every connection passes.
#[derive(Debug, Clone)]
pub struct Door {
    /// Who is inside.
    pub doorman: Arc<Doorman>,
    /// Until the headers of a request must be there, and the beginning of its body after them; and
    /// how long a connection may be quiet between two requests.
    pub header_timeout: Duration,
    /// `None`: connections are in the clear.
    pub tls: Option<Arc<Tls>>,
    /// Turns true when the server begins to stop.
    pub stopping: watch::Receiver<bool>,
}

/// Connections that may wait to be accepted; the kernel takes less if `net.core.somaxconn` says so.
/// When all clients come back at once, one that finds no room tries again after a second, then two,
/// four and so on: with the usual 1,024 the last of 10,000 was back after half a minute.
const WAITING_MAX: u32 = 65_535;

/// Listens where clients come in by the thousand.
///
/// # Errors
/// The address is taken, or not one of this machine.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that starts again does not wait for connections of the one before to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING_MAX)
}

/// Accepts until the server stops, then lets the requests under way end.
pub async fn accept_until_stopped(door: Door, listener: TcpListener, routes: Router) {
    let mut stopping = door.stopping.clone();
    loop {
        let (socket, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = stops(&mut stopping) => break,
        };
        // Refused without a word: a word for each of thousands would be work for who sent them.
        let Some(visit) = door.doorman.enter(peer.ip()) else { continue };
        // Messages are coalesced before they are written, so the kernel must not wait for more.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        tokio::spawn(serve(door.clone(), socket, peer, routes.clone(), visit));
    }
    drop(listener);
    door.doorman.emptied().await;
}

/// Waits until the server stops.
async fn stops(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stops| *stops).await;
}

/// Serves one connection, in the clear or encrypted.
async fn serve(door: Door, socket: TcpStream, peer: SocketAddr, routes: Router, visit: Visit) {
    let visit = Arc::new(visit);
    let Some(tls) = door.tls.clone() else {
        return converse(door, socket, peer, routes, visit).await;
    };
    // Who cannot agree on a key in the time for a request's headers has nothing to ask.
    let handshake = tokio::time::timeout(door.header_timeout, tls.acceptor().accept(socket));
    let mut stopping = door.stopping.clone();
    let encrypted = tokio::select! {
        encrypted = handshake => encrypted,
        () = visit.asked_to_leave() => return,
        () = stops(&mut stopping) => return,
    };
    match encrypted {
        Ok(Ok(socket)) => converse(door, socket, peer, routes, visit).await,
        Ok(Err(error)) => tracing::debug!(%error, %peer, "a connection could not be encrypted"),
        Err(_) => tracing::debug!(%peer, "a connection was not encrypted in time"),
    }
}

/// Serves one connection until it ends, is asked to leave, becomes a WebSocket or has a response that
/// lasts: that one is written by a task of its own, which has no room for what comes before.
async fn converse<S>(door: Door, socket: S, peer: SocketAddr, routes: Router, visit: Arc<Visit>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let lent = Lent::new(socket);
    let (answers, mut lasting) = mpsc::channel(1);
    let service = {
        let (guest, patience, lent) = (Guest(visit.clone()), door.header_timeout, lent.clone());
        service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(guest.clone());
            let (may_last, lent, answers) = (may_last(&request), lent.clone(), answers.clone());
            let request = request.map(|body| Coming::new(body, patience, guest.0.clone()));
            let answered = TowerToHyperService::new(routes.clone()).call(request);
            async move {
                let response = answered.await?;
                let lasts = response.extensions().get::<Lasting>().is_some();
                if !(lasts && may_last && lent.is_flushed()) {
                    return Ok::<_, Infallible>(response);
                }
                // Nobody is there to take it any more: then this is dropped, too.
                let _ = answers.send(Written::new(response)).await;
                std::future::pending().await
            }
        })
    };
    let mut stopping = door.stopping;
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Also between two requests, so that nobody keeps a socket by having asked once.
        .header_read_timeout(door.header_timeout)
        .serve_connection(TokioIo::new(lent.clone()), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let mut is_stopping = false;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            Some(written) = lasting.recv() => {
                if let Some(socket) = lent.take() {
                    tokio::spawn(last(written.write(socket), peer, visit));
                }
                return;
            }
            () = visit.asked_to_leave() => return,
            () = stops(&mut stopping), if !is_stopping => {
                connection.as_mut().graceful_shutdown();
                is_stopping = true;
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection ended early");
    }
}

/// Writes a response until it or its client ends, or is asked to leave.
async fn last(writing: impl Future<Output = io::Result<()>>, peer: SocketAddr, visit: Arc<Visit>) {
    let ended = tokio::select! {
        ended = writing => ended,
        () = visit.asked_to_leave() => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection ended early");
    }
}

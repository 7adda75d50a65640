//! Connections, as every conversation uses them: over TCP, and with TLS unless that was declined.

mod porch;
mod socket;
mod stream;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

pub(crate) use self::porch::{Place, Porch};
pub(crate) use self::socket::{Reader, Socket};
pub(crate) use self::stream::Stream;
use crate::protocol::Broken;
use crate::tls::{Guard, RefusedFor, Untrusted, expected_name};

/// For a connection and for each greeting; loopback and data centres need milliseconds.
pub(crate) const GREETING_TIMEOUT: Duration = Duration::from_secs(3);

/// How long somebody who was refused may take to read why.
const LINGER: Duration = Duration::from_secs(1);

/// Binds before the runtime that will accept exists, so that a port that is taken is told to the
/// caller.
pub(crate) fn bind(address: SocketAddr, guard: &Guard) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    if guard.keys.is_none() && !address.ip().is_loopback() {
        let why = "whoever reaches this port can read, change and join: it has no TLS";
        tracing::warn!(%address, why);
    }
    Ok(listener)
}

/// Whom a connection is for. A name of several addresses stands for all of them: `turn` says with
/// which to begin.
pub(crate) struct Whom<'a> {
    pub(crate) address: &'a str,
    pub(crate) turn: usize,
    /// The node that has to be there; otherwise any of the cluster may be.
    pub(crate) node: Option<&'a str>,
}

/// Connects, or gives up in time.
pub(crate) async fn dial(
    guard: &Guard,
    whom: &Whom<'_>,
    patience: Duration,
) -> Result<Stream, Broken> {
    let connect = async {
        let addresses = in_turn(lookup_host(whom.address).await?.collect(), whom.turn);
        TcpStream::connect(&*addresses).await
    };
    let socket = timeout(patience, connect).await.map_err(|_| Broken::Silent)??;
    socket.set_nodelay(true)?;
    let Some(keys) = &guard.keys else { return Ok(Stream::plain(socket)) };
    let name = expected_name(keys.cluster(), whom.node)?;
    let handshake = TlsConnector::from(keys.current().client).connect(name, socket);
    let stream = timeout(patience, handshake).await.map_err(|_| unfinished())?;
    Ok(Stream::tls(stream.map_err(of_handshake)?.into(), keys))
}

/// Takes the next connection. An error of one connection is not one of the listener.
pub(crate) async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((socket, from)) if socket.set_nodelay(true).is_ok() => return (socket, from.ip()),
            Ok(_) => {}
            // Out of descriptors, most likely: they come back as connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Has whoever connected show who it is.
pub(crate) async fn admit(guard: &Guard, socket: TcpStream) -> Result<Stream, Broken> {
    let Some(keys) = &guard.keys else { return Ok(Stream::plain(socket)) };
    let handshake = TlsAcceptor::from(keys.current().server).accept(socket).into_fallible();
    let stream = timeout(GREETING_TIMEOUT, handshake).await.map_err(|_| unfinished())?;
    match stream {
        Ok(stream) => Ok(Stream::tls(stream.into(), keys)),
        Err((error, socket)) => {
            _ = timeout(LINGER, hear_out(socket)).await;
            Err(of_handshake(error))
        }
    }
}

/// Reads on until the other side ends. It may have begun to talk: to close with something unread
/// would take back the alert that says why it is refused.
async fn hear_out(mut socket: TcpStream) {
    _ = socket.shutdown().await;
    let mut rest = [0; 1_024];
    while socket.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}

fn unfinished() -> Broken {
    Untrusted::new(RefusedFor::Unfinished, "the TLS handshake was not over in time").into()
}

/// One that ends without a word was most likely with a node without TLS.
fn of_handshake(error: std::io::Error) -> Broken {
    match error.into() {
        Broken::Io(error) => {
            let why = format!("the other side broke off the TLS handshake ({error})");
            Untrusted::new(RefusedFor::Unfinished, why).into()
        }
        broken => broken,
    }
}

/// Says, and counts, that one side did not trust the other; `who` is the other one's host.
pub(crate) fn tell_untrusted(guard: &Arc<Guard>, who: &str, why: &Broken) {
    if let Broken::Untrusted(why) = why {
        guard.strangers.met(who, why);
    }
}

fn in_turn(mut addresses: Vec<SocketAddr>, turn: usize) -> Vec<SocketAddr> {
    // However the resolver shuffles them.
    addresses.sort_unstable();
    let first = turn % addresses.len().max(1);
    addresses.rotate_left(first);
    addresses
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::in_turn;

    #[test]
    fn each_address_of_a_name_has_its_turn() {
        let addresses = |order: [u8; 3]| order.map(|n| SocketAddr::from(([127, 0, 0, n], 1)));
        assert_eq!(in_turn(addresses([2, 1, 3]).into(), 0), addresses([1, 2, 3]));
        assert_eq!(in_turn(addresses([3, 1, 2]).into(), 4), addresses([2, 3, 1]));
        assert_eq!(in_turn(Vec::new(), 5), []);
    }
}

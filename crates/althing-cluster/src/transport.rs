//! TCP connections, as every conversation uses them.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::protocol::Broken;

/// For a connection and for each greeting; loopback and data centres need milliseconds.
pub(crate) const GREETING_TIMEOUT: Duration = Duration::from_secs(3);

/// Binds before the runtime that will accept exists, so that a port that is taken is told to the
/// caller.
pub(crate) fn bind(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects, or gives up in time.
pub(crate) async fn dial(address: &str, patience: Duration) -> Result<TcpStream, Broken> {
    let connect = timeout(patience, TcpStream::connect(address));
    let socket = connect.await.map_err(|_| Broken::Silent)??;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Takes the next connection. An error of one connection is not one of the listener.
pub(crate) async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((socket, _)) if socket.set_nodelay(true).is_ok() => return socket,
            Ok(_) => {}
            // Out of descriptors, most likely: they come back as connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

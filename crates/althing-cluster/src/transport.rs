//! TCP connections, as every conversation uses them.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, lookup_host};
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

/// Connects, or gives up in time. A name of several addresses stands for all of them: `turn` says
/// with which to begin.
pub(crate) async fn dial(
    address: &str,
    patience: Duration,
    turn: usize,
) -> Result<TcpStream, Broken> {
    let connect = async {
        let addresses = in_turn(lookup_host(address).await?.collect(), turn);
        TcpStream::connect(&*addresses).await
    };
    let socket = timeout(patience, connect).await.map_err(|_| Broken::Silent)??;
    socket.set_nodelay(true)?;
    Ok(socket)
}

fn in_turn(mut addresses: Vec<SocketAddr>, turn: usize) -> Vec<SocketAddr> {
    // However the resolver shuffles them.
    addresses.sort_unstable();
    let first = turn % addresses.len().max(1);
    addresses.rotate_left(first);
    addresses
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

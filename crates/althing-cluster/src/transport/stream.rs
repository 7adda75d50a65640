//! A connection while it is greeted on, and for conversations that wait: bytes in order, with TLS or
//! without.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsStream;
use tokio_rustls::rustls::Connection;

use super::{Reader, Socket};
use crate::capability::{Capability, is_of_client};
use crate::tls::Keys;

/// Both directions of one connection.
pub(crate) struct Stream {
    way: Way,
    /// The nodes that the other side's certificate is for; `None` in plaintext.
    nodes: Option<Vec<String>>,
    /// What it may do without being a node.
    capabilities: Vec<Capability>,
}

enum Way {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    pub(super) fn plain(socket: TcpStream) -> Self {
        Self { way: Way::Plain(socket), nodes: None, capabilities: Capability::ALL.into() }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>, keys: &Keys) -> Self {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let names = chain.first().map(|certificate| keys.nodes_of(certificate));
        let (clients, nodes): (Vec<_>, Vec<_>) =
            names.into_iter().flatten().partition(|name| is_of_client(name));
        let capabilities = match nodes.is_empty() {
            true => clients.iter().filter_map(|name| Capability::of_name(name)).collect(),
            false => Capability::ALL.into(),
        };
        Self { way: Way::Tls(Box::new(stream)), nodes: Some(nodes), capabilities }
    }

    /// Whether the other side is a node of the cluster, and not only a client. In plaintext anybody
    /// may be.
    pub(crate) fn is_of_node(&self) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| !nodes.is_empty())
    }

    /// What the other side may do where it does not say which node it is.
    pub(crate) fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// Whether the other side may be the node of that name. In plaintext anybody may.
    pub(crate) fn may_be(&self, node: &str) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.iter().any(|known| known == node))
    }

    /// The nodes that it may be.
    pub(crate) fn nodes(&self) -> Option<&[String]> {
        self.nodes.as_deref()
    }

    /// As a socket that any thread writes to; it is watched by that runtime, or by the present one.
    pub(crate) fn into_socket(self, runtime: Option<&Handle>) -> io::Result<(Socket, Reader)> {
        let (socket, session) = match self.way {
            Way::Plain(socket) => (socket, None),
            Way::Tls(stream) => {
                let (socket, session) = match *stream {
                    TlsStream::Client(stream) => {
                        let (socket, session) = stream.into_inner();
                        (socket, Connection::from(session))
                    }
                    TlsStream::Server(stream) => {
                        let (socket, session) = stream.into_inner();
                        (socket, Connection::from(session))
                    }
                };
                (socket, Some(session))
            }
        };
        let socket = match runtime {
            None => socket,
            Some(runtime) => {
                let socket = socket.into_std()?;
                let _entered = runtime.enter();
                TcpStream::from_std(socket)?
            }
        };
        Ok(Socket::new(socket, session))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Way::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Way::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Way::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.way {
            Way::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Way::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

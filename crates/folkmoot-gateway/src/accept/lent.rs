//! A socket as the HTTP library has it: lent, so that it can be taken back while a response is due.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One of those who have the socket. Who finds it taken reads the end, and writes nothing.
#[derive(Debug)]
pub(crate) struct Lent<S>(Arc<Mutex<Place<S>>>);

#[derive(Debug)]
struct Place<S> {
    socket: Option<S>,
    /// Whether the library has written all that it had. It flushes what it has written whole, and
    /// begins no request before it has tried to.
    is_flushed: bool,
}

impl<S> Clone for Lent<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Lent<S> {
    pub(super) fn new(socket: S) -> Self {
        Self(Arc::new(Mutex::new(Place { socket: Some(socket), is_flushed: true })))
    }

    /// Whether nothing is lost that is still to be written, if it is taken now.
    pub(super) fn is_flushed(&self) -> bool {
        self.0.lock().is_flushed
    }

    /// The socket, unless it was taken before.
    pub(crate) fn take(&self) -> Option<S> {
        self.0.lock().socket.take()
    }
}

fn taken() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the socket was taken")
}

impl<S: AsyncRead + Unpin> AsyncRead for Lent<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0.lock().socket {
            Some(socket) => Pin::new(socket).poll_read(context, room),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lent<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut place = self.0.lock();
        place.is_flushed = false;
        match &mut place.socket {
            Some(socket) => Pin::new(socket).poll_write(context, bytes),
            None => Poll::Ready(Err(taken())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut place = self.0.lock();
        place.is_flushed = false;
        match &mut place.socket {
            Some(socket) => Pin::new(socket).poll_write_vectored(context, slices),
            None => Poll::Ready(Err(taken())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().socket.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut place = self.0.lock();
        let flushed = match &mut place.socket {
            Some(socket) => Pin::new(socket).poll_flush(context),
            None => Poll::Ready(Ok(())),
        };
        place.is_flushed = matches!(flushed, Poll::Ready(Ok(())));
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0.lock().socket {
            Some(socket) => Pin::new(socket).poll_shutdown(context),
            None => Poll::Ready(Ok(())),
        }
    }
}

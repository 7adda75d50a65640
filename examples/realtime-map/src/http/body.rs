//! What an answer carries: bytes that are there, or events as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use althing::ActorRef;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::viewport::Viewport;

/// An answer's body.
pub(crate) enum Body {
    /// All of it.
    Whole(Option<Bytes>),
    /// An event stream; its viewport stops when the client goes.
    Events(EventStream),
}

/// Chunks from a viewport.
pub(crate) struct EventStream {
    /// Where they come from.
    pub(crate) chunks: mpsc::Receiver<Bytes>,
    /// Who writes them.
    pub(crate) viewport: ActorRef<Viewport>,
}

impl Body {
    /// Whether it is there already; an event stream comes bit by bit.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // Asks it to stop; nobody waits for that.
        drop(self.viewport.stop());
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                events.chunks.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

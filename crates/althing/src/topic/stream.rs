//! A topic read without an actor: first what the ring keeps, then what comes, and a `Gap` where
//! something is missing.
//!
//! The topic fills a bounded buffer, and the reader empties it. The reader knows a gap by an
//! event's `previous`, so it does not matter where events went: the ring was too short, the buffer
//! ran over, or a chunk's queue did.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::buffer::Buffer;
use super::published::{Gap, Published, Sequence};
use super::shared::{Seat, Shared};
use crate::shield::{discard, discard_all};

/// The events of a topic after a position, in order; see [`Topic::stream`](crate::Topic::stream).
#[must_use = "a stream that nobody reads fills its buffer"]
pub struct EventStream<T: Send + Sync + 'static> {
    buffer: Arc<Buffer<T>>,
    /// Until it is dropped.
    place: Option<Seat<T>>,
    /// Taken out of the buffer or the ring and not yet read.
    ready: VecDeque<Arc<Published<T>>>,
    gap: Option<Gap>,
    /// The last event that was read, or that a gap covered.
    position: Sequence,
}

impl<T: Send + Sync + 'static> EventStream<T> {
    pub(super) fn new(shared: &Arc<Shared<T>>, after: Sequence) -> Self {
        let buffer = Arc::new(Buffer::new());
        let (place, beginning) = shared.subscribe_stream(after, buffer.clone());
        if beginning.is_closed {
            buffer.close();
        }
        let ready = beginning.kept.into();
        Self { buffer, place: Some(place), ready, gap: beginning.gap, position: after }
    }

    /// The next event, or `Gap` if some before it are gone; `None` once the node has shut down.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Arc<Published<T>>, Gap>> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The position of the last event read, from which another stream would go on.
    pub fn position(&self) -> Sequence {
        self.position
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Arc<Published<T>>, Gap>>> {
        loop {
            if let Some(gap) = self.gap.take() {
                self.position = gap.until;
                return Poll::Ready(Some(Err(gap)));
            }
            while let Some(event) = self.ready.pop_front() {
                if event.sequence <= self.position {
                    discard("the drop of an event", event);
                    continue;
                }
                if event.previous <= self.position {
                    self.position = event.sequence;
                    return Poll::Ready(Some(Ok(event)));
                }
                self.ready.push_front(event);
                break;
            }
            if self.ready.is_empty() {
                std::task::ready!(self.buffer.poll(&mut self.ready, cx));
                if self.ready.is_empty() {
                    return Poll::Ready(None);
                }
            } else {
                self.fill_gap();
            }
        }
    }

    /// The first event that is ready is not the next one: the ring may have what is between.
    fn fill_gap(&mut self) {
        let (Some(place), Some(first)) = (&self.place, self.ready.front()) else { return };
        let (after, first) = (self.position, first.clone());
        let (_, mut kept) = place.shared.kept_after(after);
        let rest = kept.split_off(kept.partition_point(|event| event.sequence < first.sequence));
        let until = kept.first().map_or(first.previous, |event| event.previous);
        for event in kept.into_iter().rev() {
            self.ready.push_front(event);
        }
        if until > after {
            self.gap = Some(Gap { after, until });
        }
        discard_all("the drop of an event", rest.into_iter().chain([first]));
    }
}

impl<T: Send + Sync + 'static> Stream for EventStream<T> {
    type Item = Result<Arc<Published<T>>, Gap>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_event(cx)
    }
}

impl<T: Send + Sync + 'static> Drop for EventStream<T> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            place.leave();
        }
        // They are somebody else's: a drop that panics is not the reader's failure.
        for event in self.ready.drain(..) {
            discard("the drop of an event", event);
        }
    }
}

impl<T: Send + Sync + 'static> std::fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").field("position", &self.position).finish_non_exhaustive()
    }
}

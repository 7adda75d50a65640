//! Messages taken out of a mailbox, run one by one, their buffer kept.
//!
//! Layout: `buffer[next..]` are live, `buffer[..next]` have been moved out; the vector's own length is kept at zero so that
//! its drop frees memory only. `vec::IntoIter` would do the same safely but gives the buffer away with each batch.

use crate::buffers::give_buffer;
use crate::envelope::Envelope;
use crate::mailbox::Inner;

/// A swapped-out queue with a cursor that survives suspension.
#[derive(Default)]
pub(crate) struct Batch {
    buffer: Vec<Envelope>,
    next: usize,
    len: usize,
}

impl Batch {
    /// Takes everything that waits. The batch must be used up.
    pub(crate) fn fill(&mut self, inner: &mut Inner) {
        debug_assert!(self.left() == 0, "a batch is run whole before the next");
        inner.drain(&mut self.buffer);
        self.len = self.buffer.len();
        self.next = 0;
        // SAFETY: zero is within capacity; `left` and `next` account for the live elements from here on.
        unsafe { self.buffer.set_len(0) }
    }

    /// Messages not yet run.
    pub(crate) fn left(&self) -> usize {
        self.len - self.next
    }

    /// Moves the next message out.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Envelope> {
        if self.next == self.len {
            return None;
        }
        // SAFETY: `next < len <= capacity`, so the pointer stays inside the buffer.
        let slot = unsafe { self.buffer.as_ptr().add(self.next) };
        self.next += 1;
        // SAFETY: elements from `next` on are live and each is read once, because `next` has moved on.
        Some(unsafe { slot.read() })
    }

    /// Takes the rest out.
    pub(crate) fn rest(&mut self) -> Vec<Envelope> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Gives the empty buffer back to the pool.
    pub(crate) fn recycle(&mut self) {
        if self.left() == 0 {
            self.next = 0;
            self.len = 0;
            give_buffer(std::mem::take(&mut self.buffer));
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        while let Some(envelope) = self.next() {
            drop(envelope);
        }
    }
}

//! Messages taken out of a mailbox, run in stretches, their buffer kept.
//!
//! Layout: the stretch points into `buffer`; what lies before its `next` has been moved out, what
//! lies from there up to its `end` is live. The vector's own length is kept at zero so that its
//! drop frees memory only. `vec::IntoIter` would do the same safely but gives the buffer away with
//! each batch.

use crate::mail::buffers::give_buffer;
use crate::mail::envelope::{Envelope, Stretch};
use crate::mail::mailbox::Inner;

/// A swapped-out queue with a cursor that survives suspension.
#[derive(Default)]
pub(crate) struct Batch {
    buffer: Vec<Envelope>,
    stretch: Stretch,
}

// SAFETY: the stretch points to envelopes, which are `Send`, in a buffer that moves with it.
unsafe impl Send for Batch {}

impl Batch {
    /// Takes everything that waits. The batch must be used up.
    pub(crate) fn fill(&mut self, inner: &mut Inner, tally: u32) {
        debug_assert!(self.left() == 0, "a batch is run whole before the next");
        inner.drain(&mut self.buffer, tally);
        let len = self.buffer.len();
        // SAFETY: zero is within capacity; the stretch accounts for the live elements from here on.
        unsafe { self.buffer.set_len(0) }
        // SAFETY: the first `len` elements are live, the buffer stays where it is until they are
        // used up, and nothing else reads them.
        self.stretch = unsafe { Stretch::new(self.buffer.as_mut_ptr(), len) };
    }

    /// Messages not yet run.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.stretch.left()
    }

    /// What is left, to be run.
    #[inline]
    pub(crate) fn stretch(&mut self) -> &mut Stretch {
        &mut self.stretch
    }

    /// Moves the next message out.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Envelope> {
        self.stretch.take()
    }

    /// Takes the rest out.
    pub(crate) fn rest(&mut self) -> Vec<Envelope> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Gives the empty buffer back to the pool.
    pub(crate) fn recycle(&mut self) {
        if self.left() == 0 {
            self.stretch = Stretch::default();
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

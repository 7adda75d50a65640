//! Empty message buffers of one thread, kept for the next mailbox that needs one: idle mailboxes
//! hold none.

use std::cell::RefCell;

use crate::mail::envelope::Envelope;

/// Buffers kept per thread for reuse.
const BUFFERS_MAX: usize = 64;
/// Larger buffers go back to the allocator: one flooded actor must not pin memory.
const BUFFER_LEN_MAX: usize = 4_096;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<Envelope>>> = const { RefCell::new(Vec::new()) };
}

/// An empty buffer, from the pool if it has one.
pub(crate) fn take_buffer() -> Vec<Envelope> {
    // A thread that is going away has no pool any more.
    BUFFERS.try_with(|buffers| buffers.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

/// Keeps an empty buffer for the next mailbox of this thread.
#[inline]
pub(crate) fn give_buffer(buffer: Vec<Envelope>) {
    debug_assert!(buffer.is_empty(), "only empty buffers are reused");
    if buffer.capacity() > 0 {
        keep_buffer(buffer);
    }
}

fn keep_buffer(buffer: Vec<Envelope>) {
    if buffer.capacity() > BUFFER_LEN_MAX {
        return;
    }
    let _ = BUFFERS.try_with(|buffers| {
        let mut buffers = buffers.borrow_mut();
        if buffers.len() < BUFFERS_MAX {
            buffers.push(buffer);
        }
    });
}

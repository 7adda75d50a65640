//! A vector of envelopes in two words instead of three, because each idle actor has one.
//!
//! Layout: `first`, `len` and `capacity` are the parts of a `Vec<Envelope>`, which they own. Only
//! `push` works on them as they are; all else borrows the queue as the vector that it is (`Loan`).

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::mail::buffers::take_buffer;
use crate::mail::envelope::Envelope;

const _: () = assert!(size_of::<Queue>() == 16, "an idle actor is paid by the million");

/// Messages that wait, first in, first out.
pub(super) struct Queue {
    first: NonNull<Envelope>,
    len: u32,
    capacity: u32,
    owned: PhantomData<Envelope>,
}

// SAFETY: it owns its envelopes, as a vector does.
unsafe impl Send for Queue {}

/// A queue as a vector; it goes back when this drops.
pub(super) struct Loan<'a> {
    vec: ManuallyDrop<Vec<Envelope>>,
    queue: &'a mut Queue,
}

impl Queue {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn has_buffer(&self) -> bool {
        self.capacity > 0
    }

    #[inline]
    pub(super) fn push(&mut self, envelope: Envelope) {
        if self.len == self.capacity {
            self.grow();
        }
        // SAFETY: `len` is below the capacity, so this is within the buffer.
        let slot = unsafe { self.first.add(self.len as usize) };
        // SAFETY: what lies beyond `len` is free.
        unsafe { slot.write(envelope) };
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut vec = self.as_vec();
        if vec.capacity() == 0 {
            *vec = take_buffer();
        }
        vec.reserve(1);
    }

    /// Takes all that waits, with its buffer.
    #[inline]
    pub(super) fn take(&mut self) -> Vec<Envelope> {
        std::mem::take(&mut *self.as_vec())
    }

    /// Lends the queue as a vector.
    #[inline]
    pub(super) fn as_vec(&mut self) -> Loan<'_> {
        // Left without a buffer: a loan that is forgotten leaks it.
        let first = std::mem::replace(&mut self.first, NonNull::dangling()).as_ptr();
        let len = std::mem::take(&mut self.len) as usize;
        let capacity = std::mem::take(&mut self.capacity) as usize;
        // SAFETY: the parts are a vector's, which nobody else has: they were just taken.
        let vec = unsafe { Vec::from_raw_parts(first, len, capacity) };
        Loan { vec: ManuallyDrop::new(vec), queue: self }
    }

    /// Takes a vector apart. The queue has no buffer.
    #[inline]
    fn put(&mut self, vec: Vec<Envelope>) {
        // More would be 128 GiB of messages.
        self.capacity = u32::try_from(vec.capacity()).expect("fewer than 2^32 messages wait");
        self.len = vec.len() as u32;
        let mut vec = ManuallyDrop::new(vec);
        self.first = NonNull::new(vec.as_mut_ptr()).expect("a vector's pointer is not null");
    }
}

impl Default for Queue {
    #[inline]
    fn default() -> Self {
        Self { first: NonNull::dangling(), len: 0, capacity: 0, owned: PhantomData }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.has_buffer() {
            drop(self.take());
        }
    }
}

impl Deref for Loan<'_> {
    type Target = Vec<Envelope>;

    #[inline]
    fn deref(&self) -> &Vec<Envelope> {
        &self.vec
    }
}

impl DerefMut for Loan<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<Envelope> {
        &mut self.vec
    }
}

impl Drop for Loan<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken once, in this drop.
        let vec = unsafe { ManuallyDrop::take(&mut self.vec) };
        self.queue.put(vec);
    }
}

//! Envelopes in a row, to be run one after the other.
//!
//! Layout: three pointers into one buffer. Envelopes from `next` up to `end` are live and belong to
//! the stretch; `until` lies between the two and says how far one call of a table's `run` may go. A
//! stretch owns its envelopes like a slice being drained: each is moved out once.

use std::ptr;

use super::{Envelope, Payload, Table};

/// Envelopes of one buffer that wait to be run.
pub(crate) struct Stretch {
    next: *mut Envelope,
    until: *mut Envelope,
    end: *mut Envelope,
}

impl Default for Stretch {
    fn default() -> Self {
        Self { next: ptr::null_mut(), until: ptr::null_mut(), end: ptr::null_mut() }
    }
}

impl Stretch {
    /// # Safety
    /// The `len` envelopes from `first` on are live, stay where they are while the stretch is in
    /// use, and are the stretch's to move out.
    pub(crate) unsafe fn new(first: *mut Envelope, len: usize) -> Self {
        // SAFETY: one past the last envelope of the buffer at most.
        let end = unsafe { first.add(len) };
        Self { next: first, until: first, end }
    }

    /// Envelopes not yet moved out.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        (self.end.addr() - self.next.addr()) / size_of::<Envelope>()
    }

    /// Allows the next `limit` envelopes to be run; returns how many there are.
    #[inline]
    pub(crate) fn allow(&mut self, limit: u32) -> u32 {
        let allowed = u32::try_from(self.left()).map_or(limit, |left| left.min(limit));
        // SAFETY: `allowed` envelopes are live from `next` on.
        self.until = unsafe { self.next.add(allowed as usize) };
        allowed
    }

    /// Envelopes that were allowed and have not been run; none is allowed any more.
    #[inline]
    pub(crate) fn forbid(&mut self) -> u32 {
        let unused = self.until.addr().saturating_sub(self.next.addr()) / size_of::<Envelope>();
        self.until = self.next;
        u32::try_from(unused).expect("`allow` allowed no more")
    }

    /// The next envelope, if there is one.
    #[inline]
    pub(crate) fn peek(&self) -> Option<&Envelope> {
        // SAFETY: envelopes before `end` are live.
        (self.next != self.end).then(|| unsafe { &*self.next })
    }

    /// Moves the next envelope out.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Envelope> {
        if self.next == self.end {
            return None;
        }
        let place = self.next;
        // SAFETY: there is an envelope at `next`, so the pointer stays in the buffer.
        self.next = unsafe { place.add(1) };
        // SAFETY: the envelope was live and is read once, because `next` has moved on.
        Some(unsafe { place.read() })
    }

    /// Moves the payload of the next envelope out.
    ///
    /// # Safety
    /// There is a next envelope.
    #[inline]
    pub(crate) unsafe fn take_payload(&mut self) -> Payload {
        let place = self.next;
        // SAFETY: the caller's promise.
        self.next = unsafe { place.add(1) };
        // SAFETY: the envelope was live and its payload is read once; its drop never runs, because
        // `next` has moved on.
        unsafe { (*place).payload }
    }

    /// Whether the next envelope may be run too and is of the same table.
    #[inline]
    pub(crate) fn goes_on(&self, table: &'static Table) -> bool {
        // SAFETY: envelopes before `until` are live.
        self.next < self.until && ptr::eq(unsafe { &*self.next }.table, table)
    }
}

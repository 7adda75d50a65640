//! An envelope with its sender, as a mailbox sees it: the envelope in a box, with the sender beside
//! it.
//!
//! Layout: the payload is a `Traced` as `store` keeps it, which is a box, because it is larger than
//! a payload.

use std::mem::ManuallyDrop;

use super::{Envelope, Sort, fits, load};
use crate::metrics::step::Sender;

/// An envelope and who sent it.
pub(crate) struct Traced {
    pub(crate) sender: Sender,
    pub(crate) envelope: Envelope,
}

const _: () = assert!(!fits::<Traced>(), "it lies in a box");

impl Envelope {
    /// The envelope inside; this one if it carries no sender.
    pub(super) fn innermost(&self) -> &Self {
        if !self.is_traced() {
            return self;
        }
        // SAFETY: the table says that the payload is a box of `Traced`, kept as a pointer in its
        // first word.
        let traced = unsafe { self.payload.as_ptr().cast::<*const Traced>().read() };
        // SAFETY: the box lives as long as this envelope, which is borrowed.
        &unsafe { &*traced }.envelope
    }

    /// As `innermost`, by value: without its sender.
    pub(super) fn into_innermost(self) -> Self {
        if !self.is_traced() {
            return self;
        }
        let envelope = ManuallyDrop::new(self);
        // SAFETY: the table is paired with this type, and `ManuallyDrop` keeps our drop away.
        unsafe { load::<Traced>(envelope.payload) }.envelope
    }

    fn is_traced(&self) -> bool {
        self.table.sort == Sort::Traced
    }
}

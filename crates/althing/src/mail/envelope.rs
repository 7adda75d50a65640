//! A message on its way: 32 bytes, a static table of functions and 24 bytes of payload.
//!
//! Layout: `table` names the types; `payload` holds what the table's functions know (for a message
//! its reply slot and the message) in place if it fits and is aligned to 8, else a `Box` of it.
//! Ownership: an envelope owns its payload until it is run; dropping an envelope rejects its
//! message, so that no asker waits for a message that will never run.
//!
//! An envelope knows no actor: where it is to run is a pointer that it passes on to its table, to
//! what the layers above call a `Target`.
//!
//! Unsafe here: the payload is untyped memory. `Envelope::with_table` is the only constructor; its
//! callers pair the table with the very type they store, and every payload is taken once.

use std::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};
use std::task;

use crate::error::AskError;
use crate::mail::access::Access;
use crate::metrics::MessageName;
use crate::remote::parcel::Message;

mod stretch;
mod tick;
mod traced;

pub(crate) use stretch::Stretch;
pub(crate) use tick::Tick;
pub(crate) use traced::Traced;

/// Bytes kept in place: a reply slot and two words of message.
const INLINE_WORDS: usize = 3;

pub(crate) type Payload = MaybeUninit<[usize; INLINE_WORDS]>;

/// A message, its reply slot, and the functions that know their types.
pub(crate) struct Envelope {
    table: &'static Table,
    payload: Payload,
}

/// What `start` came to.
pub(crate) enum Started {
    /// The handler ran to its end.
    Done,
    /// The handler waits; its future lives in the body.
    Suspended,
    /// A guard wants the message kept; here it is again.
    Stashed(Envelope),
}

/// Points to a `Target`, which only the layers above know.
pub(crate) type TargetPtr = *const ();
/// Points to a `Header`, which only the layers above know.
pub(crate) type HeaderPtr = *const ();

/// What is in an envelope, apart from its type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A message with its reply slot.
    Message,
    /// A topic's event, which ends with its actor's life.
    Event,
    /// A `Tick`.
    Tick,
    /// A `Traced`, with another envelope inside.
    Traced,
}

/// The functions of an envelope, and what they are for.
pub(crate) struct Table {
    pub(crate) access: Access,
    pub(crate) name: MessageName,
    pub(crate) sort: Sort,
    /// Runs the first envelope, and those of the same table after it as far as the stretch allows,
    /// until a handler waits or something else wants the actor.
    ///
    /// # Safety
    /// The stretch is not empty and its first envelope is of this table; the pointer is to a
    /// `Target`, for which holds what `Envelope::start` asks.
    pub(crate) run: unsafe fn(&mut Stretch, TargetPtr, &mut task::Context<'_>) -> Started,
    /// # Safety
    /// `payload` is of this table's type and is not used again.
    pub(crate) reject: unsafe fn(Payload, Option<AskError>),
    /// Makes a message of it that travels; `None` for what ends with the actor's life.
    ///
    /// # Safety
    /// As `reject`, and the pointer is to the header of the actor's place.
    pub(crate) repack: Option<unsafe fn(Payload, HeaderPtr) -> Option<Message>>,
}

impl Envelope {
    /// Packs a payload under a table that says how to run it.
    ///
    /// # Safety
    /// The table's functions take payloads of type `T`, which is `Tick` or `Traced` if its sort
    /// says so.
    #[inline]
    pub(crate) unsafe fn with_table<T: Send>(table: &'static Table, payload: T) -> Self {
        Self { table, payload: store(payload) }
    }

    /// The functions that know the payload's type.
    pub(crate) fn table(&self) -> &'static Table {
        self.table
    }

    /// The message as it travels; see `Table::repack`.
    ///
    /// # Safety
    /// The pointer is to the header of the actor's place.
    pub(crate) unsafe fn repack_for(self, header: HeaderPtr) -> Option<Message> {
        let envelope = self.into_innermost();
        let repack = envelope.table.repack?;
        let envelope = ManuallyDrop::new(envelope);
        // SAFETY: the payload is of the table's type and is handed over once; the rest is the
        // caller's promise.
        unsafe { repack(envelope.payload, header) }
    }

    /// Whether it is a topic's event.
    pub(crate) fn is_event(&self) -> bool {
        self.innermost().table.sort == Sort::Event
    }

    /// Whether the handler takes the actor's state exclusively.
    pub(crate) fn access(&self) -> Access {
        self.table.access
    }

    /// Names the message's type.
    pub(crate) fn name(&self) -> MessageName {
        let envelope = self.innermost();
        envelope.tick_name().unwrap_or(envelope.table.name)
    }

    /// Drops the message and tells its asker why.
    pub(crate) fn reject(self, why: AskError) {
        let envelope = ManuallyDrop::new(self);
        // SAFETY: the payload is of the table's type and is handed over once.
        unsafe { (envelope.table.reject)(envelope.payload, Some(why)) }
    }
}

impl Drop for Envelope {
    fn drop(&mut self) {
        // SAFETY: the payload is of the table's type; it is not used after drop.
        unsafe { (self.table.reject)(self.payload, None) }
    }
}

// SAFETY: `Envelope::with_table` accepts only `Send` payloads.
unsafe impl Send for Envelope {}

pub(crate) const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<Payload>() && align_of::<T>() <= align_of::<Payload>()
}

fn store<T>(value: T) -> Payload {
    let mut payload = Payload::uninit();
    if fits::<T>() {
        // SAFETY: size and alignment were checked by `fits`.
        unsafe { payload.as_mut_ptr().cast::<T>().write(value) }
    } else {
        // SAFETY: a thin pointer fits into the payload's first word.
        unsafe { payload.as_mut_ptr().cast::<*mut T>().write(Box::into_raw(Box::new(value))) }
    }
    payload
}

/// # Safety
/// `payload` was made by `store::<T>` and is not used again.
pub(crate) unsafe fn load<T>(payload: Payload) -> T {
    if fits::<T>() {
        // SAFETY: `store` wrote a `T` here.
        unsafe { payload.as_ptr().cast::<T>().read() }
    } else {
        // SAFETY: `store` wrote a pointer here.
        let boxed = unsafe { payload.as_ptr().cast::<*mut T>().read() };
        // SAFETY: the pointer came from `Box::into_raw` and is used once.
        *unsafe { Box::from_raw(boxed) }
    }
}

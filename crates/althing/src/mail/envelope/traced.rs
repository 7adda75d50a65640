//! An envelope with its sender: the envelope in a box, with the sender beside it, under a table of
//! its own.
//!
//! Layout: the payload is a `Traced` as `store` keeps it, which is a box, because it is larger than
//! a payload. The two tables below are paired with that type in `Envelope::within` and nowhere
//! else; as statics they have one address each, by which a traced envelope is known.

use std::mem::{ManuallyDrop, size_of};
use std::ptr;
use std::task;

use super::{Envelope, Payload, Started, Stretch, Table, Target, fits, load, store};
use crate::error::AskError;
use crate::mail::dispatch::Access;
use crate::metrics::observe::{Sender, Step, Way};
use crate::metrics::trace;

struct Traced {
    sender: Sender,
    envelope: Envelope,
}

static EXCLUSIVE: Table = table(Access::Exclusive);
static SHARED: Table = table(Access::Shared);

const fn table(access: Access) -> Table {
    assert!(!fits::<Traced>() && size_of::<*mut Traced>() <= size_of::<Payload>());
    Table { access, name: unnamed, is_event: false, run, reject, repack: None }
}

/// Never asked for: `Envelope::name` looks inside.
fn unnamed() -> &'static str {
    "traced"
}

impl Envelope {
    /// Packs the envelope together with its sender, if somebody wants to know.
    #[inline]
    pub(crate) fn sent_from(self, sender: Option<Sender>) -> Self {
        match sender {
            None => self,
            Some(sender) => self.within(sender),
        }
    }

    fn within(self, sender: Sender) -> Self {
        let table = match self.access() {
            Access::Exclusive => &EXCLUSIVE,
            Access::Shared => &SHARED,
        };
        Self { table, payload: store(Traced { sender, envelope: self }) }
    }

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
        ptr::eq(self.table, &raw const EXCLUSIVE) || ptr::eq(self.table, &raw const SHARED)
    }
}

/// # Safety
/// As `Table::run`.
unsafe fn run(stretch: &mut Stretch, target: Target<'_>, cx: &mut task::Context<'_>) -> Started {
    // SAFETY: the caller promises a first envelope.
    let payload = unsafe { stretch.take_payload() };
    // SAFETY: these tables are paired with this type in `Envelope::within`.
    let Traced { sender, envelope } = unsafe { load::<Traced>(payload) };
    let (message, from) = (envelope.name(), sender.actor.as_ref());
    target.header.observe(Step::Takes { message: message(), from, way: Way::Queued });
    let is_traced = target.header.kind.tracing.is_on();
    let span = is_traced.then(|| trace::span(target.header, message, &sender.span));
    let entered = span.as_ref().map(tracing::Span::enter);
    // SAFETY: our caller's promise, passed on.
    let started = unsafe { envelope.start(target, cx) };
    drop(entered);
    match started {
        Started::Stashed(envelope) => Started::Stashed(envelope.within(sender)),
        Started::Suspended => {
            target.body.trace(span);
            Started::Suspended
        }
        Started::Done => Started::Done,
    }
}

/// # Safety
/// As `Table::reject`.
unsafe fn reject(payload: Payload, why: Option<AskError>) {
    // SAFETY: these tables are paired with this type in `Envelope::within`.
    let Traced { envelope, .. } = unsafe { load::<Traced>(payload) };
    match why {
        Some(why) => envelope.reject(why),
        None => drop(envelope),
    }
}

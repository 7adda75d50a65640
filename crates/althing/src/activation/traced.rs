//! Runs an envelope with its sender: in a span of its own, and before the eyes of a simulation.
//!
//! The two tables below are paired with `Traced` in `within` and nowhere else.

use std::task;

use crate::activation::target::Target;
use crate::error::AskError;
use crate::mail::access::Access;
use crate::mail::envelope::{
    Envelope, Payload, Sort, Started, Stretch, Table, TargetPtr, Traced, load,
};
use crate::metrics::step::{Sender, Step, Way};
use crate::metrics::trace;

static EXCLUSIVE: Table = table(Access::Exclusive);
static SHARED: Table = table(Access::Shared);

const fn table(access: Access) -> Table {
    Table { access, name: unnamed, sort: Sort::Traced, run, reject, repack: None }
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
            Some(sender) => within(self, sender),
        }
    }
}

fn within(envelope: Envelope, sender: Sender) -> Envelope {
    let table = match envelope.access() {
        Access::Exclusive => &EXCLUSIVE,
        Access::Shared => &SHARED,
    };
    // SAFETY: these tables take such payloads.
    unsafe { Envelope::with_table(table, Traced { sender, envelope }) }
}

/// # Safety
/// As `Table::run`.
unsafe fn run(stretch: &mut Stretch, target: TargetPtr, cx: &mut task::Context<'_>) -> Started {
    // SAFETY: the caller's promise.
    let target = unsafe { Target::of(target) };
    // SAFETY: the caller promises a first envelope.
    let payload = unsafe { stretch.take_payload() };
    // SAFETY: these tables are paired with this type in `within`.
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
        Started::Stashed(envelope) => Started::Stashed(within(envelope, sender)),
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
    // SAFETY: these tables are paired with this type in `within`.
    let Traced { envelope, .. } = unsafe { load::<Traced>(payload) };
    match why {
        Some(why) => envelope.reject(why),
        None => drop(envelope),
    }
}

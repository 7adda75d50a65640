//! Runs the tick of a timer that is due: the message is made now, by the actor.
//!
//! The two tables below are paired with `Tick` in `Envelope::tick` and nowhere else.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task;

use crate::activation::target::Target;
use crate::address::place::Header;
use crate::error::AskError;
use crate::mail::access::Access;
use crate::mail::envelope::{Envelope, Payload, Sort, Started, Stretch, Table, TargetPtr, Tick};
use crate::mail::envelope::{fits, load};
use crate::metrics::MessageName;
use crate::timer::id::TimerId;
use crate::timer::pending::{Made, Make};

static EXCLUSIVE: Table = table(Access::Exclusive);
static SHARED: Table = table(Access::Shared);

const fn table(access: Access) -> Table {
    assert!(fits::<Tick>(), "a mailbox reads it in place");
    Table { access, name: unnamed, sort: Sort::Tick, run, reject, repack: None }
}

/// Never asked for: `Envelope::name` looks inside.
fn unnamed() -> &'static str {
    "tick"
}

impl Envelope {
    /// Packs a timer that is due, whose message is of that name and wants that access.
    pub(crate) fn tick(timer: TimerId, access: Access, name: MessageName) -> Self {
        let table = match access {
            Access::Exclusive => &EXCLUSIVE,
            Access::Shared => &SHARED,
        };
        // SAFETY: these tables take ticks.
        unsafe { Self::with_table(table, Tick { timer, name }) }
    }
}

/// # Safety
/// As `Table::run`.
unsafe fn run(stretch: &mut Stretch, target: TargetPtr, cx: &mut task::Context<'_>) -> Started {
    // SAFETY: the caller's promise.
    let target = unsafe { Target::of(target) };
    // SAFETY: the caller promises a first envelope.
    let payload = unsafe { stretch.take_payload() };
    // SAFETY: these tables are paired with this type in `Envelope::tick`.
    let Tick { timer, .. } = unsafe { load::<Tick>(payload) };
    match made(target, timer) {
        // SAFETY: our caller's promise, passed on: the message was packed for the timer's own
        // actor.
        Some(envelope) => unsafe {
            envelope.sent_from(target.header.no_sender()).start(target, cx)
        },
        None => Started::Done,
    }
}

/// Does as if a timer's tick had run, which a simulation refuses.
pub(crate) fn skip_tick(header: &Header, id: TimerId) {
    let mut inner = header.mailbox.lock();
    let Some(extras) = inner.extras.as_mut() else { return };
    extras.ticks = extras.ticks.wrapping_add(1);
    let Some(timer) = extras.timers.get_mut(&id) else { return };
    timer.is_queued = false;
    let once = if timer.period.is_none() { extras.timers.remove(&id) } else { None };
    // Released before dropping what is foreign.
    drop(inner);
    drop(once);
}

/// The timer's message; `None` if the timer was cancelled or its life has ended.
fn made(target: Target<'_>, id: TimerId) -> Option<Envelope> {
    let mut inner = target.header.mailbox.lock();
    let extras = inner.extras.as_mut()?;
    extras.ticks = extras.ticks.wrapping_add(1);
    let timer = extras.timers.get_mut(&id)?;
    timer.is_queued = false;
    if timer.period.is_none() {
        let once = extras.timers.remove(&id);
        // Released before making the message: that is foreign code.
        drop(inner);
        return once?.make.map(|mut make| make().envelope);
    }
    let mut make: Make = timer.make.take()?;
    drop(inner);
    let made = catch_unwind(AssertUnwindSafe(&mut make));
    let (envelope, ended) = match made {
        Ok(Made { envelope, ended }) => (Ok(envelope), ended),
        Err(panic) => (Err(panic), None),
    };
    let mut inner = target.header.mailbox.lock();
    let timer = inner.extras.as_mut().and_then(|extras| extras.timers.get_mut(&id));
    let (unused, before) = match timer {
        Some(timer) => {
            timer.make = Some(make);
            (None, std::mem::replace(&mut timer.last, ended))
        }
        None => (Some(make), ended),
    };
    // Released before dropping what is foreign.
    drop(inner);
    drop((unused, before));
    // The actor may survive it, and then the timer goes on.
    Some(envelope.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// # Safety
/// As `Table::reject`.
unsafe fn reject(payload: Payload, _why: Option<AskError>) {
    // SAFETY: these tables are paired with this type in `Envelope::tick`.
    let _: Tick = unsafe { load::<Tick>(payload) };
}

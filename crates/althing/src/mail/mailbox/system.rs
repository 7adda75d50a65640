//! Messages of the runtime to the actor: they travel in a list of their own, exempt from the bound.
//!
//! One that finds nobody whom it could reach is not queued: an actor that sleeps is started for few
//! of them.

use super::{Inner, Mailbox, Phase, Sent, Wake};
use crate::mail::claim::Guard;
use crate::mail::extras::{Extras, System};
use crate::stop_reason::StopReason;

/// What became of a system message.
#[must_use]
pub(crate) enum SystemPush {
    Queued(Wake),
    /// The actor is gone for good.
    Ended,
    /// The actor lives on another node; here is the message again.
    Elsewhere(System),
}

impl Mailbox {
    /// Queues a system message.
    pub(crate) fn push_system(&self, message: System, from: Sent) -> SystemPush {
        push(self.lock(), message, from)
    }

    /// Queues a system message for the life that is there, if what the mailbox keeps for that life
    /// says so.
    pub(crate) fn push_system_if(
        &self,
        message: System,
        belongs: impl FnOnce(&mut Extras) -> bool,
    ) -> SystemPush {
        let mut inner = self.lock();
        if inner.extras.as_mut().is_some_and(|extras| belongs(extras)) {
            return push(inner, message, Sent::Here);
        }
        // Released before dropping, as below.
        drop(inner);
        SystemPush::Queued(Wake::Nothing)
    }
}

fn push(mut inner: Guard<'_, Inner>, message: System, from: Sent) -> SystemPush {
    if inner.has_ended() {
        return SystemPush::Ended;
    }
    let is_for_another_node = inner.is_elsewhere() && from == Sent::Here;
    if is_for_another_node && message.travels() {
        return SystemPush::Elsewhere(message);
    }
    if inner.sleeps_now() && (is_for_another_node || !message.starts_a_sleeper()) {
        // Nobody is there whom it could reach. Released before dropping: a cause of an end may
        // be foreign.
        drop(inner);
        return SystemPush::Queued(Wake::Nothing);
    }
    if matches!(message, System::Start) && inner.is_told_to_start() {
        return SystemPush::Queued(Wake::Nothing);
    }
    inner.absorb();
    let extras = inner.extras();
    extras.system.push_back(message);
    let suspended = extras.suspended.take();
    SystemPush::Queued(match (&inner.phase, suspended) {
        (Phase::Running, Some(waker)) => Wake::Waker(waker),
        _ => inner.claim(),
    })
}

impl Inner {
    fn is_told_to_start(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| {
            extras.system.iter().any(|message| matches!(message, System::Start))
        })
    }

    pub(crate) fn has_system(&self) -> bool {
        self.extras
            .as_ref()
            .is_some_and(|extras| !extras.system.is_empty() || !extras.deferred.is_empty())
    }

    /// Whether a message that ends the life waits for the end of a handler.
    pub(crate) fn is_told_to_end(&self) -> bool {
        self.extras
            .as_ref()
            .is_some_and(|extras| extras.deferred.iter().any(|message| message.end().is_some()))
    }

    /// Why the actor is to stop after what waits, if somebody asked for that and it has not begun.
    pub(crate) fn asked_to_stop(&self) -> Option<StopReason> {
        let extras = self.extras.as_ref()?;
        extras.deferred.iter().chain(&extras.system).find_map(|message| match message {
            System::Stop(reason) => Some(reason.clone()),
            _ => None,
        })
    }

    pub(crate) fn has_new_system(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| !extras.system.is_empty())
    }
}

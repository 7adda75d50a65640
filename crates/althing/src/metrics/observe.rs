//! Tells a simulation of the steps that actors take, and asks it for its faults.
//!
//! Nothing here runs outside a simulation: each call is one look at the kind of environment.

use tracing::Span;

use crate::activation::current;
use crate::address::actor_id::ActorId;
use crate::address::place::Header;
use crate::metrics::MessageName;
use crate::metrics::step::{Sender, Step, Way};
use crate::node::env::{Env, Fault, Simulation};

impl Header {
    /// The sender of a message that is sent now, if the node traces or is simulated.
    #[inline]
    pub(crate) fn sender(&self) -> Option<Sender> {
        self.kind.keeps_senders.then(|| {
            let span = if self.kind.tracing.is_on() { Span::current() } else { Span::none() };
            Sender { span, actor: current_id() }
        })
    }

    /// As `sender`, for what nobody sends: a timer's message.
    pub(crate) fn no_sender(&self) -> Option<Sender> {
        self.sender().map(|sender| Sender { actor: None, ..sender })
    }

    /// Tells the simulation, if there is one.
    #[inline]
    pub(crate) fn observe(&self, step: Step<'_>) {
        if let Env::Simulated(simulation) = &self.kind.node.env {
            self.tell(&**simulation, &step);
        }
    }

    #[cold]
    fn tell(&self, simulation: &dyn Simulation, step: &Step<'_>) {
        simulation.observe(Some(&self.id()), step);
    }

    /// Tells the simulation, if there is one, that the actor takes a message in place from the
    /// actor polled on this thread.
    #[inline]
    pub(crate) fn observe_in_place(&self, message: MessageName) {
        if self.kind.node.env.is_simulated() {
            self.observe_in_place_from(current_id().as_ref(), message);
        }
    }

    /// Tells the simulation that the actor takes a message in place from another one.
    #[cold]
    pub(crate) fn observe_in_place_from(&self, from: Option<&ActorId>, message: MessageName) {
        self.observe(Step::Takes { message: message(), from, way: Way::InPlace });
    }

    /// Who sends a message now, if a simulation wants to know.
    #[inline]
    pub(crate) fn sender_if_simulated(&self) -> Option<ActorId> {
        if self.kind.node.env.is_simulated() { current_id() } else { None }
    }

    /// What a simulation wants to happen to a message that is about to run.
    #[inline]
    pub(crate) fn fault(&self, message: MessageName) -> Fault {
        match &self.kind.node.env {
            Env::Tokio(_) => Fault::None,
            Env::Simulated(simulation) => simulation.fault(&self.id(), message()),
        }
    }
}

impl Env {
    /// Tells the simulation, if there is one, of a step of the actor polled on this thread, if
    /// there is one.
    pub(crate) fn observe_current(&self, step: Step<'_>) {
        if let Self::Simulated(simulation) = self {
            simulation.observe(current_id().as_ref(), &step);
        }
    }
}

fn current_id() -> Option<ActorId> {
    current::actor().map(|actor| actor.header().id())
}

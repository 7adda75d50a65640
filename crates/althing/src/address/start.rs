//! How an actor of a type is started: the kind that a node knows of it, its factory, and what the
//! factory learns.

use std::any::{Any, TypeId, type_name};
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use crate::actor::Actor;
use crate::address::actor_id::{Activation, Incarnation, Key};
use crate::address::actor_ref::ActorRef;
use crate::address::key::{self, KeyError};
use crate::address::kind::Kind;
use crate::address::place::AnyPlace;
use crate::error::ActorError;
use crate::mail::quick::Quick;
use crate::metrics::KindMetrics;
use crate::node::shared::{Node, NodeShared};
use crate::options::ActorOptions;
use crate::wire::codec::AnyCodecs;
use crate::wire::codecs::Codecs;

/// A future of a state.
pub(crate) type Building<A> = Pin<Box<dyn Future<Output = Result<A, ActorError>> + Send>>;
/// Builds a state at activation and at restart.
pub(crate) type Factory<A> = dyn Fn(Start<A>) -> Building<A> + Send + Sync;

/// What a factory learns about the actor it builds.
pub struct Start<A: Actor> {
    address: ActorRef<A>,
}

impl Kind {
    pub(crate) fn new<A: Actor>(node: Arc<NodeShared>, factory: Option<Box<Factory<A>>>) -> Self {
        let options = options_of::<A>(&node);
        let codecs = OnceLock::new();
        if node.cluster.is_some() {
            codecs.get_or_init(codecs_of::<A>);
        }
        Self {
            name: A::NAME,
            id: A::kind_name(),
            type_id: TypeId::of::<A>(),
            len_max: options.mailbox.len_max(),
            options,
            metrics: KindMetrics::new(node.metrics),
            quick: Quick::new(),
            tracing: node.tracing,
            keeps_senders: node.tracing.is_on() || node.env.is_simulated(),
            type_name: type_name::<A>(),
            twice: None,
            home: None,
            turns: A::TURNS,
            codecs,
            make_codecs: codecs_of::<A>,
            node,
            factory: factory.map(|factory| Box::new(factory) as Box<dyn Any + Send + Sync>),
        }
    }

    /// The kind of addresses of anonymous actors that the node `home` started.
    pub(crate) fn of_foreigners<A: Actor>(node: Arc<NodeShared>, home: Incarnation) -> Self {
        Self { home: Some(home), ..Self::new::<A>(node, None) }
    }
}

impl<A: Actor> Start<A> {
    pub(crate) fn new(address: ActorRef<A>) -> Self {
        Self { address }
    }

    /// Key of the actor; empty for an anonymous one.
    pub fn key(&self) -> &str {
        self.address.key().map_or("", |key| key)
    }

    /// Key of the actor as the type that stands for it.
    ///
    /// # Errors
    /// The key is no such thing; the error names it and the actor's kind.
    pub fn key_as<K>(&self) -> Result<K, KeyError>
    where
        K: FromStr<Err: Error + Send + Sync + 'static>,
    {
        key::parse(A::NAME, self.key())
    }

    /// Key of the actor as a shared string.
    pub fn shared_key(&self) -> Option<Key> {
        self.address.key().cloned()
    }

    /// Address of the actor; messages to it wait until it has started.
    pub fn address(&self) -> &ActorRef<A> {
        &self.address
    }

    /// The life that starts: who, where, and in which epoch.
    pub fn activation(&self) -> Activation {
        self.address.place().header().activation()
    }

    /// The node it starts on.
    pub fn node(&self) -> Node {
        self.address.node()
    }
}

/// How actors of a kind are built that have no factory of their own.
pub(crate) fn factory_of<A: Actor>(kind: &Kind) -> Option<&Factory<A>> {
    kind.factory.as_ref()?.downcast_ref::<Box<Factory<A>>>().map(AsRef::as_ref)
}

/// Boxes a user's factory.
pub(crate) fn boxed_factory<A, F, B>(factory: F) -> Box<Factory<A>>
where
    A: Actor,
    F: Fn(Start<A>) -> B + Send + Sync + 'static,
    B: Future<Output = Result<A, ActorError>> + Send + 'static,
{
    Box::new(move |start| Box::pin(factory(start)))
}

/// The options of an actor type on a node.
fn options_of<A: Actor>(node: &NodeShared) -> ActorOptions {
    node.holdings().options.get(&TypeId::of::<A>()).cloned().unwrap_or_else(A::options)
}

fn codecs_of<A: Actor>() -> Option<Box<dyn AnyCodecs>> {
    match Codecs::registered(A::CODECS?) {
        Ok(codecs) => Some(Box::new(codecs)),
        Err(error) => {
            tracing::error!(%error, "its actors are not reached from other nodes");
            None
        }
    }
}

//! An actor type as one node knows it: name, options, factory, counters. Looked up once per
//! reference, never per message.

use std::any::{Any, TypeId, type_name};
use std::error::Error;
use std::future::Future;
use std::hash::Hasher;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use crate::activation::commits::Turns;
use crate::actor::Actor;
use crate::address::actor_id::{Activation, Incarnation, Key, KindName};
use crate::address::actor_ref::ActorRef;
use crate::address::key::{self, KeyError};
use crate::address::place::{AnyPlace, AsAnyPlace};
use crate::error::ActorError;
use crate::mail::quick::Quick;
use crate::metrics::trace::Tracing;
use crate::metrics::{KindMetrics, MessageName, Timed};
use crate::node::kinds::KindTwice;
use crate::node::{Node, NodeShared};
use crate::options::ActorOptions;
use crate::wire::codecs::{AnyCodecs, Codecs};

/// A future of a state.
pub(crate) type Building<A> = Pin<Box<dyn Future<Output = Result<A, ActorError>> + Send>>;
/// Builds a state at activation and at restart.
pub(crate) type Factory<A> = dyn Fn(Start<A>) -> Building<A> + Send + Sync;

/// An actor type on one node.
pub(crate) struct Kind {
    /// `Actor::NAME`.
    pub(crate) name: &'static str,
    /// Its name in identities, on the wire and in metrics.
    pub(crate) id: KindName,
    pub(crate) type_id: TypeId,
    pub(crate) options: ActorOptions,
    pub(crate) len_max: u32,
    pub(crate) node: Arc<NodeShared>,
    pub(crate) tracing: Tracing,
    /// Whether messages carry who sent them.
    pub(crate) keeps_senders: bool,
    pub(crate) metrics: KindMetrics,
    pub(crate) quick: Quick,
    /// A `Box<Factory<A>>`.
    factory: Option<Box<dyn Any + Send + Sync>>,
    /// What other nodes may send, a `Codecs<A>`: made with the kind where there is a cluster, and
    /// with the first letter elsewhere.
    codecs: OnceLock<Option<Box<dyn AnyCodecs>>>,
    make_codecs: fn() -> Option<Box<dyn AnyCodecs>>,
    /// The actor of a key.
    pub(crate) find: fn(&Node, &str) -> Arc<dyn AnyPlace>,
    /// The type's Rust name.
    pub(crate) type_name: &'static str,
    /// Set if another type has the name; then no actor of this one starts.
    pub(crate) twice: Option<KindTwice>,
    turns: Turns,
    /// The node that started the anonymous actors whose addresses this kind is of, if that is
    /// another one.
    pub(crate) home: Option<Incarnation>,
}

impl Kind {
    pub(crate) fn new<A: Actor>(node: Arc<NodeShared>, factory: Option<Box<Factory<A>>>) -> Self {
        let options = node.options_of::<A>();
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
            find: |node, key| node.get::<A>(key).place().as_any_place(),
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

    /// Counts a message that is about to run in place; `Some` if it is to be timed.
    #[inline]
    pub(crate) fn begin_message(&self, message: MessageName) -> Option<Timed> {
        let is_sample = self.metrics.shard()?.handle();
        is_sample.then(|| self.begin_timing(message))
    }

    /// Begins to time a message that was counted.
    #[cold]
    pub(crate) fn begin_timing(&self, message: MessageName) -> Timed {
        Timed { started_ns: self.node.clock_ns(), message }
    }

    /// Takes the time of a message down.
    #[cold]
    pub(crate) fn end_timing(&self, timed: Timed) {
        if let Some(shard) = self.metrics.shard() {
            let elapsed_ns = self.node.clock_ns().saturating_sub(timed.started_ns);
            shard.record(timed.message, elapsed_ns);
        }
    }

    /// Whether what its handlers let out waits for a commit.
    #[inline]
    pub(crate) fn holds_turns(&self) -> bool {
        self.turns == Turns::Held
    }

    /// How the kind's messages travel; `None` if they do not.
    pub(crate) fn codecs<A: Actor>(&self) -> Option<&Codecs<A>> {
        let codecs: &dyn Any = self.any_codecs()?;
        codecs.downcast_ref()
    }

    /// As `codecs`, where the actor's type is not known.
    pub(crate) fn any_codecs(&self) -> Option<&dyn AnyCodecs> {
        self.codecs.get_or_init(self.make_codecs).as_deref()
    }

    pub(crate) fn factory<A: Actor>(&self) -> Option<&Factory<A>> {
        self.factory.as_ref()?.downcast_ref::<Box<Factory<A>>>().map(AsRef::as_ref)
    }
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

/// What a factory learns about the actor it builds.
pub struct Start<A: Actor> {
    address: ActorRef<A>,
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

/// Hashes a type's id with its own bits, which are a hash already; nobody outside chooses them.
#[derive(Default)]
pub(crate) struct TypeHasher(u64);

impl Hasher for TypeHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 ^= word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
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

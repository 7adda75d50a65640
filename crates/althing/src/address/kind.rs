//! An actor type as one node knows it: name, options, factory, counters. Looked up once per
//! reference, never per message.

use std::any::{Any, TypeId};
use std::hash::Hasher;
use std::sync::{Arc, OnceLock};

use crate::activation::commit::Turns;
use crate::address::actor_id::{Incarnation, KindName};
use crate::mail::quick::Quick;
use crate::metrics::{KindMetrics, MessageName, Timed, Tracing};
use crate::node::shared::NodeShared;
use crate::options::ActorOptions;
use crate::wire::codec::AnyCodecs;

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
    pub(super) factory: Option<Box<dyn Any + Send + Sync>>,
    /// What other nodes may send: made with the kind where there is a cluster, and with the first
    /// letter elsewhere.
    pub(super) codecs: OnceLock<Option<Box<dyn AnyCodecs>>>,
    pub(super) make_codecs: fn() -> Option<Box<dyn AnyCodecs>>,
    /// The type's Rust name.
    pub(crate) type_name: &'static str,
    /// Set if another type has the name; then no actor of this one starts.
    pub(crate) twice: Option<KindTwice>,
    pub(super) turns: Turns,
    /// The node that started the anonymous actors whose addresses this kind is of, if that is
    /// another one.
    pub(crate) home: Option<Incarnation>,
}

impl Kind {
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

    /// As `end_timing`, of a message that may not have been timed.
    #[inline]
    pub(crate) fn end_timing_of(&self, timed: Option<Timed>) {
        if let Some(timed) = timed {
            self.end_timing(timed);
        }
    }

    /// Whether what its handlers let out waits for a commit.
    #[inline]
    pub(crate) fn holds_turns(&self) -> bool {
        self.turns == Turns::Held
    }

    /// How the kind's messages travel; `None` if they do not.
    pub(crate) fn codecs(&self) -> Option<&dyn AnyCodecs> {
        self.codecs.get_or_init(self.make_codecs).as_deref()
    }
}

/// Two types of actors of one node that have the same
/// [`Actor::kind_name`](crate::Actor::kind_name). The second one's actors do not start.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{first}` and `{second}` are both called `{name}`")]
pub struct KindTwice {
    /// The name.
    pub name: KindName,
    /// The type that has it.
    pub first: &'static str,
    /// The type that cannot have it, too.
    pub second: &'static str,
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

//! A node: the owner of everything. Two nodes in one process share nothing.

pub(crate) mod blocking;
pub(crate) mod builder;
pub(crate) mod callers;
pub(crate) mod env;
pub(crate) mod foreign;
pub(crate) mod holdings;
pub(crate) mod kinds;
pub(crate) mod shared;
pub(crate) mod shutdown;
pub(crate) mod timestamp;

use std::any::TypeId;
use std::future::Future;
use std::sync::Arc;

use crate::activation::ending::{close_sleeper, drop_refused};
use crate::activation::run::Run;
use crate::actor::Actor;
use crate::address::actor_id::{ActorId, Key};
use crate::address::actor_ref::ActorRef;
use crate::address::key::ActorKey;
use crate::address::kind::Kind;
use crate::address::parent::Parent;
use crate::address::place::{AnyPlace, AsAnyPlace, Header};
use crate::address::start::{Factory, Start, boxed_factory};
use crate::address::typed::Place;
use crate::error::{ActorError, NameTaken};
use crate::mail::mailbox::Phase;
use crate::node::shared::{Node, NodeShared};
use crate::stop_reason::StopReason;

impl Node {
    /// Address of the named actor; its first message activates it.
    pub fn get<A: Actor>(&self, key: impl ActorKey<A>) -> ActorRef<A> {
        let directory = &self.shared().holdings().directory;
        let of = (A::NAME, TypeId::of::<A>());
        let place = key.with_text(|key| {
            directory.of_name(of, key).unwrap_or_else(|| {
                let place = self.place_for::<A>(key.into());
                let close = || _ = self.shared().close_if_shut(place.header());
                directory.get_or_insert(&place, close)
            })
        });
        let place = place.into_any().downcast().expect("a name holds places of its own type");
        ActorRef::from_place(place)
    }

    /// A place for a name that nobody has asked for yet. Made without a lock: the options of its type
    /// and the cluster are foreign.
    fn place_for<A: Actor>(&self, key: Key) -> Arc<dyn AnyPlace> {
        let header = Header::new(self.shared().kind::<A>(), Some(key));
        let place = Place::<A>::new(header, None, None);
        if !self.shared().is_shut() {
            place.header().settle();
        }
        Arc::new(place)
    }

    /// Starts an anonymous actor. It lives until it is stopped; without a factory it cannot
    /// restart.
    pub fn spawn<A: Actor>(&self, actor: A) -> ActorRef<A> {
        let header = Header::new(self.shared().kind::<A>(), None);
        self.start(Arc::new(Place::new(header, None, Some(actor))), None)
    }

    /// Starts an anonymous actor that `factory` builds, now and at each restart.
    pub fn spawn_with<A, F, B>(&self, factory: F) -> ActorRef<A>
    where
        A: Actor,
        F: Fn(Start<A>) -> B + Send + Sync + 'static,
        B: Future<Output = Result<A, ActorError>> + Send + 'static,
    {
        self.spawn_child(boxed_factory(factory), None)
    }

    pub(crate) fn spawn_child<A: Actor>(
        &self,
        factory: Box<Factory<A>>,
        parent: Option<&Parent>,
    ) -> ActorRef<A> {
        let header = Header::new(self.shared().kind::<A>(), None);
        self.start(Arc::new(Place::new(header, Some(factory), None)), parent)
    }

    pub(crate) fn spawn_under<A: Actor>(&self, actor: A, parent: &Parent) -> ActorRef<A> {
        let header = Header::new(self.shared().kind::<A>(), None);
        self.start(Arc::new(Place::new(header, None, Some(actor))), Some(parent))
    }

    /// Starts an actor under a name of its own.
    ///
    /// # Errors
    /// `NameTaken` if an actor of that type and name runs, or was unloaded and may come back.
    pub fn spawn_named<A: Actor>(
        &self,
        key: impl Into<Key>,
        actor: A,
    ) -> Result<ActorRef<A>, NameTaken> {
        self.spawn_named_under(key.into(), actor, None)
    }

    pub(crate) fn spawn_named_under<A: Actor>(
        &self,
        key: Key,
        actor: A,
        parent: Option<&Parent>,
    ) -> Result<ActorRef<A>, NameTaken> {
        if self.shared().is_shut() {
            let header = Header::new(self.shared().kind::<A>(), Some(key));
            let place = Arc::new(Place::new(header, None, Some(actor)));
            self.shared().close_if_shut(place.header());
            drop_refused(place.as_any_place());
            return Ok(ActorRef::from_place(place));
        }
        let place = self.claim_name::<A>(&key)?;
        // SAFETY: the claim is ours, and nobody has lived there, or not any more.
        unsafe { place.put(actor) };
        let child = place.as_any_place();
        // Before it runs: it may fail at once.
        let is_late = parent.is_some_and(|parent| !parent.adopt(&child));
        if let Some(parent) = parent.filter(|_| is_late) {
            parent.end(&child);
        }
        if self.may_begin(&child) {
            Run::schedule(child);
        }
        Ok(ActorRef::from_place(place))
    }

    /// The place of a name under which nobody lives, with its claim: the one that its addresses lead
    /// to, or a new one. A shutdown that finds it waits for its end.
    fn claim_name<A: Actor>(&self, key: &Key) -> Result<Arc<Place<A>>, NameTaken> {
        let directory = &self.shared().holdings().directory;
        loop {
            if let Some(known) = directory.of_name((A::NAME, TypeId::of::<A>()), key) {
                let mut inner = known.header().mailbox.lock();
                let (is_vacant, has_ended) = (inner.is_vacant(), inner.has_ended());
                if is_vacant {
                    inner.phase = Phase::Running;
                }
                drop(inner);
                if is_vacant {
                    let place = known.into_any().downcast();
                    return Ok(place.expect("a name holds places of its own type"));
                }
                if !has_ended {
                    return Err(NameTaken(known.header().id()));
                }
            }
            let header = Header::new(self.shared().kind::<A>(), Some(key.clone()));
            let place = Arc::new(Place::<A>::new(header, None, None));
            // Nobody else knows it yet.
            place.header().mailbox.lock().phase = Phase::Running;
            if directory.insert(&place.as_any_place()) {
                return Ok(place);
            }
        }
    }

    fn start<A: Actor>(&self, place: Arc<Place<A>>, parent: Option<&Parent>) -> ActorRef<A> {
        if self.shared().close_if_shut(place.header()) {
            drop_refused(place.as_any_place());
            return ActorRef::from_place(place);
        }
        let child = place.as_any_place();
        // Before the child runs: it may fail at once.
        let is_late = parent.is_some_and(|parent| !parent.adopt(&child));
        // A new place's claim is ours. A shutdown that finds it waits for its end.
        place.header().mailbox.lock().phase = Phase::Running;
        self.shared().holdings().directory.insert_anonymous(child.clone());
        if let Some(parent) = parent.filter(|_| is_late) {
            parent.end(&child);
        }
        if self.may_begin(&child) {
            Run::start_now(child);
        }
        ActorRef::from_place(place)
    }

    /// Whether an actor whose claim is ours may begin. If the node was shut down before the
    /// directory had it, nobody would stop it: it ends at once.
    fn may_begin(&self, place: &Arc<dyn AnyPlace>) -> bool {
        let may_begin = !self.shared().is_shut();
        if !may_begin {
            // Also if its name could have a next life.
            place.header().mailbox.lock().shut();
            Run::new(place.clone()).end(StopReason::Killed);
        }
        may_begin
    }
}

impl NodeShared {
    /// Makes a new actor's address refuse if the node has shut down; returns whether it has.
    fn close_if_shut(&self, header: &Header) -> bool {
        let is_shut = self.is_shut();
        if is_shut {
            let mut inner = header.mailbox.lock();
            inner.shut();
            inner.count_end();
        }
        is_shut
    }

    fn register<A: Actor>(self: &Arc<Self>, factory: Option<Box<Factory<A>>>) {
        // Only this one counts: an actor type that is registered twice is built by the later
        // factory.
        self.holdings().kinds.replace(Kind::new::<A>(self.clone(), factory), find::<A>);
    }

    fn kind<A: Actor>(self: &Arc<Self>) -> Arc<Kind> {
        self.holdings().kinds.of_type(TypeId::of::<A>()).unwrap_or_else(|| {
            let kind = Kind::new::<A>(self.clone(), None);
            if self.is_shut() {
                // Kept by nobody: kinds keep their node.
                return Arc::new(kind);
            }
            self.holdings().kinds.add(kind, find::<A>)
        })
    }

    /// The place of another node's anonymous actor, made if there is none; `None` where there is no
    /// cluster.
    pub(crate) fn foreign<A: Actor>(self: &Arc<Self>, id: &ActorId) -> Option<Arc<dyn AnyPlace>> {
        self.cluster.as_ref()?;
        let origin = id.place_of_birth()?;
        let kind = || Kind::of_foreigners::<A>(self.clone(), origin.node);
        let place = |kind: Arc<Kind>| -> Arc<dyn AnyPlace> {
            Arc::new(Place::<A>::new(Header::new(kind, Some(origin.to_key())), None, None))
        };
        let (of, is_shut) = ((TypeId::of::<A>(), origin.node), || self.is_shut());
        let place = self.holdings().foreign.get_or_make(id, of, is_shut, kind, place);
        if self.is_shut() {
            // It may have been made after the others were closed.
            close_sleeper(&place);
        }
        Some(place)
    }
}

/// The actor of a key.
fn find<A: Actor>(node: &Node, key: &str) -> Arc<dyn AnyPlace> {
    node.get::<A>(key).place().as_any_place()
}

#[cfg(all(test, not(althing_loom)))]
mod tests {
    use crate::actor::Actor;
    use crate::address::actor_ref::ActorRef;
    use crate::address::place::AsAnyPlace;
    use crate::node::shared::Node;

    struct Clerk;

    impl Actor for Clerk {
        const NAME: &'static str = "test.clerk";
    }

    /// The shutdown has seen everybody before the name was taken.
    #[tokio::test]
    async fn a_name_that_is_taken_as_its_node_is_shut_refuses() {
        let node = Node::builder("office").actor(async |_| Ok(Clerk)).build();
        let place = node.claim_name::<Clerk>(&"a".into()).expect("nobody has it");
        // SAFETY: the claim is ours, and nobody has lived there.
        unsafe { place.put(Clerk) };
        node.shared().shut();
        assert!(!node.may_begin(&place.as_any_place()));
        assert!(ActorRef::from_place(place).is_stopped());
    }
}

//! Groups whose members live on several nodes: what the roster decided, done.
//!
//! The roster is behind the lock of `Core`, so that changes are told in their order. Whether an
//! actor is shown as a member is read from it anew at each change: two changes that cross end with
//! the later one.

use std::any::Any;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use althing::stable_hash::{fnv1a, mix};
use althing::{Actor, ActorId, ActorRef, Node, Receives, Remote, Stopped};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::routes::Core;
use super::{Member, Shared};
use crate::protocol::Item;
use crate::roster::{Effect, Entry, Key};

/// Longest name of a group, and longest identity of a member, encoded: each change is one short item
/// on every link.
const NAME_LEN_MAX: usize = 256;
const MEMBER_LEN_MAX: usize = 1_024;

/// Why an actor does not join a group, or there is none. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The group's name or the member's is too long.
    #[error("a name of {len} bytes in a group: at most {len_max}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The most that there may be.
        len_max: usize,
    },
    /// 65,536 actors have joined on this node.
    #[error("as many actors as there may be have joined groups on this node")]
    TooMany,
    /// The actor lives on another node: that one has it join.
    #[error("{0} lives on another node, and joins there")]
    Elsewhere(ActorId),
}

/// Groups by name and kind.
pub(super) type Groups = Mutex<HashMap<Key, Weak<dyn AnyGroup>>>;

/// Actors that have joined on this node, each with whoever waits for its end.
#[derive(Default)]
pub(super) struct Joined {
    of: HashMap<(Key, ActorId), Watched>,
    last: u64,
}

struct Watched {
    serial: u64,
    watch: AbortHandle,
}

/// A group whose type is forgotten.
pub(super) trait AnyGroup: Any + Send + Sync {
    fn show(&self, node: &Node, actor: &ActorId, is_member: bool);
}

/// Actors of one type on all nodes of a cluster that can stand in for each other. Cheap to clone.
///
/// Members join on the node where they live, and every node sees them as soon as its word has come
/// there. A member leaves with its life, of a named actor also when that is unloaded or moved, and
/// with its node. Whoever is picked may have ended just now.
pub struct SharedGroup<A: Actor> {
    view: Arc<Seen<A>>,
    key: Key,
    shared: Weak<Shared>,
}

struct Seen<A: Actor> {
    /// By identity, so that the order is the same on all nodes.
    members: RwLock<Vec<(ActorId, ActorRef<A>)>>,
    next: AtomicUsize,
    changes: watch::Sender<usize>,
}

impl<A: Actor> AnyGroup for Seen<A> {
    fn show(&self, node: &Node, actor: &ActorId, is_member: bool) {
        // Resolved before the lock: it may make an address.
        let address = if is_member { node.resolve::<A>(actor) } else { None };
        let mut members = self.members.write();
        let at = members.binary_search_by(|(other, _)| other.cmp(actor));
        let gone = match (at, address) {
            (Err(at), Some(address)) => {
                members.insert(at, (actor.clone(), address));
                None
            }
            (Ok(at), None) => Some(members.remove(at)),
            _ => return,
        };
        let count = members.len();
        drop(members);
        // After the lock: an address that is the last one drops what is foreign.
        drop(gone);
        self.changes.send_replace(count);
    }
}

impl Member {
    /// The group of that name and of actors of type `A`, on all nodes.
    ///
    /// # Errors
    /// `TooLong` if the name has more than 256 bytes.
    pub fn group<A: Actor + Remote>(&self, name: &str) -> Result<SharedGroup<A>, GroupError> {
        let len = name.len();
        if len > NAME_LEN_MAX {
            return Err(GroupError::TooLong { len, len_max: NAME_LEN_MAX });
        }
        let key = Key::new(name, A::NAME);
        let shared = &self.shared;
        let mut groups = shared.groups.lock();
        let known = groups.get(&key).and_then(Weak::upgrade);
        let known = known.and_then(|known| (known as Arc<dyn Any + Send + Sync>).downcast().ok());
        let view: Arc<Seen<A>> = match known {
            Some(view) => view,
            None => {
                let view: Arc<Seen<A>> = Arc::default();
                groups.retain(|_, group| group.strong_count() > 0);
                let forgotten: Weak<Seen<A>> = Arc::downgrade(&view);
                groups.insert(key.clone(), forgotten);
                view
            }
        };
        drop(groups);
        let members = shared.core.lock().roster.members(&key);
        members.iter().for_each(|actor| shared.show(&key, actor));
        Ok(SharedGroup { view, key, shared: Arc::downgrade(shared) })
    }
}

impl<A: Actor> SharedGroup<A> {
    /// Adds an actor that lives on this node; adding it again changes nothing.
    ///
    /// # Errors
    /// See [`GroupError`].
    pub fn join(&self, member: &ActorRef<A>) -> Result<(), GroupError> {
        let Some(shared) = self.shared.upgrade() else { return Ok(()) };
        let id = member.id();
        let mut encoded = Vec::new();
        althing::Wire::encode(&id, &mut encoded);
        let (len, len_max) = (encoded.len(), MEMBER_LEN_MAX);
        if len > len_max {
            return Err(GroupError::TooLong { len, len_max });
        }
        if !shared.node().is_some_and(|node| node.is_home_of(&id)) {
            return Err(GroupError::Elsewhere(id));
        }
        shared.join(&self.key, &id, member.stopped())
    }

    /// Removes an actor that has joined on this node.
    pub fn leave(&self, member: &ActorRef<A>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.leave_group(&self.key, &member.id(), None);
        }
    }

    /// The members that this node knows, in the same order on all nodes.
    pub fn members(&self) -> Vec<ActorRef<A>> {
        self.view.members.read().iter().map(|(_, member)| member.clone()).collect()
    }

    /// How many members this node knows, and each change of that.
    pub fn changes(&self) -> watch::Receiver<usize> {
        self.view.changes.subscribe()
    }

    /// The next member in this node's turn; `None` if there is none.
    pub fn round_robin(&self) -> Option<ActorRef<A>> {
        let members = self.view.members.read();
        let turn = self.view.next.fetch_add(1, Ordering::Relaxed);
        members.get(turn.checked_rem(members.len())?).map(|(_, member)| member.clone())
    }

    /// The member for `key`: the same one on all nodes that know the same members, and a join or
    /// leave moves only the keys it must. Nodes have to be built with the same Rust.
    ///
    /// Source: rendezvous hashing (Thaler, Ravishankar: A Name-Based Mapping Scheme for Rendezvous,
    /// 1996).
    pub fn by_hash(&self, key: impl Hash) -> Option<ActorRef<A>> {
        // Once, and without the lock: how a key is hashed is its own business.
        let key = BuildHasherDefault::<DefaultHasher>::default().hash_one(&key);
        let weight = |id: &ActorId| {
            let mut bytes = Vec::new();
            althing::Wire::encode(id, &mut bytes);
            mix(fnv1a(bytes.into_iter()) ^ key)
        };
        let members = self.view.members.read();
        let best = members.iter().max_by_key(|(id, _)| weight(id));
        best.map(|(_, member)| member.clone())
    }

    /// Tells every member a clone of `message` without waiting; returns how many took it, or are on
    /// a node that it is on the way to.
    pub fn broadcast<M: Clone + Send + 'static>(&self, message: &M) -> usize
    where
        A: Receives<M>,
    {
        let members = self.members();
        members.iter().filter(|member| member.send(message.clone()).try_tell().is_ok()).count()
    }
}

impl<A: Actor> Clone for SharedGroup<A> {
    fn clone(&self) -> Self {
        Self { view: self.view.clone(), key: self.key.clone(), shared: self.shared.clone() }
    }
}

impl<A: Actor> std::fmt::Debug for SharedGroup<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members = self.view.members.read();
        let ids: Vec<_> = members.iter().map(|(id, _)| id).collect();
        f.debug_struct("SharedGroup").field("name", &self.key.group).field("members", &ids).finish()
    }
}

impl<A: Actor> Default for Seen<A> {
    fn default() -> Self {
        let (members, next) = (RwLock::default(), AtomicUsize::new(0));
        Self { members, next, changes: watch::Sender::new(0) }
    }
}

impl Core {
    /// Tells others what they are to know; returns what has changed for this node.
    pub(super) fn obey_roster(&self, effects: Vec<Effect>, len_max: usize) -> Vec<(Key, ActorId)> {
        let mut changed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Tell { to, entry } => self.push(to, Item::Group(entry), len_max),
                Effect::Changed { key, actor } => changed.push((key, actor)),
                Effect::TooMany { from } => {
                    let from = format_args!("{from:016x}");
                    tracing::warn!(from, "a node has more group members than it may");
                }
            }
        }
        changed
    }
}

impl Shared {
    /// An actor of this node joins until its life ends.
    fn join(
        self: &Arc<Self>,
        key: &Key,
        actor: &ActorId,
        stopped: Stopped,
    ) -> Result<(), GroupError> {
        let (shared, place) = (Arc::downgrade(self), (key.clone(), actor.clone()));
        let mut joined = self.joined.lock();
        let changed = self.set_own(key, actor, true)?;
        joined.last += 1;
        let serial = joined.last;
        let leave = self.runtime().spawn(async move {
            stopped.await;
            if let Some(shared) = shared.upgrade() {
                shared.leave_group(&place.0, &place.1, Some(serial));
            }
        });
        let joined_now = Watched { serial, watch: leave.abort_handle() };
        let former = joined.of.insert((key.clone(), actor.clone()), joined_now);
        drop(joined);
        // It watched the same life, or one that has ended.
        former.inspect(|former| former.watch.abort());
        self.show_all(&changed);
        Ok(())
    }

    /// An actor of this node leaves; with a serial, only if it has not joined again since then.
    fn leave_group(&self, key: &Key, actor: &ActorId, serial: Option<u64>) {
        let place = (key.clone(), actor.clone());
        let mut joined = self.joined.lock();
        let is_meant = |at: &Watched| serial.is_none_or(|serial| serial == at.serial);
        if !joined.of.get(&place).is_some_and(is_meant) {
            return;
        }
        let former = joined.of.remove(&place);
        // Only to join can fail.
        let changed = self.set_own(key, actor, false).unwrap_or_default();
        drop(joined);
        if serial.is_none() {
            former.inspect(|former| former.watch.abort());
        }
        self.show_all(&changed);
    }

    fn set_own(
        &self,
        key: &Key,
        actor: &ActorId,
        is_member: bool,
    ) -> Result<Vec<(Key, ActorId)>, GroupError> {
        let mut core = self.core.lock();
        let effects = core.roster.set(key, actor, is_member).map_err(|_| GroupError::TooMany)?;
        Ok(core.obey_roster(effects, self.config.frame_len_max))
    }

    /// Another node tells of one of its own.
    pub(super) fn hear_of_group(&self, from: u64, entry: &Entry) {
        let mut core = self.core.lock();
        let effects = core.roster.hear(from, entry);
        let changed = core.obey_roster(effects, self.config.frame_len_max);
        drop(core);
        self.show_all(&changed);
    }

    pub(super) fn show_all(&self, changed: &[(Key, ActorId)]) {
        changed.iter().for_each(|(key, actor)| self.show(key, actor));
    }

    /// Has a group of this node show whether an actor is a member.
    fn show(&self, key: &Key, actor: &ActorId) {
        let groups = self.groups.lock();
        let group = groups.get(key).and_then(Weak::upgrade);
        drop(groups);
        let (Some(group), Some(node)) = (group, self.node()) else { return };
        // Read and shown as one: of two changes that cross, the later one is shown last.
        let _shown = self.showing.lock();
        let is_member = self.core.lock().roster.holds(key, actor);
        group.show(&node, actor, is_member);
    }
}

#[cfg(test)]
mod tests {
    use althing::{Node, actor};

    use super::Key;
    use crate::{Member, MemberConfig, Tls};

    struct Worker;

    #[actor(name = "test.group-worker", wire, crate = althing)]
    impl Worker {
        async fn work(&mut self) {}
    }

    #[tokio::test]
    async fn the_end_of_a_former_life_takes_out_nobody_who_has_joined_since() {
        let tls = Tls::insecure_plaintext();
        let config = MemberConfig::new("test", "one", "127.0.0.1:1", tls);
        let member = Member::bind(config).expect("a port");
        let node = Node::builder("one").cluster(member.way()).build();
        let worker = node.spawn(Worker);
        worker.work().await.expect("it works");
        let group = member.group::<Worker>("encoders").expect("it is short");
        group.join(&worker).expect("it lives here");
        group.join(&worker).expect("again");
        let (key, id) = (Key::new("encoders", "test.group-worker"), worker.id());
        member.shared.leave_group(&key, &id, Some(1));
        assert_eq!(group.members(), [worker], "the first one was late");
        member.shared.leave_group(&key, &id, Some(2));
        assert_eq!(group.members(), []);
        assert_eq!(member.shared.joined.lock().of.len(), 0);
    }
}

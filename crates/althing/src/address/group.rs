//! Actors of one type behind one name: pick one of them, or tell them all.
//!
//! A group is a list that its owner keeps; it starts and stops nobody. Members that have stopped
//! are passed over, and dropped from the list by the next broadcast, or pick that meets one of them.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::actor::{Actor, Receives};
use crate::address::actor_ref::ActorRef;

/// Actors of one type that can stand in for each other. Cheap to clone; clones are the same group.
///
/// ```
/// use althing::{Actor, Context, Group, Handler, Node};
///
/// struct Worker;
/// struct Job(u32);
///
/// impl Actor for Worker {
///     const NAME: &'static str = "example.worker";
/// }
///
/// impl Handler<Job> for Worker {
///     type Reply = u32;
///     async fn handle(&mut self, Job(n): Job, _ctx: &mut Context<Self>) -> u32 {
///         n * 2
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let node = Node::builder("example").build();
/// let workers: Group<Worker> = (0..4).map(|_| node.spawn(Worker)).collect();
/// let worker = workers.round_robin().expect("nobody has stopped");
/// assert_eq!(worker.send(Job(21)).await, Ok(42));
/// # });
/// ```
pub struct Group<A: Actor> {
    shared: Arc<Shared<A>>,
}

struct Shared<A: Actor> {
    members: RwLock<Members<A>>,
    next: AtomicUsize,
}

/// The members in the order in which they joined.
struct Members<A: Actor> {
    list: Vec<ActorRef<A>>,
    /// Who is on the list, so that nobody who joins pays for all others.
    listed: HashSet<ActorRef<A>>,
}

impl<A: Actor> Group<A> {
    /// An empty group.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member; adding it again changes nothing.
    pub fn join(&self, member: &ActorRef<A>) {
        let mut members = self.shared.members.write();
        if members.listed.insert(member.clone()) {
            members.list.push(member.clone());
        }
    }

    /// Removes a member; returns whether it was one.
    pub fn leave(&self, member: &ActorRef<A>) -> bool {
        let mut members = self.shared.members.write();
        let was_listed = members.listed.remove(member);
        if was_listed {
            members.list.retain(|other| other != member);
        }
        was_listed
    }

    /// The members at this moment, without those that have stopped.
    pub fn members(&self) -> Vec<ActorRef<A>> {
        let mut members = self.shared.members.read().list.clone();
        // Asked without the lock: what the caller has told is handed over first, which may drop
        // what is foreign.
        let stopped: Vec<_> = members.extract_if(.., |member| member.is_stopped()).collect();
        if !stopped.is_empty() {
            self.strike_off(&stopped);
        }
        members
    }

    fn strike_off(&self, stopped: &[ActorRef<A>]) {
        let mut members = self.shared.members.write();
        let Members { list, listed } = &mut *members;
        for member in stopped {
            listed.remove(member);
        }
        list.retain(|member| listed.contains(member));
    }

    /// The next member in turn; `None` if there is none.
    pub fn round_robin(&self) -> Option<ActorRef<A>> {
        self.pick(|members| {
            let turn = self.shared.next.fetch_add(1, Ordering::Relaxed);
            turn.checked_rem(members.len())
        })
    }

    /// The member with the fewest messages waiting; the first of several.
    pub fn least_loaded(&self) -> Option<ActorRef<A>> {
        self.pick(|members| {
            let loads = members.iter().map(ActorRef::mailbox_depth).enumerate();
            loads.min_by_key(|(_, depth)| *depth).map(|(index, _)| index)
        })
    }

    /// The member for `key`: the same one as long as it stays, and a join or leave moves only the
    /// keys it must.
    ///
    /// Source: rendezvous hashing (Thaler, Ravishankar: A Name-Based Mapping Scheme for Rendezvous,
    /// 1996).
    pub fn by_hash(&self, key: impl Hash) -> Option<ActorRef<A>> {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        // Once, and without the lock: how a key is hashed is its own business.
        let key = hasher.hash_one(&key);
        self.pick(|members| {
            let weights = members.iter().map(|member| hasher.hash_one((member, key))).enumerate();
            weights.max_by_key(|(_, weight)| *weight).map(|(index, _)| index)
        })
    }

    /// Tells every member a clone of `message` without waiting; returns how many took it.
    pub fn broadcast<M: Clone + Send + 'static>(&self, message: &M) -> usize
    where
        A: Receives<M>,
    {
        let members = self.members();
        members.iter().filter(|member| member.send(message.clone()).try_tell().is_ok()).count()
    }

    /// Chooses among the living; a choice that has stopped is dropped from the list, with all who
    /// have, and another is made.
    fn pick(&self, choose: impl Fn(&[ActorRef<A>]) -> Option<usize>) -> Option<ActorRef<A>> {
        loop {
            let chosen = {
                let members = self.shared.members.read();
                members.list[choose(&members.list)?].clone()
            };
            if !chosen.is_stopped() {
                return Some(chosen);
            }
            // With all others: a list of those that have stopped would be gone through for each.
            drop(self.members());
        }
    }
}

impl<A: Actor> Default for Group<A> {
    fn default() -> Self {
        let members = Members { list: Vec::new(), listed: HashSet::new() };
        let shared = Shared { members: RwLock::new(members), next: AtomicUsize::new(0) };
        Self { shared: Arc::new(shared) }
    }
}

impl<A: Actor> Clone for Group<A> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<A: Actor> FromIterator<ActorRef<A>> for Group<A> {
    fn from_iter<I: IntoIterator<Item = ActorRef<A>>>(members: I) -> Self {
        let group = Self::new();
        members.into_iter().for_each(|member| group.join(&member));
        group
    }
}

impl<A: Actor> std::fmt::Debug for Group<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the lock: where it is written to is foreign.
        let members = self.shared.members.read().list.clone();
        f.debug_list().entries(members).finish()
    }
}

//! This relay as one node of several: who the others are, how they are reached, and where owners of
//! channels live. A relay that is alone has none of this.
//!
//! Owners are placed by the cluster. Beside them each node has one `Site`, by which owners reach
//! the subscribers that came to it, and other nodes what only it knows.

mod command;
mod shelf;
mod site;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use althing::{ActorError, ActorId, ActorRef, AskError, Epoch, Node};
use althing_cluster::{GroupError, JoinError, Member, SharedGroup, State};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) use command::{UserCommand, UserOutcome, Whose};
pub(crate) use shelf::{Moved, Page};
pub(crate) use site::{Site, SiteCalls};

use crate::channels::{Owner, OwnerCalls, SHARDS};
use shelf::Shelf;

/// The group of all sites.
const GROUP: &str = "relay.sites";
/// How long a member may take until it is known by its site: it has none until it takes clients.
const KNOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Of the number of an owner's life: the count of lives on its node. The epoch is above them.
const LIVES_BITS: u32 = 24;

/// One node of several.
pub(crate) struct Nodes {
    member: Arc<Member>,
    group: SharedGroup<Site>,
    owners: Arc<[ActorRef<Owner>]>,
    shelf: Shelf,
    site: OnceLock<ActorRef<Site>>,
    views: watch::Receiver<u64>,
    /// The lives of all nodes in the view of this number: a view is long, and asked for often.
    members: Mutex<(u64, Arc<[u64]>)>,
    /// Lives of owners that have begun on this node.
    lives: AtomicU64,
}

/// Why a relay is no node of several.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The others do not take it.
    #[error("this node cannot join the cluster: {0}")]
    Join(#[from] JoinError),
    /// They would not find it.
    #[error("this node cannot be found by the others: {0}")]
    Group(#[from] GroupError),
}

/// The life of the node that a site is on.
pub(crate) fn node_of(site: &ActorRef<Site>) -> u64 {
    site.id().origin().map_or(0, |(node, _)| node.0)
}

impl Nodes {
    /// `node` was built with the member's way.
    pub(crate) fn new(member: Arc<Member>, node: &Node) -> Result<Self, GroupError> {
        let owners = (0..SHARDS).map(|shard| node.get::<Owner>(shard.to_string())).collect();
        let group = member.group(GROUP)?;
        let (views, members) = (member.views(), Mutex::new((u64::MAX, Arc::default())));
        let (shelf, site) = (Shelf::default(), OnceLock::new());
        let lives = AtomicU64::new(0);
        Ok(Self { member, group, owners, shelf, site, views, members, lives })
    }

    /// The owner of a part of the channels.
    pub(crate) fn owner(&self, shard: usize) -> &ActorRef<Owner> {
        &self.owners[shard]
    }

    /// A number for a life of an owner that begins here, above those of all its former lives: while
    /// an epoch lasts, the owner is on one node.
    pub(crate) fn next_life(&self, epoch: Epoch) -> u64 {
        let count = 1 + self.lives.fetch_add(1, Ordering::Relaxed);
        (epoch.0 << LIVES_BITS) | (count & ((1 << LIVES_BITS) - 1))
    }

    /// How other nodes reach this one.
    pub(crate) fn be_reached_by(&self, site: ActorRef<Site>) {
        let is_first = self.site.set(site).is_ok();
        debug_assert!(is_first, "a node has one site");
    }

    /// How they reach it.
    pub(crate) fn site(&self) -> Result<ActorRef<Site>, ActorError> {
        let site = self.site.get().cloned();
        site.ok_or_else(|| ActorError::new("this node is not reached by others yet"))
    }

    /// Whether that life of a node goes on.
    pub(crate) fn has(&self, node: u64) -> bool {
        self.members().contains(&node)
    }

    /// The lives of all nodes.
    fn members(&self) -> Arc<[u64]> {
        let number = *self.views.borrow();
        let known = self.members.lock().clone();
        if known.0 == number {
            return known.1;
        }
        let view = self.member.view();
        let members: Arc<[u64]> = view.members.iter().map(|one| one.incarnation.0).collect();
        *self.members.lock() = (view.number, members.clone());
        members
    }

    /// Whether this node has its lease.
    pub(crate) fn is_serving(&self) -> bool {
        *self.member.state().borrow() == State::Serving
    }

    /// The sites of all nodes that have clients, this one among them.
    pub(crate) async fn everyone(&self) -> Vec<ActorRef<Site>> {
        let mut changes = self.group.changes();
        let all = async {
            loop {
                changes.mark_unchanged();
                let (sites, is_all) = self.known();
                if is_all || changes.changed().await.is_err() {
                    return sites;
                }
            }
        };
        tokio::time::timeout(KNOWN_TIMEOUT, all).await.unwrap_or_else(|_| self.known().0)
    }

    /// The sites of members, and whether each member has one.
    fn known(&self) -> (Vec<ActorRef<Site>>, bool) {
        let mut sites = self.group.members();
        let members = self.members();
        sites.retain(|site| members.contains(&node_of(site)));
        let is_all = sites.len() >= members.len();
        (sites, is_all)
    }

    /// The node to which an owner moves; `None`: it stays, or that node is not known in time.
    pub(crate) async fn heir_of(&self, owner: &ActorId) -> Option<ActorRef<Site>> {
        self.site_of(self.member.heir_of(owner)?.0).await
    }

    /// How a node is reached; `None`: that is not known in time.
    async fn site_of(&self, node: u64) -> Option<ActorRef<Site>> {
        let mut changes = self.group.changes();
        let shown = async {
            loop {
                changes.mark_unchanged();
                let mut sites = self.group.members().into_iter();
                if let Some(site) = sites.find(|site| node_of(site) == node) {
                    return Some(site);
                }
                if changes.changed().await.is_err() {
                    return None;
                }
            }
        };
        // One that has just come gets owners before it is known by its site.
        tokio::time::timeout(KNOWN_TIMEOUT, shown).await.ok().flatten()
    }

    /// Takes in a part of what an owner has handed on to its next life, which is here.
    pub(crate) fn adopt(&self, shard: u32, page: Page) {
        self.shelf.put(shard, page);
    }

    /// What the former life of an owner has handed on.
    pub(crate) fn take_moved(&self, shard: u32) -> Option<Moved> {
        self.shelf.take(shard)
    }

    /// A life of an owner has begun: what was handed on by those before it is out of date.
    pub(crate) fn forget_moved(&self, shard: u32, life: u64) {
        self.shelf.forget_before(shard, life);
    }

    /// Has owners begin that live on this node.
    fn wake_owners(&self, me: u64) {
        let is_here = |owner: &&ActorRef<Owner>| {
            self.member.owner_of(&owner.id()).is_some_and(|home| home.0 == me)
        };
        for owner in self.owners.iter().filter(is_here) {
            // One that has no room has begun.
            let _ = owner.wake().try_tell();
        }
    }

    /// Becomes one of the cluster's nodes. All others know it then: what they ask of all nodes, they
    /// ask of this one before it has clients.
    pub(crate) async fn join(&self) -> Result<(), NodeError> {
        self.member.join().await?;
        if let Some(site) = self.site.get() {
            self.show(site)?;
        }
        // A node handles this once it has the view in which this one is there, behind its site.
        if let Err(error) = self.ask_all(|site| async move { site.greet().await }).await {
            tracing::warn!(%error, "a node has not greeted this one");
        }
        Ok(())
    }

    /// Lets the others find this node.
    pub(crate) fn show(&self, site: &ActorRef<Site>) -> Result<(), GroupError> {
        self.group.join(site)
    }

    /// Has another node take a command for a session of its own; whether it has that. `None`: it is
    /// not known how that node is reached.
    pub(crate) async fn emulate(
        &self,
        node: u64,
        is_protobuf: bool,
        body: Bytes,
    ) -> Option<Result<bool, AskError>> {
        let site = self.site_of(node).await?;
        Some(site.emulate(is_protobuf, body).await)
    }

    /// Hands owners on to other nodes, and ends.
    pub(crate) async fn leave(&self, deadline: Duration) {
        self.member.leave(deadline).await;
    }

    /// Resolves when the others have given this node up: it runs nothing any more.
    pub(crate) async fn evicted(&self) {
        let mut state = self.member.state();
        if state.wait_for(|state| *state == State::Evicted).await.is_err() {
            std::future::pending().await
        }
    }
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes").field("member", &self.member).finish_non_exhaustive()
    }
}

/// Whether a node has just ended: its clients have gone before.
fn is_gone(error: &AskError) -> bool {
    matches!(error, AskError::Stopped(_) | AskError::NodeLost(_))
}

/// Has owners begin as soon as they are this node's, so that they hear of their subscribers before
/// anybody asks them for something.
pub(crate) async fn wake_owners(nodes: Weak<Nodes>, mut views: watch::Receiver<u64>, me: u64) {
    loop {
        views.mark_unchanged();
        match nodes.upgrade() {
            Some(nodes) => nodes.wake_owners(me),
            None => return,
        }
        if views.changed().await.is_err() {
            return;
        }
    }
}

impl Nodes {
    /// The number of the cluster's view, and each change of it.
    pub(crate) fn views(&self) -> watch::Receiver<u64> {
        self.views.clone()
    }

    /// Asks all nodes beside each other. A node that is lost meanwhile has nothing to say: its
    /// clients are gone with it.
    pub(crate) async fn ask_all<R, F>(
        &self,
        ask: impl Fn(ActorRef<Site>) -> F,
    ) -> Result<Vec<R>, AskError>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, AskError>> + Send + 'static,
    {
        let asked = self.everyone().await.into_iter().map(|site| {
            let node = node_of(&site);
            (node, tokio::spawn(ask(site)))
        });
        let mut answers = Vec::new();
        for (node, answer) in asked.collect::<Vec<_>>() {
            match answer.await.expect("asking does not panic") {
                Ok(answer) => answers.push(answer),
                Err(error) if is_gone(&error) || !self.has(node) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests;

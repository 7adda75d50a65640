//! This process as one of several nodes of a server: its part in the cluster, and what its sessions
//! have to know of it. A server alone has none of this.
//!
//! Rooms and users live on one node each, whichever the cluster says, and nobody here asks which;
//! but what a session was told by one of them counts only as long as that life lasts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use althing::remote::Cluster;
use althing::{ActorId, Incarnation, ShutdownReport, Topic};
use althing_cluster::{
    Authority, AuthorityConfig, JoinError, Member, MemberConfig, Role, State, Tls, TopicError,
};
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::config::ClusterConfig;
use crate::ports::Others;

/// How long a node waits until it is one: as long as the lease of a former node of its name, and an
/// authority that has to be found.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the others may take to know of a subscriber: longer than it takes to give up one that is
/// lost. One that only this node does not reach may stay for ever.
const HEARD_TIMEOUT: Duration = Duration::from_secs(20);

/// Why what other nodes publish does not reach a subscriber.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotHeard {
    #[error(transparent)]
    Topic(#[from] TopicError),
    #[error("a node does not answer for {HEARD_TIMEOUT:?}")]
    Late,
}

/// Rooms and users may live elsewhere now, and nodes may be gone with all their connections.
#[derive(Debug)]
pub(crate) struct Moved {
    members: Vec<u64>,
    /// What a lost node had still to tell is lost with it.
    pub(crate) has_lost: bool,
}

impl Moved {
    /// Whether that life of a node goes on.
    pub(crate) fn has(&self, node: u64) -> bool {
        self.members.contains(&node)
    }
}

/// Why a process is no node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// It cannot listen for other nodes, or its certificate cannot be used.
    #[error("--{flag} {address}: {source}")]
    Listen {
        /// The setting.
        flag: &'static str,
        /// As configured.
        address: SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// The others do not take it.
    #[error("this node cannot join the cluster: {0}")]
    Join(#[from] JoinError),
}

/// Where this process finds what listens at all its addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}

/// One node of several.
#[derive(Debug)]
pub(crate) struct Nodes {
    member: Member,
    authority: Mutex<Option<Authority>>,
    /// The members that sessions, rooms and users have been told of last.
    known: Mutex<Vec<u64>>,
}

/// Listens for the other nodes, and is ready to keep the cluster's record. The node itself is built
/// next, with the member's way. `None`: frames are as long as they are by default.
pub(crate) fn bind(
    config: &ClusterConfig,
    frame_len_max: Option<usize>,
) -> Result<(Member, Authority), NodeError> {
    let tls = Tls::from_directory(&config.certificates, &config.node);
    let (flag, address) = ("authority-listen", config.authority_listen);
    let failed = |source| NodeError::Listen { flag, address, source };
    let mut candidate = AuthorityConfig::new(&config.name, config.record.clone(), tls.clone())
        .listen(address)
        .lease(config.lease);
    if config.host.is_some() {
        candidate = candidate.advertised(config.advertised(address.port(), address.ip()));
    }
    let authority = Authority::serve(candidate).map_err(failed)?;
    let (flag, address) = ("peer-listen", config.peer_listen);
    let failed = |source| NodeError::Listen { flag, address, source };
    // This process is a candidate itself, and names the one that leads.
    let own = reachable(authority.address()).to_string();
    let role = if config.role.has_state() { Role::Host } else { Role::Guest };
    let mut member = MemberConfig::new(&config.name, &config.node, own, tls)
        .role(role)
        .listen(address)
        .join_timeout(JOIN_TIMEOUT.max(config.lease * 4));
    member.labels.clone_from(&config.labels);
    if config.host.is_some() {
        member = member.advertised(config.advertised(address.port(), address.ip()));
    }
    if let Some(len) = frame_len_max {
        member = member.frame_len_max(len);
    }
    let member = Member::bind(member).map_err(failed)?;
    Ok((member, authority))
}

impl Others for Arc<Nodes> {
    fn has(&self, node: u64) -> bool {
        self.member.has(Incarnation(node))
    }
}

impl Nodes {
    /// A node of a chat; see [`bind`].
    pub(crate) fn bind(config: &ClusterConfig) -> Result<Self, NodeError> {
        let (member, authority) = bind(config, None)?;
        Ok(Self { member, authority: Mutex::new(Some(authority)), known: Mutex::default() })
    }

    /// For the node that is built.
    pub(crate) fn way(&self) -> Arc<dyn Cluster> {
        self.member.way()
    }

    /// Becomes one of the cluster's nodes.
    pub(crate) async fn join(&self) -> Result<(), NodeError> {
        Ok(self.member.join().await?)
    }

    /// Whether it has its lease.
    pub(crate) fn is_serving(&self) -> bool {
        *self.member.state().borrow() == State::Serving
    }

    /// On which node an actor lives, as far as is known here.
    pub(crate) fn owner_of(&self, id: &ActorId) -> Option<Incarnation> {
        self.member.owner_of(id)
    }

    /// Resolves once what other nodes publish reaches this one's subscribers.
    pub(crate) async fn heard<T: Send + Sync + 'static>(
        &self,
        topic: &Topic<T>,
    ) -> Result<(), NotHeard> {
        match timeout(HEARD_TIMEOUT, self.member.subscribed(topic)).await {
            Ok(heard) => Ok(heard?),
            Err(_) => Err(NotHeard::Late),
        }
    }

    /// How things stand now, for those who have connections of other nodes, or rooms there.
    pub(crate) fn moved(&self) -> Moved {
        let members = self.member.view().members;
        let members: Vec<u64> = members.iter().map(|member| member.incarnation.0).collect();
        let before = std::mem::replace(&mut *self.known.lock(), members.clone());
        let has_lost = before.iter().any(|node| !members.contains(node));
        Moved { members, has_lost }
    }

    /// How many other nodes there are.
    pub(crate) fn others(&self) -> usize {
        self.member.view().members.len().saturating_sub(1)
    }

    /// The number of the cluster's view, and each change of it.
    pub(crate) fn views(&self) -> tokio::sync::watch::Receiver<u64> {
        self.member.views()
    }

    /// Resolves when the others have given this node up: it runs nothing any more.
    pub(crate) async fn evicted(&self) {
        let mut state = self.member.state();
        if state.wait_for(|state| *state == State::Evicted).await.is_err() {
            std::future::pending().await
        }
    }

    /// Hands rooms and users over to the other nodes, and ends.
    pub(crate) async fn leave(&self, deadline: Duration) -> ShutdownReport {
        let report = self.member.leave(deadline).await;
        let authority = self.authority.lock().take();
        if let Some(authority) = authority {
            authority.resign().await;
        }
        report
    }
}

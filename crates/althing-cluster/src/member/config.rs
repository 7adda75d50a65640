//! What a node is told of the cluster that it joins, and what part it takes there.

use std::net::SocketAddr;
use std::time::Duration;

use crate::record::Stage;
use crate::tls::Tls;

/// Longest frame between two nodes by default: one message with its addresses.
pub(crate) const FRAME_LEN_MAX_DEFAULT: usize = 4 << 20;

/// What nodes say to each other of themselves, members of groups and refusals among it, is shorter.
/// It would be left out without a word where it did not fit.
const FRAME_LEN_MIN: usize = 8 << 10;

/// How long a joining node waits by default: six leases of the default length. A former node of its
/// name keeps that for little more than one, for up to two if the leader died with it, and for up to
/// four if the next leader did so, too.
const JOIN_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// What part a node takes in a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Its share of the cluster's actors lives on it.
    #[default]
    Host,
    /// It reaches every actor and publishes and hears like the others, but none of the actors that
    /// the cluster places lives on it: what holds connections can come and go without a move.
    Guest,
}

impl Role {
    /// With which stage a node of this role becomes a member.
    pub(super) fn stage(self) -> Stage {
        match self {
            Self::Host => Stage::Active,
            Self::Guest => Stage::Guest,
        }
    }
}

/// How a node takes part.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberConfig {
    /// Name of the cluster; a node or authority of another one is refused.
    pub cluster: String,
    /// Name of the node; no two members have one. Its buckets follow from it.
    pub name: String,
    /// Whether actors live on it.
    pub role: Role,
    /// What it says of itself, such as `region=eu` and `disk=ssd`: kinds that ask for labels live on
    /// nodes that have all of them.
    pub labels: Vec<String>,
    /// Where other nodes connect.
    pub listen: SocketAddr,
    /// The address that is told to other nodes, if it is not the one listened at.
    pub advertised: Option<String>,
    /// Where the authority is; where several processes may be it, some of them. Each is a host and
    /// a port. One that does not lead names the one that does. A host with several addresses, like a
    /// headless service of Kubernetes, stands for all of them.
    pub authorities: Vec<String>,
    /// Longest frame that the node sends or reads; it is read by its own runtime, which needs I/O.
    /// A message that is longer than the limit of either side fails its ask. 4 MiB by default, and at
    /// least 8,192 bytes.
    pub frame_len_max: usize,
    /// How long `join` waits: 30 s by default, six leases of the default length. A cluster with longer
    /// leases needs more: a former node of the same name keeps that for up to two of them, if the
    /// leader died with it. No time is enough while the authority's store is away.
    pub join_timeout: Duration,
    /// The node's certificate, of the same authority as those of the others, or plaintext like theirs.
    pub tls: Tls,
}

impl MemberConfig {
    /// A node of that name that listens on any port of 127.0.0.1.
    pub fn new(
        cluster: impl Into<String>,
        name: impl Into<String>,
        authority: impl Into<String>,
        tls: Tls,
    ) -> Self {
        Self {
            cluster: cluster.into(),
            name: name.into(),
            role: Role::Host,
            labels: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertised: None,
            authorities: vec![authority.into()],
            frame_len_max: FRAME_LEN_MAX_DEFAULT,
            join_timeout: JOIN_TIMEOUT_DEFAULT,
            tls,
        }
    }

    /// Sets where processes are that may be the authority. A process that is one itself names itself
    /// among them, and needs no other.
    #[must_use]
    pub fn authorities<A: Into<String>>(mut self, addresses: impl IntoIterator<Item = A>) -> Self {
        self.authorities = addresses.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether actors live on the node.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Adds a label, `key=value`.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.labels.push(label.into());
        self
    }

    /// Sets where other nodes connect.
    #[must_use]
    pub fn listen(mut self, listen: SocketAddr) -> Self {
        self.listen = listen;
        self
    }

    /// Sets the address that is told to other nodes.
    #[must_use]
    pub fn advertised(mut self, address: impl Into<String>) -> Self {
        self.advertised = Some(address.into());
        self
    }

    /// Sets the length of the longest frame, in bytes; at least 8,192.
    #[must_use]
    pub fn frame_len_max(mut self, bytes: usize) -> Self {
        self.frame_len_max = bytes;
        self
    }

    /// # Errors
    /// Frames are too short for what nodes have to say to each other.
    pub(super) fn check_frame_len(&self) -> Result<(), String> {
        let len = self.frame_len_max;
        if len >= FRAME_LEN_MIN {
            return Ok(());
        }
        Err(format!("a node reads frames of at least {FRAME_LEN_MIN} bytes, and this one {len}"))
    }

    /// Sets how long `join` waits.
    #[must_use]
    pub fn join_timeout(mut self, timeout: Duration) -> Self {
        self.join_timeout = timeout;
        self
    }
}

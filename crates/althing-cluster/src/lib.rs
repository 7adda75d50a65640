//! Althing actors on several processes: one actor for each name, reached from every node.
//!
//! An [`Authority`] keeps who is a member and who owns which of 4,096 buckets of names; it gives
//! each node a lease. A [`Member`] is one node's side: it holds the lease, follows the authority's
//! record, carries messages over ordered links, and hands buckets over when nodes come and go. A
//! node whose lease has run out freezes; one that was evicted ends. Connections are mutually
//! authenticated and encrypted, unless [`Tls::insecure_plaintext`] was asked for.
//!
//! What it promises stands in `docs/guarantees/cluster.md`.

mod authority;
mod bucket;
mod capability;
#[cfg(feature = "certificates")]
mod certificates;
mod client;
mod clock;
mod farewell;
mod label;
mod lease;
mod link;
mod member;
mod placement;
mod protocol;
mod record;
mod relay;
mod roster;
mod router;
#[cfg(test)]
mod simulation;
mod tls;
mod transport;
mod waiters;
mod worker;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/src/cluster.md")]
mod guide {}

pub use authority::{Authority, AuthorityConfig, LEASE_DEFAULT, RecordStore};
pub use capability::Capability;
#[cfg(feature = "certificates")]
pub use certificates::{CertificateAuthority, CertificateError, Certified};
pub use client::{
    Changes, Client, ClientConfig, ClientError, Found, FoundActor, Listed, NodeStatus,
};
pub use label::check_labels;
pub use member::{
    GroupError, JoinError, Member, MemberConfig, MoveError, Neighbour, Role, SharedGroup, State,
    TopicError, View,
};
pub use tls::{Refusals, RefusedFor, Tls};

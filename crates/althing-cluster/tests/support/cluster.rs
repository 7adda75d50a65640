//! A cluster whose nodes are in the test's own process.

use althing::{Node, NodeBuilder};
use althing_cluster::{Authority, Member, MemberConfig, Tls};

/// An authority, and the directory that has to outlive it.
pub(crate) struct Cluster {
    _directory: tempfile::TempDir,
    pub(crate) authority: Authority,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let (_directory, authority) = super::authority();
        Self { _directory, authority }
    }

    /// That of a node.
    pub(crate) fn config(&self, name: &str) -> MemberConfig {
        let authority = self.authority.address().to_string();
        MemberConfig::new("test", name, authority, Tls::insecure_plaintext())
    }
}

/// A node that has not joined yet, with what `knows` adds.
pub(crate) fn bound(
    config: MemberConfig,
    knows: impl FnOnce(NodeBuilder) -> NodeBuilder,
) -> (Member, Node) {
    let name = config.name.clone();
    let member = Member::bind(config).expect("a port");
    let node = knows(Node::builder(name).cluster(member.way())).build();
    (member, node)
}

/// The same of a node that has joined.
pub(crate) async fn joined(
    config: MemberConfig,
    knows: impl FnOnce(NodeBuilder) -> NodeBuilder,
) -> (Member, Node) {
    let (member, node) = bound(config, knows);
    member.join().await.expect("nobody has the name");
    (member, node)
}

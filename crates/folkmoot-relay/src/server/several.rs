//! What a relay does beyond that if it is one of several nodes.

use std::sync::{Arc, OnceLock};

use althing::{ActorError, Node, NodeBuilder, Start};
use althing_cluster::Member;

use super::Server;
use crate::channels::{Hub, Owner};
use crate::nodes::{NodeError, Nodes, Site, wake_owners};
use crate::owners::Owners;
use crate::rules::Rules;
use crate::settings::{ClientSettings, ConsumerSettings, SettingsError};

/// Makes the relay one of its cluster's nodes, before anybody can ask it for anything.
pub(super) async fn join(server: &Arc<Server>, nodes: &Arc<Nodes>) -> Result<(), NodeError> {
    let (known, of) = (Arc::downgrade(server), nodes.clone());
    let shards = server.hub.shards().clone();
    let site = server.node.spawn_with(move |_: Start<Site>| {
        let site = Site::new(known.clone(), of.clone(), shards.clone());
        async move { Ok(site) }
    });
    nodes.be_reached_by(site);
    nodes.join().await?;
    let (views, me) = (nodes.views(), server.node.incarnation().0);
    tokio::spawn(wake_owners(Arc::downgrade(nodes), views, me));
    Ok(())
}

/// Builds the node with the owners of channels that live on it, and the way to the others.
pub(super) fn node_of(
    node: NodeBuilder,
    owners: &Owners,
    member: Arc<Member>,
) -> Result<(Node, Hub), NodeError> {
    let known = Arc::new(OnceLock::<Arc<Nodes>>::new());
    let nodes = known.clone();
    let node = node.cluster(member.way()).actor(move |start: Start<Owner>| {
        let owner = match nodes.get() {
            Some(nodes) => Owner::new(&start, nodes.clone()),
            None => Err(ActorError::new("this node is being built")),
        };
        async move { owner }
    });
    let node = node.build();
    let nodes = Arc::new(Nodes::new(member, &node)?);
    known.get_or_init(|| nodes.clone());
    owners.are_on(nodes.clone());
    let hub = Hub::new(&node).across(nodes);
    Ok((node, hub))
}

/// Whether several nodes can keep what the settings promise.
pub(super) fn shareable(rules: &Rules, client: &ClientSettings) -> Result<(), SettingsError> {
    if let Some(namespace) = rules.durable() {
        let text = format!(
            "{namespace}: durable_history is for a relay without --cluster-name: it is kept on the \
             disk of one node"
        );
        return Err(SettingsError::Invalid(text));
    }
    let personal = &client.subscribe_to_user_personal_channel;
    if personal.enabled && personal.single_connection {
        let text = "client.subscribe_to_user_personal_channel.single_connection is for a relay \
                    without --cluster-name: a node ends none of another's connections for a new one";
        return Err(SettingsError::Invalid(text.to_owned()));
    }
    Ok(())
}

/// Whether nodes with the same settings can be told apart where they consume.
pub(super) fn distinct(consumers: &[ConsumerSettings]) -> Result<(), SettingsError> {
    let named = consumers.iter().find(|one| one.enabled && !one.kafka.instance_id.is_empty());
    let Some(ConsumerSettings { name, .. }) = named else { return Ok(()) };
    let text = format!(
        "consumer `{name}`: kafka.instance_id is for a relay without --cluster-name: nodes with the \
         same one would take each other's partitions"
    );
    Err(SettingsError::Invalid(text))
}

//! `folkmoot relay`: channels for a backend that has users and messages already.
//!
//! The work is done by [`folkmoot_relay`]; this is what an administrator says and sees, and how a
//! relay becomes one of several nodes: by the settings that a chat has for it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use althing_cluster::Authority;
use folkmoot_relay::{Relay, Settings};

use crate::config::{Config, NodeRole};
use crate::nodes;

/// The longest message between two relays: what a backend asks for in one request, which may have
/// 32 MiB, and as much again for what goes with each channel.
const FRAME_LEN_MAX: usize = 64 << 20;

/// How a relay is run.
#[derive(Debug, clap::Args)]
pub struct RelayFlags {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8000")]
    pub at: SocketAddr,
    /// File with keys and namespaces, in TOML or JSON; see docs/relay.md
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
}

/// A relay that is up, perhaps one node of several.
#[derive(Debug)]
pub struct RunningRelay {
    relay: Relay,
    /// `None`: it is alone.
    authority: Option<Authority>,
}

/// Reads the settings, listens and serves.
///
/// # Errors
/// The settings are invalid, the address is taken, or the other nodes do not take this one.
pub async fn start(flags: RelayFlags, config: &Config) -> anyhow::Result<RunningRelay> {
    let settings = match &flags.settings {
        Some(path) => Settings::read(path)?,
        None => Settings::default(),
    };
    let Some(cluster) = &config.cluster else {
        let relay = folkmoot_relay::start(settings, flags.at).await?;
        return Ok(RunningRelay { relay, authority: None });
    };
    anyhow::ensure!(
        cluster.role != NodeRole::State,
        "--role state is for a chat: clients of a relay come to each of its nodes"
    );
    let (member, authority) = nodes::bind(cluster, Some(FRAME_LEN_MAX))?;
    let relay = folkmoot_relay::start_as_node(settings, flags.at, Arc::new(member)).await?;
    Ok(RunningRelay { relay, authority: Some(authority) })
}

impl RunningRelay {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.relay.address()
    }

    /// By what its address is called.
    pub fn scheme(&self) -> &'static str {
        self.relay.scheme()
    }

    /// Resolves when the other nodes have given this one up.
    pub async fn evicted(&self) {
        self.relay.evicted().await;
    }

    /// Tells all clients to come back later, hands its channels to the other nodes, and ends.
    pub async fn stop(self) {
        self.relay.stop().await;
        if let Some(authority) = self.authority {
            authority.resign().await;
        }
    }
}

//! `folkmoot relay`: channels for a backend that has users and messages already.
//!
//! The work is done by [`folkmoot_relay`]; this is what an administrator says and sees.

use std::net::SocketAddr;
use std::path::PathBuf;

use folkmoot_relay::{Relay, Settings};

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

/// Reads the settings, listens and serves.
///
/// # Errors
/// The settings are invalid, or the address is taken.
pub async fn start(flags: RelayFlags) -> anyhow::Result<Relay> {
    let settings = match &flags.settings {
        Some(path) => Settings::read(path)?,
        None => Settings::default(),
    };
    Ok(folkmoot_relay::start(settings, flags.at).await?)
}

//! The TOML file: its keys, and what they are where it says nothing.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use folkmoot_gateway::Network;
use serde::Deserialize;

use super::ConfigError;
use super::attachments::AttachmentsSection;
use super::cluster::ClusterSection;
use super::flags::RegistrationFlag;
use super::gateway::GatewaySection;
use super::limits::LimitsSection;
use super::store::StoreText;

/// The TOML file. Unknown keys are an error: a misspelt setting must not pass silently.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) listen: Option<SocketAddr>,
    pub(super) data: Option<PathBuf>,
    pub(super) store: Option<StoreText>,
    pub(super) allow_origin: Vec<String>,
    pub(super) trusted_proxies: Vec<Network>,
    pub(super) registration: Option<RegistrationFlag>,
    pub(super) console: bool,
    pub(super) public_url: Option<String>,
    pub(super) metrics_token: Option<String>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    pub(super) session_days: Option<u64>,
    pub(super) log: Option<String>,
    pub(super) limits: LimitsSection,
    pub(super) gateway: GatewaySection,
    pub(super) idle: IdleSection,
    pub(super) search: SearchSection,
    pub(super) attachments: AttachmentsSection,
    pub(super) cluster: ClusterSection,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct IdleSection {
    pub(super) room_s: u64,
    pub(super) user_s: u64,
}

impl Default for IdleSection {
    fn default() -> Self {
        Self { room_s: 300, user_s: 300 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SearchSection {
    pub(super) enabled: bool,
    pub(super) heap_mib: SearchHeap,
}

impl Default for SearchSection {
    fn default() -> Self {
        Self { enabled: true, heap_mib: SearchHeap(32) }
    }
}

/// Memory of the index's writer, in MiB.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "usize")]
pub(super) struct SearchHeap(pub(super) usize);

impl TryFrom<usize> for SearchHeap {
    type Error = String;

    fn try_from(mib: usize) -> Result<Self, String> {
        // What the index library takes for one thread.
        match mib {
            16..=2_048 => Ok(Self(mib)),
            _ => Err(format!("heap_mib must be between 16 and 2048, not {mib}")),
        }
    }
}

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let invalid = |message| ConfigError::Invalid { path: path.to_owned(), message };
    let file: File = toml::from_str(&text)
        .map_err(|error| invalid(error.to_string().trim_end().replace('\n', " ")))?;
    if file.tls_cert.is_some() != file.tls_key.is_some() {
        return Err(invalid("`tls_cert` and `tls_key` need each other".to_owned()));
    }
    match file.attachments.problem() {
        Some(problem) => Err(invalid(problem)),
        None => Ok(file),
    }
}

//! What can be said on the command line, or by environment variables.

use std::net::SocketAddr;
use std::path::PathBuf;

use folkmoot_gateway::Network;
use folkmoot_protocol::chat::Registration;
use serde::Deserialize;

use super::cluster::ClusterFlags;
use super::store::StoreText;

/// A self-hosted chat server: rooms, direct messages and a durable store in one binary.
#[derive(Debug, Default, clap::Parser)]
#[command(name = "folkmoot", version, about)]
pub struct Flags {
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8000]
    #[arg(long, env = "FOLKMOOT_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Directory that holds everything the server keeps [default: ./data]
    #[arg(long, env = "FOLKMOOT_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where rooms, users and messages are kept: `embedded`, in the data directory, or
    /// `postgres://user:password@host:port/database`, or with its log in Cassandra by
    /// `cassandra://user:password@host:port/keyspace` [default: embedded]
    #[arg(long, env = "FOLKMOOT_STORE", value_name = "STORE", hide_env_values = true)]
    pub store: Option<StoreText>,
    /// TOML file with further settings; see docs/configuration.md
    #[arg(long, env = "FOLKMOOT_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Origin of another web site whose pages may connect, such as `https://chat.example.org`;
    /// may be given several times. Pages served by this server always may
    #[arg(long = "allow-origin", env = "FOLKMOOT_ALLOW_ORIGIN", value_delimiter = ',')]
    pub allow_origin: Vec<String>,
    /// Messages one user may send per second, with bursts of three times as many; 0 is no limit
    /// [default: 10]
    #[arg(long, env = "FOLKMOOT_MESSAGES_PER_SECOND", value_name = "N")]
    pub messages_per_second: Option<u32>,
    /// Reverse proxy in front of the server, as an address or a network such as 10.0.0.0/8; may be
    /// given several times. It is believed about whom it speaks for (X-Forwarded-For)
    #[arg(long = "trusted-proxy", env = "FOLKMOOT_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Vec<Network>,
    /// Who may sign up: everybody, who has an invite, nobody [default: open, or what administrators
    /// have chosen]
    #[arg(long, env = "FOLKMOOT_REGISTRATION", value_enum)]
    pub registration: Option<RegistrationFlag>,
    /// The data was brought back from an earlier time, by a snapshot of the whole disk: clients
    /// fetch history again. A copy of the directory is noticed without it
    #[arg(long)]
    pub restored: bool,
    /// Size of a segment of the log. One is written with zeros at the start, another one before it
    /// is full; smaller ones suit small disks [default: 64]
    #[arg(long, env = "FOLKMOOT_LOG_SEGMENT_MIB", value_name = "MIB")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub log_segment_mib: Option<u64>,
    /// Fills the server with a few rooms and talking bots
    #[arg(long, env = "FOLKMOOT_DEMO")]
    pub demo: bool,
    /// Shows the state of the actors at /console, to this machine and to administrators
    #[arg(long, env = "FOLKMOOT_CONSOLE")]
    pub console: bool,
    /// Where people find the server, such as `https://chat.example.org`; printed links begin with
    /// it
    #[arg(long, env = "FOLKMOOT_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// Token that opens /metrics and /console from other machines, as `Authorization: Bearer`
    #[arg(long, env = "FOLKMOOT_METRICS_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub metrics_token: Option<String>,
    /// File with the server's certificate in PEM, and those that vouch for it: connections are
    /// encrypted
    #[arg(long, env = "FOLKMOOT_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// File with the certificate's private key in PEM. Both are read again when they change
    #[arg(long, env = "FOLKMOOT_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// What to log: error, warn, info, debug, or filters such as folkmoot=debug [default: info]
    #[arg(long, env = "FOLKMOOT_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// One of several nodes.
    #[command(flatten)]
    pub cluster: ClusterFlags,
}

/// Who may make an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum RegistrationFlag {
    /// Everybody.
    Open,
    /// Who was invited to a room.
    Invite,
    /// Nobody.
    Closed,
}

impl From<RegistrationFlag> for Registration {
    fn from(flag: RegistrationFlag) -> Self {
        match flag {
            RegistrationFlag::Open => Self::Open,
            RegistrationFlag::Invite => Self::Invite,
            RegistrationFlag::Closed => Self::Closed,
        }
    }
}

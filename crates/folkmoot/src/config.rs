//! What can be set, and where from: a flag, else its environment variable, else the TOML file,
//! else the default. Only `Config` travels further; nothing else reads the environment.

mod attachments;
mod bounds;
mod cluster;
mod limits;
mod store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use folkmoot_gateway::{Network, Settings, TlsFiles};
use folkmoot_protocol::chat::Registration;
use serde::Deserialize;

use crate::storage::{AddressError, StoreAddress};
use attachments::AttachmentsSection;
use cluster::{ClusterSection, Others};

pub(crate) use attachments::AttachmentConfig;
pub(crate) use cluster::ClusterConfig;
pub use cluster::{ClusterFlags, NodeRole};
pub(crate) use limits::LimitsSection;
pub use store::StoreText;

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

/// Days after which a device that was not seen is signed out: a quarter, as long as a phone may lie
/// in a drawer.
const SESSION_DAYS: u64 = 90;

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

/// The TOML file. Unknown keys are an error: a misspelt setting must not pass silently.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    listen: Option<SocketAddr>,
    data: Option<PathBuf>,
    store: Option<StoreText>,
    allow_origin: Vec<String>,
    trusted_proxies: Vec<Network>,
    registration: Option<RegistrationFlag>,
    console: bool,
    public_url: Option<String>,
    metrics_token: Option<String>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    session_days: Option<u64>,
    log: Option<String>,
    limits: LimitsSection,
    gateway: GatewaySection,
    idle: IdleSection,
    search: SearchSection,
    attachments: AttachmentsSection,
    cluster: ClusterSection,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GatewaySection {
    ping_s: u64,
    pong_timeout_s: u64,
    connect_timeout_s: u64,
    header_timeout_s: u64,
    connections_max: Option<usize>,
    connections_per_address_max: usize,
    connections_per_user_max: usize,
    outgoing_queue_bytes_max: usize,
}

impl Default for GatewaySection {
    fn default() -> Self {
        Self {
            // Below the 30 to 60 s after which home routers forget a connection.
            ping_s: 25,
            pong_timeout_s: 8,
            connect_timeout_s: 10,
            header_timeout_s: 10,
            connections_max: None,
            // An office or a school behind one address.
            connections_per_address_max: 1_000,
            // Some devices with many windows each.
            connections_per_user_max: 100,
            outgoing_queue_bytes_max: 1024 * 1024,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct IdleSection {
    room_s: u64,
    user_s: u64,
}

impl Default for IdleSection {
    fn default() -> Self {
        Self { room_s: 300, user_s: 300 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SearchSection {
    enabled: bool,
    heap_mib: SearchHeap,
}

impl Default for SearchSection {
    fn default() -> Self {
        Self { enabled: true, heap_mib: SearchHeap(32) }
    }
}

/// Memory of the index's writer, in MiB.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "usize")]
struct SearchHeap(usize);

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

/// All settings of one server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The data directory.
    pub data: PathBuf,
    /// Where the data is, if in PostgreSQL or Cassandra; files stay in the data directory.
    pub database: Option<StoreAddress>,
    /// One of several nodes; `None`: a server alone.
    pub(crate) cluster: Option<ClusterConfig>,
    /// Further origins whose pages may connect.
    pub allow_origin: Vec<String>,
    /// Proxies that are believed about whom they speak for.
    pub(crate) trusted_proxies: Vec<Network>,
    /// Who may sign up; `None`: what administrators have chosen.
    pub(crate) registration: Option<Registration>,
    /// The data was brought back from an earlier time.
    pub restored: bool,
    /// `None`: the store's default.
    pub(crate) log_segment_bytes: Option<u64>,
    /// Fill with bots.
    pub demo: bool,
    /// Serve the console.
    pub console: bool,
    /// Where people find the server, without a slash at its end.
    pub public_url: Option<String>,
    pub(crate) metrics_token: Option<String>,
    /// `None`: connections are in the clear.
    pub(crate) tls: Option<TlsFiles>,
    /// A device that was not seen for so long is signed out; `None`: never.
    pub(crate) session_max: Option<Duration>,
    /// The log filter.
    pub log: String,
    pub(crate) limits: LimitsSection,
    pub(crate) gateway: GatewayConfig,
    pub(crate) attachments: AttachmentConfig,
    /// A room without sockets and messages for so long leaves memory.
    pub(crate) room_idle: Duration,
    /// The same for a user.
    pub(crate) user_idle: Duration,
    /// Memory in which the search index gathers words; `None`: there is no search.
    pub(crate) search_heap_bytes: Option<usize>,
}

/// How the server treats its sockets.
#[derive(Debug, Clone)]
pub(crate) struct GatewayConfig {
    pub(crate) ping: Duration,
    pub(crate) pong_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    /// Until the headers of a request must be there, and how long a connection may be quiet
    /// between two requests.
    pub(crate) header_timeout: Duration,
    /// `None`: as many as the system has descriptors for.
    pub(crate) connections_max: Option<usize>,
    pub(crate) connections_per_address_max: usize,
    pub(crate) connections_per_user_max: usize,
    pub(crate) outgoing_queue_bytes_max: usize,
}

impl GatewayConfig {
    /// How each socket is kept.
    pub(crate) fn sockets(&self) -> Settings {
        Settings {
            ping: self.ping,
            pong_timeout: self.pong_timeout,
            connect_timeout: self.connect_timeout,
            outgoing_queue_bytes_max: self.outgoing_queue_bytes_max,
        }
    }
}

/// Whether there are files that the nodes of a cluster share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    OfMessages,
    None,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file named by `--config` cannot be read.
    #[error("cannot read the configuration file {path}: {source}")]
    Unreadable {
        /// As given.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is not what `docs/configuration.md` describes.
    #[error("the configuration file {path} is invalid: {message}")]
    Invalid {
        /// As given.
        path: PathBuf,
        /// Line and reason.
        message: String,
    },
    /// A setting is of the right type, and no server can work with it.
    #[error("`{name}` {text}")]
    Setting {
        /// As in the file.
        name: &'static str,
        /// What it has to be.
        text: String,
    },
    /// `--store` says neither `embedded` nor where a database is.
    #[error("the store is neither `embedded` nor a database: {0}")]
    Store(#[from] AddressError),
    /// A setting of a node of several is missing, or does not go with another one.
    #[error("{flag} {text}")]
    Cluster {
        /// The setting, as on the command line.
        flag: &'static str,
        /// What is wrong with it.
        text: String,
    },
}

impl Config {
    /// Merges flags, file and defaults.
    ///
    /// # Errors
    /// The file is missing, not TOML, or has a key or value that is not known; a setting is one
    /// that no server can work with.
    pub fn load(flags: Flags) -> Result<Self, ConfigError> {
        Self::load_with(flags, Files::OfMessages)
    }

    /// The same for a relay, which has no files of messages that its nodes would share.
    ///
    /// # Errors
    /// See [`Config::load`].
    pub fn load_for_relay(flags: Flags) -> Result<Self, ConfigError> {
        Self::load_with(flags, Files::None)
    }

    fn load_with(mut flags: Flags, files: Files) -> Result<Self, ConfigError> {
        let mut file = match &flags.config {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let store = flags.store.as_ref().or(file.store.as_ref());
        let database = store.and_then(StoreText::database).transpose()?;
        let others = Others {
            store: store.and_then(StoreText::address),
            has_own_attachments: files == Files::OfMessages
                && flags.cluster.attachments.is_none()
                && !file.attachments.has_directory(),
            is_demo: flags.demo,
            is_restored: flags.restored,
        };
        let attachments = flags.cluster.attachments.take();
        let (given, section) =
            (std::mem::take(&mut flags.cluster), std::mem::take(&mut file.cluster));
        let cluster = cluster::merge(given, section, &others)?;
        let mut config = Self { database, cluster, ..Self::merge(flags, file) };
        if let Some(directory) = attachments {
            config.attachments.directory = directory;
        }
        config.attachments.is_shared = config.cluster.is_some();
        bounds::check(&config)?;
        Ok(config)
    }

    /// The data directory.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    fn merge(flags: Flags, file: File) -> Self {
        let File { listen, data, console, log, gateway, idle, search, attachments, .. } = file;
        let mut allow_origin = file.allow_origin;
        allow_origin.extend(flags.allow_origin);
        let mut trusted_proxies = file.trusted_proxies;
        trusted_proxies.extend(flags.trusted_proxies);
        let registration = flags.registration.or(file.registration).map(Registration::from);
        let mut limits = file.limits;
        if let Some(per_second) = flags.messages_per_second {
            (limits.messages_per_second, limits.message_burst) = (per_second, None);
        }
        let data = flags.data.or(data).unwrap_or_else(|| PathBuf::from("data"));
        Self {
            listen: flags.listen.or(listen).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8000))),
            attachments: attachments.within(&data),
            data,
            database: None,
            cluster: None,
            allow_origin,
            trusted_proxies,
            registration,
            restored: flags.restored,
            log_segment_bytes: flags.log_segment_mib.map(|mib| mib << 20),
            demo: flags.demo,
            console: flags.console || console,
            public_url: flags
                .public_url
                .or(file.public_url)
                .map(|url| url.trim_end_matches('/').to_owned()),
            session_max: match file.session_days.unwrap_or(SESSION_DAYS) {
                0 => None,
                days => Some(Duration::from_secs(days.saturating_mul(24 * 60 * 60))),
            },
            tls: tls_files(flags.tls_cert.or(file.tls_cert), flags.tls_key.or(file.tls_key)),
            metrics_token: flags.metrics_token.or(file.metrics_token),
            log: flags.log.or(log).unwrap_or_else(|| "info".to_owned()),
            limits,
            gateway: GatewayConfig {
                ping: Duration::from_secs(gateway.ping_s),
                pong_timeout: Duration::from_secs(gateway.pong_timeout_s),
                connect_timeout: Duration::from_secs(gateway.connect_timeout_s),
                header_timeout: Duration::from_secs(gateway.header_timeout_s),
                connections_max: gateway.connections_max,
                connections_per_address_max: gateway.connections_per_address_max,
                connections_per_user_max: gateway.connections_per_user_max,
                outgoing_queue_bytes_max: gateway.outgoing_queue_bytes_max,
            },
            room_idle: Duration::from_secs(idle.room_s),
            user_idle: Duration::from_secs(idle.user_s),
            search_heap_bytes: search.enabled.then_some(search.heap_mib.0 << 20),
        }
    }
}

/// Both or neither: flags and the file are checked for that.
fn tls_files(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Option<TlsFiles> {
    certificate.zip(key).map(|(certificate, key)| TlsFiles { certificate, key })
}

fn read(path: &Path) -> Result<File, ConfigError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit::Rate;

    fn file(text: &str) -> Result<File, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let text = "listen = '127.0.0.1:1'\ndata = 'there'\n[limits]\nmessages_per_second = 5";
        let flags = Flags { data: Some("here".into()), ..Flags::default() };
        let config = Config::merge(flags, file(text).unwrap());
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.data, PathBuf::from("here"));
        assert_eq!(config.limits.message_rate(), Rate::per_second(5, 15));
        let plain = Config::merge(Flags::default(), File::default());
        assert_eq!(plain.listen.to_string(), "127.0.0.1:8000");
        assert_eq!(plain.limits.message_rate(), Rate::per_second(10, 30));
    }

    #[test]
    fn a_misspelt_setting_is_named() {
        let error = file("[limits]\nmesages_per_second = 5").err().unwrap();
        assert!(error.contains("mesages_per_second"), "{error}");
    }

    #[test]
    fn a_store_is_embedded_or_a_database_and_no_error_has_its_password() {
        let load = |store: &str| {
            Config::load(Flags { store: Some(store.parse().unwrap()), ..Flags::default() })
        };
        assert_eq!(load("embedded").unwrap().database, None);
        let there = load("postgres://ana:hush@db:5433/chat").unwrap();
        assert_eq!(there.database.as_ref().unwrap().to_string(), "postgres://ana@db:5433/chat");
        assert!(!format!("{there:?}").contains("hush"));
        let error = load("postgres://ana:hush@:x/chat").unwrap_err().to_string();
        assert!(error.contains("store") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let flags = Flags { config: Some("/nowhere.toml".into()), ..Flags::default() };
        let error = Config::load(flags).unwrap_err().to_string();
        assert!(error.contains("/nowhere.toml"), "{error}");
    }
}

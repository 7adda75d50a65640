//! What can be set, and where from: a flag, else its environment variable, else the TOML file,
//! else the default. Only `Config` travels further; nothing else reads the environment.

mod attachments;
mod bounds;
mod cluster;
mod file;
mod flags;
mod gateway;
mod limits;
mod store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use folkmoot_gateway::{Network, TlsFiles};
use folkmoot_protocol::chat::Registration;

use crate::storage::{AddressError, StoreAddress};
use cluster::Others;
use file::File;

pub(crate) use attachments::AttachmentConfig;
pub(crate) use cluster::ClusterConfig;
pub use cluster::{ClusterFlags, NodeRole};
pub use flags::{Flags, RegistrationFlag};
pub(crate) use gateway::GatewayConfig;
pub(crate) use limits::LimitsSection;
pub use store::StoreText;

/// Days after which a device that was not seen is signed out: a quarter, as long as a phone may lie
/// in a drawer.
const SESSION_DAYS: u64 = 90;

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
            Some(path) => file::read(path)?,
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
            gateway: gateway.into(),
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

//! What an operator sets, in TOML or JSON with the names that Centrifugo's configuration has, so
//! that a file can be taken over. A name that is not known is an error: a misspelt setting must not
//! pass silently.

mod api;
mod bounds;
mod encryption;
mod grpc;
mod kafka;
mod keys;
mod listening;
mod proxies;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

pub(crate) use api::{ApiSettings, ErrorMode};
pub(crate) use encryption::{HttpServerSettings, ListenerTls};
pub(crate) use grpc::GrpcSettings;
pub(crate) use kafka::KafkaSettings;
#[cfg(feature = "kafka")]
pub(crate) use kafka::{KafkaTls, PublicationDataMode};
pub(crate) use keys::KeySettings;
pub(crate) use listening::{Listening, PersonalChannel, UniSettings};
pub(crate) use proxies::{ChannelProxies, ClientProxies, ProxySettings, RpcSettings, TlsSettings};

/// All settings of a relay.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub(crate) client: ClientSettings,
    pub(crate) channel: ChannelSettings,
    pub(crate) http_server: HttpServerSettings,
    pub(crate) http_api: ApiSettings,
    pub(crate) grpc_api: GrpcSettings,
    pub(crate) prometheus: MetricsSettings,
    pub(crate) rpc: RpcSettings,
    pub(crate) consumers: Vec<ConsumerSettings>,
    pub(crate) uni_websocket: UniSettings,
    pub(crate) uni_http_stream: UniSettings,
    pub(crate) uni_sse: UniSettings,
    pub(crate) tls: TlsSettings,
}

/// Of connections.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClientSettings {
    pub(crate) token: TokenSettings,
    /// For subscription tokens; absent: as for connections.
    pub(crate) subscription_token: Option<TokenSettings>,
    /// Origins of pages that may connect; `*` is any.
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) allow_anonymous_connect_without_token: bool,
    pub(crate) channel_limit: usize,
    pub(crate) user_connection_limit: usize,
    /// Bytes that may wait for one connection.
    pub(crate) queue_max_size: usize,
    pub(crate) ping_interval: Span,
    pub(crate) pong_timeout: Span,
    /// For the connect command.
    pub(crate) stale_close_delay: Span,
    /// How long a client may take to renew what has expired.
    pub(crate) expired_close_delay: Span,
    pub(crate) expired_sub_close_delay: Span,
    pub(crate) subscribe_to_user_personal_channel: PersonalChannel,
    pub(crate) proxy: ClientProxies,
}

/// How tokens are checked.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TokenSettings {
    pub(crate) hmac_secret_key: String,
    /// PEM.
    pub(crate) rsa_public_key: String,
    /// PEM.
    pub(crate) ecdsa_public_key: String,
    /// PEM, Ed25519.
    pub(crate) eddsa_public_key: String,
    /// `http://…` or `https://…`, for tokens that name their key.
    pub(crate) jwks_public_endpoint: String,
    pub(crate) audience: String,
    pub(crate) issuer: String,
}

/// Of the page of metrics.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MetricsSettings {
    /// Opens it from other machines; empty: only this one may read it.
    pub(crate) token: String,
}

/// Of a table whose rows are commands of the server API.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsumerSettings {
    pub(crate) name: String,
    #[serde(default = "yes")]
    pub(crate) enabled: bool,
    #[serde(rename = "type")]
    pub(crate) kind: ConsumerKind,
    #[serde(default)]
    pub(crate) postgresql: OutboxSettings,
    #[serde(default)]
    pub(crate) postgresql_cdc: CdcSettings,
    #[serde(default)]
    pub(crate) kafka: KafkaSettings,
}

fn yes() -> bool {
    true
}

/// Where commands come from.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConsumerKind {
    /// A table of PostgreSQL, whose rows are deleted once they are published.
    Postgresql,
    /// What is inserted into a table of PostgreSQL, by logical replication.
    PostgresqlCdc,
    /// Topics of Kafka.
    Kafka,
}

/// The table, and how it is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OutboxSettings {
    /// Of the database: `postgres://user:password@host/name`.
    pub(crate) dsn: String,
    pub(crate) outbox_table_name: String,
    /// Rows of one partition are published one after the other, partitions beside each other.
    pub(crate) num_partitions: u32,
    /// Rows in one transaction.
    pub(crate) partition_select_limit: u32,
    /// How often the table is looked at without being told.
    pub(crate) partition_poll_interval: Span,
    /// Channel of NOTIFY that says that there are rows; empty: none.
    pub(crate) partition_notification_channel: String,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self {
            dsn: String::new(),
            outbox_table_name: "centrifugo_outbox".to_owned(),
            num_partitions: 1,
            partition_select_limit: 500,
            partition_poll_interval: Span(Duration::from_millis(300)),
            partition_notification_channel: String::new(),
        }
    }
}

/// The table, and the slot by which the database knows how far it was read.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CdcSettings {
    /// Of the database, for a user with the right to replicate.
    pub(crate) dsn: String,
    pub(crate) outbox_table_name: String,
    pub(crate) slot_name: String,
    pub(crate) publication_name: String,
}

impl Default for CdcSettings {
    fn default() -> Self {
        Self {
            dsn: String::new(),
            outbox_table_name: "centrifugo_outbox".to_owned(),
            slot_name: "folkmoot_relay".to_owned(),
            publication_name: "folkmoot_relay".to_owned(),
        }
    }
}

/// Of channels.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChannelSettings {
    pub(crate) without_namespace: Namespace,
    pub(crate) namespaces: Vec<NamedNamespace>,
    /// How long offsets outlive the last publication.
    pub(crate) history_meta_ttl: Span,
    /// Publications in one answer.
    pub(crate) history_max_publication_limit: usize,
    pub(crate) recovery_max_publication_limit: usize,
    /// Where durable histories are kept; one process at a time has it.
    pub(crate) history_directory: Option<PathBuf>,
    pub(crate) proxy: ChannelProxies,
}

/// A namespace with its name.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct NamedNamespace {
    pub(crate) name: String,
    #[serde(flatten)]
    options: BTreeMap<String, serde_json::Value>,
}

/// What the channels of one namespace allow.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Namespace {
    pub(crate) presence: bool,
    pub(crate) join_leave: bool,
    pub(crate) force_push_join_leave: bool,
    pub(crate) history_size: usize,
    /// Whether histories are on disk before anybody hears of them.
    pub(crate) durable_history: bool,
    pub(crate) history_ttl: Span,
    pub(crate) history_meta_ttl: Option<Span>,
    pub(crate) force_positioning: bool,
    pub(crate) allow_positioning: bool,
    pub(crate) force_recovery: bool,
    pub(crate) allow_recovery: bool,
    pub(crate) force_recovery_mode: RecoveryMode,
    pub(crate) allowed_delta_types: Vec<DeltaType>,
    /// Whether all publications may go out as deltas.
    pub(crate) delta_publish: bool,
    pub(crate) allow_subscribe_for_client: bool,
    pub(crate) allow_subscribe_for_anonymous: bool,
    pub(crate) allow_publish_for_subscriber: bool,
    pub(crate) allow_publish_for_client: bool,
    pub(crate) allow_publish_for_anonymous: bool,
    pub(crate) allow_history_for_subscriber: bool,
    pub(crate) allow_history_for_client: bool,
    pub(crate) allow_history_for_anonymous: bool,
    pub(crate) allow_presence_for_subscriber: bool,
    pub(crate) allow_presence_for_client: bool,
    pub(crate) allow_presence_for_anonymous: bool,
    pub(crate) allow_user_limited_channels: bool,
    /// Whether a subscriber may say by their tags which publications it wants.
    pub(crate) allow_tags_filter: bool,
    pub(crate) subscribe_proxy_enabled: bool,
    pub(crate) publish_proxy_enabled: bool,
    pub(crate) sub_refresh_proxy_enabled: bool,
    /// What the part of the name after the namespace must match.
    pub(crate) channel_regex: String,
}

/// What a client that was away gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RecoveryMode {
    /// All publications that it missed.
    #[default]
    Stream,
    /// The newest one.
    Cache,
}

/// Kinds of deltas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DeltaType {
    Fossil,
}

/// A duration such as `300s`, `1m30s` or `720h`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the settings {path}: {source}")]
    Unreadable {
        /// As given.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is not what the documentation describes.
    #[error("the settings are invalid: {0}")]
    Invalid(String),
}

impl Default for ClientSettings {
    fn default() -> Self {
        let seconds = |seconds| Span(Duration::from_secs(seconds));
        Self {
            token: TokenSettings::default(),
            subscription_token: None,
            allowed_origins: Vec::new(),
            allow_anonymous_connect_without_token: false,
            channel_limit: 128,
            user_connection_limit: 128,
            queue_max_size: 1 << 20,
            ping_interval: seconds(25),
            pong_timeout: seconds(8),
            stale_close_delay: seconds(10),
            expired_close_delay: seconds(25),
            expired_sub_close_delay: seconds(25),
            subscribe_to_user_personal_channel: PersonalChannel::default(),
            proxy: ClientProxies::default(),
        }
    }
}

impl Default for ChannelSettings {
    fn default() -> Self {
        Self {
            without_namespace: Namespace::default(),
            namespaces: Vec::new(),
            history_meta_ttl: Span(Duration::from_secs(30 * 24 * 60 * 60)),
            history_max_publication_limit: 300,
            recovery_max_publication_limit: 300,
            history_directory: None,
            proxy: ChannelProxies::default(),
        }
    }
}

impl NamedNamespace {
    /// Its options; a name that is not known is an error, which `flatten` alone would pass over.
    pub(crate) fn options(&self) -> Result<Namespace, SettingsError> {
        let options = serde_json::to_value(&self.options).and_then(serde_json::from_value);
        let named = |error| SettingsError::Invalid(format!("namespace `{}`: {error}", self.name));
        options.map_err(named)
    }
}

impl Settings {
    /// Reads a file: JSON if its name ends with `.json`, TOML otherwise.
    ///
    /// # Errors
    /// The file cannot be read, or says something that is not known.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        match is_json {
            true => Self::from_json(&text),
            false => Self::from_toml(&text),
        }
    }

    /// Reads TOML.
    ///
    /// # Errors
    /// It says something that is not known.
    pub fn from_toml(text: &str) -> Result<Self, SettingsError> {
        toml::from_str(text).map_err(|error| invalid(&error))
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// It says something that is not known.
    pub fn from_json(text: &str) -> Result<Self, SettingsError> {
        serde_json::from_str(text).map_err(|error| invalid(&error))
    }
}

fn invalid(error: &dyn std::fmt::Display) -> SettingsError {
    SettingsError::Invalid(error.to_string().trim_end().replace('\n', " "))
}

impl Span {
    pub(crate) fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl std::str::FromStr for Span {
    type Err = String;

    /// Numbers with units, as Go writes them.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no duration such as 300s, 1m30s or 720h");
        let mut rest = text;
        let mut total = Duration::ZERO;
        while !rest.is_empty() {
            let digits = rest.find(|byte: char| !byte.is_ascii_digit()).ok_or_else(wrong)?;
            let number: u32 = rest[..digits].parse().map_err(|_| wrong())?;
            let unit_end = rest[digits..].find(|byte: char| byte.is_ascii_digit());
            let unit_end = unit_end.map_or(rest.len(), |end| digits + end);
            let unit = match &rest[digits..unit_end] {
                "ms" => Duration::from_millis(1),
                "s" => Duration::from_secs(1),
                "m" => Duration::from_secs(60),
                "h" => Duration::from_secs(3_600),
                "d" => Duration::from_secs(86_400),
                _ => return Err(wrong()),
            };
            let part = unit.checked_mul(number).ok_or_else(wrong)?;
            total = total.checked_add(part).ok_or_else(wrong)?;
            rest = &rest[unit_end..];
        }
        Ok(Self(total))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let seconds = |text: &str| text.parse::<Span>().map(|span| span.0.as_secs());
        assert_eq!(seconds("300s"), Ok(300));
        assert_eq!(seconds("1h1m1s"), Ok(3_661));
        assert_eq!(seconds("720h"), Ok(720 * 3_600));
        for wrong in ["300", "s", "1w", "1.5s", "-1s", "99999999999h"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
        assert!("4294967295d".repeat(60_000).parse::<Span>().is_err(), "no clock counts so far");
    }

    #[test]
    fn the_same_settings_are_read_from_toml_and_json() {
        let toml = "[[channel.namespaces]]\nname = 'chat'\nhistory_size = 10\nhistory_ttl = '60s'";
        let json = r#"{"channel":{"namespaces":[
            {"name":"chat","history_size":10,"history_ttl":"60s"}]}}"#;
        for settings in [Settings::from_toml(toml), Settings::from_json(json)] {
            let namespace = settings.unwrap().channel.namespaces[0].options().unwrap();
            assert_eq!(namespace.history_size, 10);
            assert_eq!(namespace.history_ttl.0, Duration::from_secs(60));
        }
    }

    #[test]
    fn a_misspelt_setting_is_named() {
        let error = Settings::from_toml("[client]\nchannels_limit = 1").unwrap_err().to_string();
        assert!(error.contains("channels_limit"), "{error}");
        let text = "[[channel.namespaces]]\nname = 'chat'\nhistory_length = 10";
        let namespaces = Settings::from_toml(text).unwrap().channel.namespaces;
        let error = namespaces[0].options().unwrap_err().to_string();
        assert!(error.contains("chat") && error.contains("history_length"), "{error}");
    }
}

//! Settings of a consumer of Kafka, with the names that Centrifugo's configuration has.

use std::time::Duration;

use serde::Deserialize;

use super::Span;

/// The topics, and how they are read.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(not(feature = "kafka"), allow(dead_code))] // Read all the same: a wrong name is an error.
pub(crate) struct KafkaSettings {
    /// Some brokers of the cluster, each `host:port`; they know the others.
    pub(crate) brokers: Vec<String>,
    pub(crate) topics: Vec<String>,
    /// Relays with the same one share the partitions.
    pub(crate) consumer_group: String,
    /// By which the group knows a relay again that was away for a moment; empty: it does not.
    pub(crate) instance_id: String,
    /// Records of one partition that are published together.
    pub(crate) max_poll_records: usize,
    /// In one answer of a broker.
    pub(crate) fetch_max_bytes: u32,
    /// How long a broker waits for records before it answers that there are none.
    pub(crate) fetch_max_wait: Span,
    /// Whether records of transactions are published that may be taken back.
    pub(crate) fetch_read_uncommitted: bool,
    pub(crate) tls: KafkaTls,
    /// `plain`, `scram-sha-256`, `scram-sha-512`; empty: none.
    pub(crate) sasl_mechanism: String,
    pub(crate) sasl_user: String,
    pub(crate) sasl_password: String,
    /// The header that names a method; a record that has it is the method's request by itself.
    pub(crate) method_header: String,
    pub(crate) publication_data_mode: PublicationDataMode,
    /// Where records go that cannot be published, with the reason; empty: only the log tells of them.
    pub(crate) failed_topic: String,
}

impl Default for KafkaSettings {
    fn default() -> Self {
        Self {
            brokers: Vec::new(),
            topics: Vec::new(),
            consumer_group: String::new(),
            instance_id: String::new(),
            max_poll_records: 100,
            fetch_max_bytes: 50 << 20,
            fetch_max_wait: Span(Duration::from_millis(500)),
            fetch_read_uncommitted: false,
            tls: KafkaTls::default(),
            sasl_mechanism: String::new(),
            sasl_user: String::new(),
            sasl_password: String::new(),
            method_header: "centrifugo-method".to_owned(),
            publication_data_mode: PublicationDataMode::default(),
            failed_topic: String::new(),
        }
    }
}

/// Encryption to the brokers. What is in PEM is a file, or the PEM itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(not(feature = "kafka"), allow(dead_code))]
pub(crate) struct KafkaTls {
    pub(crate) enabled: bool,
    /// Who vouches for the brokers; empty: the system's authorities.
    pub(crate) server_ca_pem: String,
    /// By which the brokers know this relay.
    pub(crate) cert_pem: String,
    pub(crate) key_pem: String,
    pub(crate) insecure_skip_verify: bool,
}

/// Records whose value is the data of a publication, and whose headers say the rest.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(not(feature = "kafka"), allow(dead_code))]
pub(crate) struct PublicationDataMode {
    pub(crate) enabled: bool,
    /// Names of headers; one without a name is not looked for. Channels have commas between them.
    pub(crate) channels_header: String,
    pub(crate) idempotency_key_header: String,
    pub(crate) delta_header: String,
    pub(crate) version_header: String,
    pub(crate) version_epoch_header: String,
    /// With what the names of headers begin whose values are tags.
    pub(crate) tags_header_prefix: String,
}

impl Default for PublicationDataMode {
    fn default() -> Self {
        Self {
            enabled: false,
            channels_header: "centrifugo-channels".to_owned(),
            idempotency_key_header: "centrifugo-idempotency-key".to_owned(),
            delta_header: "centrifugo-delta".to_owned(),
            version_header: "centrifugo-version".to_owned(),
            version_epoch_header: "centrifugo-version-epoch".to_owned(),
            tags_header_prefix: "centrifugo-tag-".to_owned(),
        }
    }
}

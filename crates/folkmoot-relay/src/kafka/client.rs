//! The client library's settings, from the operator's.

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::BaseConsumer;

use crate::settings::{KafkaSettings, KafkaTls};

/// How long the group may hear nothing of a relay before others get its partitions: the shortest
/// time that brokers allow unless they are told otherwise.
const SESSION_TIMEOUT_MS: u32 = 6_000;
const HEARTBEAT_MS: u32 = 2_000;
/// Between two attempts to reach a broker, which doubles from the first to the second.
const RECONNECT_MIN_MS: u32 = 100;
const RECONNECT_MAX_MS: u32 = 5_000;
/// Records and kibibytes of each partition that are fetched ahead. Both count, and one answer of a
/// broker may exceed them, by a mebibyte or by one batch of records that is larger.
const AHEAD_LEN: u32 = 1_000;
const AHEAD_KIB: u32 = 4_096;
const ANSWER_BYTES: u32 = 1 << 20;
/// How soon more is fetched once there is room.
const ROOM_LOOK_MS: u32 = 20;
/// How often new topics and partitions are looked for.
const METADATA_MS: u32 = 10_000;
/// How often lag and brokers are told, for the metrics.
const STATISTICS_MS: u32 = 1_000;

/// Names of topics that Kafka takes.
const TOPIC_BYTES_MAX: usize = 249;
/// More at once would be no batch.
const POLL_RECORDS_MAX: usize = 100_000;
/// The library takes no more.
const FETCH_BYTES_MAX: u32 = 2_147_483_135;
const FETCH_WAIT_MS_MAX: u64 = 300_000;

const MECHANISMS: [&str; 3] = ["plain", "scram-sha-256", "scram-sha-512"];

/// What of the settings cannot be, beginning with the name of the field.
pub(super) fn wrong(settings: &KafkaSettings) -> Option<String> {
    let KafkaSettings { brokers, topics, tls, publication_data_mode: mode, .. } = settings;
    if brokers.is_empty() {
        return Some("brokers: none is named".to_owned());
    }
    if let Some(broker) = brokers.iter().find(|broker| !is_broker(broker)) {
        return Some(format!("brokers: `{broker}` is no host:port"));
    }
    if topics.is_empty() {
        return Some("topics: none is named".to_owned());
    }
    if let Some(topic) = topics.iter().find(|topic| !is_topic(topic)) {
        return Some(format!("topics: `{topic}` is no name of a topic"));
    }
    let failed = &settings.failed_topic;
    if !failed.is_empty() && !is_topic(failed) {
        return Some(format!("failed_topic: `{failed}` is no name of a topic"));
    }
    if topics.contains(failed) {
        return Some(format!("failed_topic: `{failed}` is among the topics that are read"));
    }
    if settings.consumer_group.is_empty() {
        return Some("consumer_group is empty".to_owned());
    }
    if !(1..=POLL_RECORDS_MAX).contains(&settings.max_poll_records) {
        return Some(format!("max_poll_records is from 1 to {POLL_RECORDS_MAX}"));
    }
    if !(ANSWER_BYTES..=FETCH_BYTES_MAX).contains(&settings.fetch_max_bytes) {
        return Some(format!("fetch_max_bytes is from {ANSWER_BYTES} to {FETCH_BYTES_MAX}"));
    }
    if !(1..=FETCH_WAIT_MS_MAX).contains(&settings.fetch_max_wait.as_millis()) {
        return Some(format!("fetch_max_wait is from 1ms to {}s", FETCH_WAIT_MS_MAX / 1_000));
    }
    if mode.enabled && mode.channels_header.is_empty() {
        let text = "publication_data_mode.channels_header is empty: records would go nowhere";
        return Some(text.to_owned());
    }
    let wrong = wrong_sasl(settings).or_else(|| wrong_tls(tls)).or_else(|| refused(settings));
    wrong.or_else(|| wrong_pem(settings))
}

fn wrong_sasl(settings: &KafkaSettings) -> Option<String> {
    let mechanism = settings.sasl_mechanism.as_str();
    if mechanism.is_empty() {
        let has_user = !settings.sasl_user.is_empty() || !settings.sasl_password.is_empty();
        return has_user.then(|| "sasl_user and sasl_password need sasl_mechanism".to_owned());
    }
    if !MECHANISMS.contains(&mechanism) {
        return Some(format!("sasl_mechanism is none of {}", MECHANISMS.join(", ")));
    }
    if settings.sasl_user.is_empty() {
        return Some(format!("sasl_user is empty, which sasl_mechanism = \"{mechanism}\" needs"));
    }
    let needs_tls = mechanism != "plain" && !cfg!(feature = "kafka-tls");
    needs_tls.then(|| {
        format!("sasl_mechanism = \"{mechanism}\" needs a build with `--features kafka-tls`")
    })
}

fn wrong_tls(tls: &KafkaTls) -> Option<String> {
    let files = [("server_ca_pem", &tls.server_ca_pem), ("cert_pem", &tls.cert_pem)];
    let files = files.into_iter().chain([("key_pem", &tls.key_pem)]);
    if !tls.enabled {
        let named = files.into_iter().find(|(_, pem)| !pem.is_empty());
        return named.map(|(name, _)| format!("tls.{name} is set, and tls.enabled is not"));
    }
    if !cfg!(feature = "kafka-tls") {
        return Some("tls.enabled needs a build with `--features kafka-tls`".to_owned());
    }
    if tls.cert_pem.is_empty() != tls.key_pem.is_empty() {
        return Some("tls.cert_pem and tls.key_pem need each other".to_owned());
    }
    let unreadable = |(name, pem): (&str, &String)| {
        let read = if pem.is_empty() || is_inline(pem) { None } else { std::fs::read(pem).err() };
        read.map(|error| format!("tls.{name}: {pem}: {error}"))
    };
    files.into_iter().find_map(unreadable)
}

/// What the library says of files that can be read: it looks at them when a client is made.
fn wrong_pem(settings: &KafkaSettings) -> Option<String> {
    if !settings.tls.enabled {
        return None;
    }
    let made = config(settings).create::<BaseConsumer>();
    made.err().map(|error| format!("tls: {error}"))
}

/// What the library itself says of the settings.
fn refused(settings: &KafkaSettings) -> Option<String> {
    config(settings).create_native_config().err().map(|error| error.to_string())
}

fn is_broker(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte);
    !host.is_empty() && host.bytes().all(is_host) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Not a pattern either, which the library would take a name that begins with `^` for.
fn is_topic(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_long = text.is_empty() || text.len() > TOPIC_BYTES_MAX;
    !is_long && text.bytes().all(is_legal) && text != "." && text != ".."
}

fn is_inline(pem: &str) -> bool {
    pem.trim_start().starts_with("-----BEGIN")
}

/// For the consumer. Places are committed by the reader alone.
pub(super) fn config(settings: &KafkaSettings) -> ClientConfig {
    let mut config = common(settings);
    let isolation =
        if settings.fetch_read_uncommitted { "read_uncommitted" } else { "read_committed" };
    config
        .set("group.id", &settings.consumer_group)
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("auto.offset.reset", "earliest")
        .set("allow.auto.create.topics", "false")
        .set("isolation.level", isolation)
        .set("partition.assignment.strategy", "cooperative-sticky")
        .set("session.timeout.ms", SESSION_TIMEOUT_MS.to_string())
        .set("heartbeat.interval.ms", HEARTBEAT_MS.to_string())
        .set("queued.min.messages", AHEAD_LEN.to_string())
        .set("queued.max.messages.kbytes", AHEAD_KIB.to_string())
        .set("fetch.message.max.bytes", ANSWER_BYTES.to_string())
        .set("fetch.max.bytes", settings.fetch_max_bytes.to_string())
        .set("fetch.wait.max.ms", settings.fetch_max_wait.as_millis().to_string())
        .set("fetch.queue.backoff.ms", ROOM_LOOK_MS.to_string())
        .set("topic.metadata.refresh.interval.ms", METADATA_MS.to_string())
        .set("statistics.interval.ms", STATISTICS_MS.to_string());
    if !settings.instance_id.is_empty() {
        config.set("group.instance.id", &settings.instance_id);
    }
    config
}

/// For the consumer, and for what writes records that failed.
pub(super) fn common(settings: &KafkaSettings) -> ClientConfig {
    let mut config = ClientConfig::new();
    let tls = &settings.tls;
    let protocol = match (settings.sasl_mechanism.is_empty(), tls.enabled) {
        (true, false) => "plaintext",
        (true, true) => "ssl",
        (false, false) => "sasl_plaintext",
        (false, true) => "sasl_ssl",
    };
    config
        .set("bootstrap.servers", settings.brokers.join(","))
        .set("client.id", "folkmoot")
        .set("security.protocol", protocol)
        .set("reconnect.backoff.ms", RECONNECT_MIN_MS.to_string())
        .set("reconnect.backoff.max.ms", RECONNECT_MAX_MS.to_string())
        .set_log_level(RDKafkaLogLevel::Warning);
    if !settings.sasl_mechanism.is_empty() {
        config
            .set("sasl.mechanisms", settings.sasl_mechanism.to_uppercase())
            .set("sasl.username", &settings.sasl_user)
            .set("sasl.password", &settings.sasl_password);
    }
    if tls.enabled {
        for (name, pem) in
            [("ca", &tls.server_ca_pem), ("certificate", &tls.cert_pem), ("key", &tls.key_pem)]
        {
            let kind = if is_inline(pem) { "pem" } else { "location" };
            if !pem.is_empty() {
                config.set(format!("ssl.{name}.{kind}"), pem);
            }
        }
        let is_checked = !tls.insecure_skip_verify;
        config.set("enable.ssl.certificate.verification", is_checked.to_string());
    }
    config
}

#[cfg(test)]
mod tests {
    use crate::kafka::Kafka;
    use crate::settings::Settings;

    /// What is said of a consumer with these settings beside those that it needs.
    fn said(needed: &str, more: &str) -> Option<String> {
        let text = format!(
            "[[consumers]]\nname = 'records'\ntype = 'kafka'\n[consumers.kafka]\n{needed}\n{more}"
        );
        let consumer = Settings::from_toml(&text).unwrap().consumers.remove(0);
        Kafka::new(consumer).err().map(|error| error.to_string())
    }

    const NEEDED: &str = "brokers = ['127.0.0.1:9092']\ntopics = ['a']\nconsumer_group = 'g'";

    #[test]
    fn a_setting_that_cannot_be_is_named() {
        for (needed, field) in [
            ("topics = ['a']\nconsumer_group = 'g'", "brokers"),
            ("brokers = ['nowhere']\ntopics = ['a']\nconsumer_group = 'g'", "brokers"),
            ("brokers = ['127.0.0.1:0']\ntopics = ['a']\nconsumer_group = 'g'", "brokers"),
            ("brokers = ['127.0.0.1:9092']\nconsumer_group = 'g'", "topics"),
            ("brokers = ['127.0.0.1:9092']\ntopics = ['^a']\nconsumer_group = 'g'", "topics"),
            ("brokers = ['127.0.0.1:9092']\ntopics = ['a']", "consumer_group"),
        ] {
            let error = said(needed, "").unwrap();
            assert!(error.contains(&format!("consumer `records`: kafka.{field}")), "{error}");
        }
        for (more, field) in [
            ("max_poll_records = 0", "max_poll_records"),
            ("fetch_max_bytes = 1", "fetch_max_bytes"),
            ("fetch_max_wait = '0s'", "fetch_max_wait"),
            ("failed_topic = 'a'", "failed_topic"),
            ("failed_topic = 'a b'", "failed_topic"),
            ("sasl_user = 'me'", "sasl_user"),
            ("sasl_mechanism = 'gssapi'", "sasl_mechanism"),
            ("sasl_mechanism = 'plain'", "sasl_user"),
            ("tls = { server_ca_pem = '/nowhere' }", "tls.server_ca_pem"),
            ("tls = { enabled = true, cert_pem = '/nowhere' }", "tls."),
            (
                "publication_data_mode = { enabled = true, channels_header = '' }",
                "publication_data_mode.channels_header",
            ),
        ] {
            let error = said(NEEDED, more).unwrap();
            assert!(error.contains(&format!("consumer `records`: kafka.{field}")), "{error}");
        }
        assert_eq!(said(NEEDED, ""), None);
        assert_eq!(said(NEEDED, "sasl_mechanism = 'plain'\nsasl_user = 'me'"), None);
    }

    #[test]
    fn a_misspelt_setting_is_named() {
        let text = "[[consumers]]\nname = 'records'\ntype = 'kafka'\nkafka = { broker = 'x' }";
        let error = Settings::from_toml(text).unwrap_err().to_string();
        assert!(error.contains("broker"), "{error}");
    }
}

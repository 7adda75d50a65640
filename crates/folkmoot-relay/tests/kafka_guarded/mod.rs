//! A Kafka whose door takes only TLS and a password: who is let in, and what is said to who is not.

mod log;

use std::path::PathBuf;
use std::sync::LazyLock;

use althing_testkit::servers::{KafkaGuard, KafkaServer};
use folkmoot_relay::{Settings, start};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Duration, Instant, sleep};

use crate::kafka_support::{Backend, publishes};
use crate::support::{Listener, get};
use crate::{SERVER, host, next, relay, shows};

/// Who is let in by PLAIN.
const USER: &str = "moot";
const PASSWORD: &str = "thing";
/// Who are let in by SCRAM, once they have a password.
const OTHERS: [&str; 2] = ["short", "long"];

/// Files with certificates that may vouch for a broker.
struct Files {
    directory: TempDir,
    guard: KafkaGuard,
}

/// One authority vouches for the broker, and another one for nobody.
static FILES: LazyLock<Files> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, pem: &str| {
        std::fs::write(directory.path().join(name), pem).expect("it is written");
    };
    let authority = |name: &str| {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = params.self_signed(&key).expect("a certificate");
        write(&format!("{name}.pem"), &certificate.pem());
        Issuer::new(params, key)
    };
    let (issuer, _) = (authority("right"), authority("wrong"));
    write("junk.pem", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![KafkaServer::own_address()]).expect("a name");
    let certificate = params.signed_by(&key, &issuer).expect("a certificate").pem();
    let plain = (USER.to_owned(), PASSWORD.to_owned());
    let guard = KafkaGuard { certificate, key: key.serialize_pem(), plain };
    Files { directory, guard }
});

pub(crate) fn guard() -> KafkaGuard {
    FILES.guard.clone()
}

fn file(name: &str) -> PathBuf {
    FILES.directory.path().join(format!("{name}.pem"))
}

async fn set_password(mechanism: &'static str, user: &'static str, password: &'static str) {
    let set = move || SERVER.set_password(mechanism, user, password);
    tokio::task::spawn_blocking(set).await.expect("it is set");
}

/// A consumer that comes by the guarded door.
fn door(authority: &str, mechanism: &str, user: &str, password: &str) -> Value {
    json!({
        "brokers": [SERVER.guarded_host()], "consumer_group": format!("{authority}-{mechanism}-{password}"),
        "tls": { "enabled": true, "server_ca_pem": file(authority) },
        "sasl_mechanism": mechanism, "sasl_user": user, "sasl_password": password,
    })
}

fn metric(name: &str, labels: &str, value: u64) -> String {
    format!("folkmoot_relay_consumer_{name}{{consumer=\"records\"{labels}}} {value}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_knows_the_password_reads_over_tls_and_who_gets_another_one_reads_once_it_is_right() {
    log::keep();
    let backend = Backend::new(&host().await);
    backend.makes("guarded", 1).await;
    // Nobody has this one yet.
    let [short, long] = OTHERS;
    let late = door("right", "scram-sha-256", short, "late");
    let late = relay("guarded", &late).await;
    let mut waiting = Listener::subscribe(&late, &["news:x"]).await.beside();
    let refused = |relay| async move {
        let wanted = metric("refused_total", ",by=\"sasl\"", 0);
        while get(relay, "/metrics", "").await.lines().any(|line| line == wanted) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    refused(&late).await;
    shows(&late, &metric("up", "", 0)).await;
    shows(&late, &metric("refused_total", ",by=\"tls\"", 0)).await;
    let others =
        (set_password("SCRAM-SHA-256", short, "now"), set_password("SCRAM-SHA-512", long, "now"));
    tokio::join!(others.0, others.1);
    let inline = json!({ "enabled": true, "server_ca_pem": std::fs::read_to_string(file("right")).unwrap() });
    let mut relays = Vec::new();
    for (mechanism, user, password) in
        [("plain", USER, PASSWORD), ("scram-sha-256", short, "now"), ("scram-sha-512", long, "now")]
    {
        let mut door = door("right", mechanism, user, password);
        if mechanism == "scram-sha-512" {
            door["tls"] = inline.clone();
        }
        let relay = relay("guarded", &door).await;
        let listener = Listener::subscribe(&relay, &["news:x"]).await.beside();
        relays.push((relay, listener));
    }
    backend.writes("guarded", 0, &publishes("news:x", 1)).await;
    for (relay, listener) in &mut relays {
        assert_eq!(next(listener).await, 1);
        shows(relay, &metric("up", "", 1)).await;
    }
    // Said once, however often it was tried.
    let said = log::lines(&["ERROR", "Kafka cannot be read", "SASL: ", "SCRAM-SHA-256"]);
    assert_eq!(said.len(), 1, "{said:?} of {:?}", log::lines(&["ERROR"]));
    set_password("SCRAM-SHA-256", short, "late").await;
    assert_eq!(next(&mut waiting).await, 1);
    shows(&late, &metric("up", "", 1)).await;
    late.stop().await;
    for (relay, _) in relays {
        relay.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_no_authority_of_ours_vouches_for_is_not_read_and_told_apart_from_a_wrong_password()
 {
    log::keep();
    let backend = Backend::new(&host().await);
    backend.makes("unread", 1).await;
    backend.writes("unread", 0, &publishes("news:x", 1)).await;
    for (door, by, words) in [
        (door("wrong", "plain", USER, PASSWORD), "tls", ["TLS: ", "certificate verify failed"]),
        (door("right", "plain", USER, "guess"), "sasl", ["SASL: ", "Invalid username or password"]),
    ] {
        let relay = relay("unread", &door).await;
        // Twice at least, so that it is tried again.
        let counted = async || {
            let page = get(&relay, "/metrics", "").await;
            let name = format!(
                "folkmoot_relay_consumer_refused_total{{consumer=\"records\",by=\"{by}\"}} "
            );
            let count = page.lines().find_map(|line| line.strip_prefix(&name));
            count.map_or(0, |count| count.parse::<u64>().expect("a number"))
        };
        let until = Instant::now() + crate::kafka_support::PATIENCE;
        while counted().await < 2 {
            assert!(Instant::now() < until, "it is never refused");
            sleep(Duration::from_millis(20)).await;
        }
        shows(&relay, &metric("up", "", 0)).await;
        let published =
            "folkmoot_relay_publications_total{source=\"records\",outcome=\"published\"} 0";
        shows(&relay, published).await;
        let [by, why] = words;
        let said = log::lines(&["ERROR", "Kafka cannot be read", by, why]);
        assert_eq!(said.len(), 1, "{said:?} of {:?}", log::lines(&["ERROR"]));
        relay.stop().await;
    }
}

#[tokio::test]
async fn an_authority_that_is_none_is_named_at_the_start() {
    for name in ["junk", "nowhere"] {
        let kafka = json!({
            "brokers": ["127.0.0.1:9092"], "topics": ["a"], "consumer_group": "g",
            "tls": { "enabled": true, "server_ca_pem": file(name) },
        });
        let consumer = json!({ "name": "records", "type": "kafka", "kafka": kafka });
        let settings = json!({ "consumers": [consumer] }).to_string();
        let settings = Settings::from_json(&settings).expect("settings");
        let refused = start(settings, "127.0.0.1:0".parse().expect("an address")).await;
        let text = refused.expect_err("it does not start").to_string();
        assert!(text.contains("consumer `records`: kafka.tls"), "{text}");
    }
}

//! A relay whose database takes encrypted connections only from who checks its certificate: all of
//! its connections, the stream of changes included, are encrypted.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::{Listener, database, logical_server};
use folkmoot_relay::{Relay, Settings, start};
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;

/// A relay that publishes from two tables, one by each way.
async fn relay(dsn: &str) -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": { "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true,
            "allow_history_for_anonymous": true, "history_size": 10, "history_ttl": "60s",
        }] },
        "consumers": [
            { "name": "changes", "type": "postgresql_cdc",
              "postgresql_cdc": { "dsn": dsn, "outbox_table_name": "changes" } },
            { "name": "outbox", "type": "postgresql", "postgresql": {
              "dsn": dsn, "outbox_table_name": "outbox", "partition_poll_interval": "100ms" } },
        ],
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outbox_and_changes_are_read_by_connections_that_are_encrypted_and_checked() {
    let mut server = logical_server().await;
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![server.address().0.to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("root.pem");
    std::fs::write(&root, certificate.pem()).expect("it is written");
    let (certificate, key) = (certificate.pem(), key.serialize_pem());
    let server = tokio::task::spawn_blocking(move || {
        server.encrypt(&certificate, &key);
        server
    });
    let server = server.await.expect("it starts again");
    let client = database(&server.url()).await.expect("it connects");
    let dsn = format!("{}?sslmode=verify-full&sslrootcert={}", server.url(), root.display());
    let relay = relay(&dsn).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE active";
    let tables = "SELECT count(to_regclass(name)) FROM unnest(ARRAY['changes', 'outbox']) AS name";
    for (wanted, sql) in [(1, slots), (2, tables)] {
        while client.query_one(sql, &[]).await.expect("it reads").get::<_, i64>(0) < wanted {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    for (number, table) in [(1, "changes"), (2, "outbox")] {
        let payload = json!({ "channel": "news:x", "data": number }).to_string();
        let insert = format!(
            "INSERT INTO {table} (method, payload, partition) VALUES ('publish', $1::text::jsonb, 0)"
        );
        client.execute(&insert, &[&payload]).await.expect("it is committed");
        assert_eq!(listener.publication().await, ("news:x".to_owned(), json!(number)));
    }
    let sessions = "SELECT a.backend_type, s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
                    WHERE pid <> pg_backend_pid() AND a.backend_type IN ('walsender', 'client backend')";
    let sessions = client.query(sessions, &[]).await.expect("it reads");
    assert!(sessions.iter().any(|row| row.get::<_, &str>(0) == "walsender"));
    assert!(sessions.len() > 1 && sessions.iter().all(|row| row.get(1)), "each is encrypted");
}

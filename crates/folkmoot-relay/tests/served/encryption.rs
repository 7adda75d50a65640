//! The relay's own listeners behind TLS, for clients and for backends that call by gRPC, with
//! certificates that the test makes.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::grpc::{Backend, field};
use folkmoot_relay::{Relay, Settings, StartError, start};
use futures_util::{SinkExt, StreamExt};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::tungstenite::Message;

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes a certificate for `localhost` and its key; returns the certificate.
fn certify(directory: &Path) -> CertificateDer<'static> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    std::fs::write(directory.join("cert.pem"), certificate.pem()).expect("it is written");
    std::fs::write(directory.join("key.pem"), key.serialize_pem()).expect("it is written");
    certificate.der().clone()
}

/// The settings of a listener with what [`certify`] has written.
fn tls(directory: &Path) -> Value {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| directory.join(name));
    json!({ "enabled": true, "cert_pem": cert, "key_pem": key })
}

fn settings(directory: &Path) -> Value {
    json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "http_api": { "key": "key" },
        "http_server": { "tls": tls(directory) },
        "grpc_api": { "enabled": true, "key": "secret", "port": 0, "tls": tls(directory) },
        "channel": { "without_namespace": { "history_size": 10, "history_ttl": "60s" } },
    })
}

async fn relay(settings: &Value) -> Result<Relay, StartError> {
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await
}

/// Connects, believes this certificate only, and speaks one of these.
async fn connect(
    address: SocketAddr,
    certificate: &CertificateDer<'static>,
    spoken: &[&str],
) -> io::Result<TlsStream<TcpStream>> {
    let mut believed = RootCertStore::empty();
    believed.add(certificate.clone()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(believed);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = spoken.iter().map(|one| one.as_bytes().to_vec()).collect();
    let socket = TcpStream::connect(address).await.expect("it listens");
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

#[tokio::test]
async fn a_backend_calls_by_grpc_over_tls_and_by_nothing_else() {
    let directory = TempDir::new().expect("a directory");
    let certificate = certify(directory.path());
    let relay = relay(&settings(directory.path())).await.expect("it starts");
    let address = relay.grpc_address().expect("it listens");
    let socket = connect(address, &certificate, &["h2"]).await.expect("it is encrypted");
    assert_eq!(socket.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let mut backend = Backend::over(socket).await;
    let publish = [field(1, "x"), field(2, "1")].concat();
    let published = backend.call("Publish", publish).await.expect("it is published");
    assert_eq!(published.number(1), 1);
    // Who speaks something else, believes somebody else, or speaks in the clear gets nowhere.
    assert!(connect(address, &certificate, &["http/1.1"]).await.is_err());
    let stranger = certify(TempDir::new().expect("a directory").path());
    assert!(connect(address, &stranger, &["h2"]).await.is_err());
    let mut clear = TcpStream::connect(address).await.expect("it listens");
    clear.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("it is open");
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, clear.read_to_end(&mut answer)).await.expect("it is kept");
    // The alert of TLS, if anything.
    assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    // Nor does a connection that never begins hold up the stop.
    let _silent = TcpStream::connect(address).await.expect("it listens");
    timeout(PATIENCE, relay.stop()).await.expect("it does not stop");
}

#[tokio::test]
async fn a_renewed_certificate_is_used_and_calls_under_way_go_on() {
    let directory = TempDir::new().expect("a directory");
    let old = certify(directory.path());
    let relay = relay(&settings(directory.path())).await.expect("it starts");
    let address = relay.grpc_address().expect("it listens");
    let socket = connect(address, &old, &["h2"]).await.expect("it is encrypted");
    let mut backend = Backend::over(socket).await;
    let new = certify(directory.path());
    let renewed = async {
        // The files are looked at every other second, and nothing tells when.
        while connect(address, &new, &["h2"]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, renewed).await.expect("the renewed certificate is not used");
    assert!(connect(address, &old, &["h2"]).await.is_err(), "the old one is still used");
    assert!(backend.call("Info", Vec::new()).await.is_ok(), "a call on the connection from before");
    relay.stop().await;
}

#[tokio::test]
async fn clients_and_backends_call_over_https() {
    let directory = TempDir::new().expect("a directory");
    let certificate = certify(directory.path());
    let relay = relay(&settings(directory.path())).await.expect("it starts");
    assert_eq!(relay.scheme(), "https");
    let connected = connect(relay.address(), &certificate, &["http/1.1"]).await;
    let mut socket = connected.expect("it is encrypted");
    let body = r#"{"channel":"x","data":1}"#;
    let request = format!(
        "POST /api/publish HTTP/1.1\r\nHost: localhost\r\nX-API-Key: key\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("it is open");
    let mut answer = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut answer)).await.expect("it is kept").expect("text");
    assert!(answer.contains(r#""offset":1"#), "{answer}");
    let socket = connect(relay.address(), &certificate, &[]).await.expect("it is encrypted");
    let url = "wss://localhost/connection/websocket";
    let (mut socket, _) =
        tokio_tungstenite::client_async(url, socket).await.expect("a WebSocket over TLS");
    socket.send(Message::text(r#"{"id":1,"connect":{}}"#)).await.expect("it is open");
    let reply = timeout(PATIENCE, socket.next()).await.expect("nothing came");
    let reply = reply.expect("it is open").expect("a frame").into_text().expect("a text");
    assert!(reply.contains("client"), "{reply}");
    relay.stop().await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_or_is_not_wanted_is_named_at_the_start() {
    let directory = TempDir::new().expect("a directory");
    certify(directory.path());
    let nowhere = directory.path().join("nowhere.pem");
    for listener in ["grpc_api", "http_server"] {
        for (name, value, word) in [
            ("cert_pem", json!(""), "cert_pem"),
            ("key_pem", json!(""), "key_pem"),
            ("cert_pem", json!(nowhere), "nowhere.pem"),
            ("key_pem", json!(directory.path().join("cert.pem")), "private key"),
            ("enabled", json!(false), "not enabled"),
        ] {
            let mut settings = settings(directory.path());
            settings[listener]["tls"][name] = value;
            let error = relay(&settings).await.expect_err("it starts").to_string();
            let says = error.contains(word) && error.contains(&format!("{listener}.tls"));
            assert!(says, "{name}: {error}");
        }
    }
    let mut settings = settings(directory.path());
    settings["grpc_api"]["tls"] = json!({ "enabled": true, "certificate": "x" });
    let error = Settings::from_json(&settings.to_string()).expect_err("it is taken").to_string();
    assert!(error.contains("certificate"), "{error}");
}

//! Backends and providers of keys behind TLS, with certificates that the test makes.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::support::Listener;
use folkmoot_relay::{Relay, Settings, StartError, start};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// What signs tokens, and what the provider shows of it; made for this test.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIIJD3FxtYnT4FL9kHikIhpT1mTP/tejfiDArFNKel1ly\n\
    -----END PRIVATE KEY-----";
const PUBLIC: &str = "44Oi9UZ4uUYBAhZ1W_PZYHka_pI1OQ-V5QNQPlyNG7M";

/// An authority that no system knows, with its certificate in a file.
fn authority(directory: &Path) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
    std::fs::write(directory.join("ca.pem"), authority.pem()).expect("it is written");
    authority
}

/// A backend with a certificate for `localhost`; answers each request by its path.
async fn backend(authority: &CertifiedIssuer<'static, KeyPair>) -> SocketAddr {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .expect("they belong together");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(acceptor.clone(), socket));
        }
    });
    address
}

async fn serve(acceptor: TlsAcceptor, socket: TcpStream) {
    // A client that does not believe the certificate goes away.
    let Ok(socket) = acceptor.accept(socket).await else { return };
    let mut socket = BufReader::new(socket);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while socket.read_line(&mut line).await.is_ok_and(|len| len > 2) {
            head.push_str(&line.to_lowercase());
            line.clear();
        }
        let Some(path) = head.split(' ').nth(1) else { return };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.trim().parse().expect("a length"));
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await.expect("a body");
        let answer = match path {
            "/connect" => json!({ "result": { "user": "ada" } }),
            "/rpc" => json!({ "result": { "data": { "by": "tls" } } }),
            _ => json!({ "keys": [
                { "kid": "one", "kty": "OKP", "crv": "Ed25519", "use": "sig", "x": PUBLIC },
            ] }),
        };
        let answer = answer.to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
        socket.get_mut().write_all(answer.as_bytes()).await.expect("it is open");
        socket.get_mut().flush().await.expect("it is open");
    }
}

async fn relay(backend: &str, tls: &Value) -> Result<Relay, StartError> {
    let at =
        |path: &str| json!({ "enabled": true, "endpoint": format!("https://{backend}{path}") });
    let settings = json!({
        "client": {
            "token": { "jwks_public_endpoint": format!("https://{backend}/keys") },
            "proxy": { "connect": at("/connect") },
        },
        "rpc": { "proxy": at("/rpc"), "without_namespace": { "proxy_enabled": true } },
        "tls": tls,
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await
}

/// Connects, with a token that the provider's key checks or without one; whether that goes.
async fn connects(relay: &Relay, token: &str) -> bool {
    let mut client = Listener::open(relay, &[]).await;
    let reply = client.reply(json!({ "id": 1, "connect": { "token": token } })).await;
    reply["error"].is_null()
}

fn token() -> String {
    let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::EdDSA) };
    let key = EncodingKey::from_ed_pem(PRIVATE.as_bytes()).expect("a key");
    encode(&header, &json!({ "sub": "ada" }), &key).expect("a token")
}

#[tokio::test]
async fn a_backend_is_asked_by_tls_if_an_authority_that_is_believed_vouches_for_its_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let address = backend(&authority(directory.path())).await;
    let by_name = format!("localhost:{}", address.port());
    let believed = json!({ "ca": directory.path().join("ca.pem") });
    let good = relay(&by_name, &believed).await.expect("it starts");
    assert!(connects(&good, &token()).await);
    let mut client = Listener::open(&good, &[]).await;
    client.ask(json!({ "id": 1, "connect": {} })).await;
    for id in 2..5 {
        let reply = client.ask(json!({ "id": id, "rpc": { "method": "echo" } })).await;
        assert_eq!(reply["rpc"]["data"], json!({ "by": "tls" }));
    }
    good.stop().await;
    // By another name than its certificate has, and by one that only a stranger vouches for.
    for (backend, tls) in [(address.to_string(), &believed), (by_name, &json!({}))] {
        let relay = relay(&backend, tls).await.expect("it starts");
        assert!(!connects(&relay, "").await && !connects(&relay, &token()).await, "{backend}");
        let page = crate::support::get(&relay, "/metrics", "").await;
        assert!(page.contains("proxy_errors_total{event=\"connect\"} 1"), "{page}");
        relay.stop().await;
    }
}

#[tokio::test]
async fn a_file_of_authorities_that_has_none_is_named_at_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("ca.pem");
    for content in [None, Some(""), Some("nonsense")] {
        if let Some(content) = content {
            std::fs::write(&path, content).expect("it is written");
        }
        let refused = relay("localhost:1", &json!({ "ca": path })).await.expect_err("it starts");
        let text = refused.to_string();
        assert!(text.contains("tls.ca") && text.contains("ca.pem"), "{content:?}: {text}");
    }
}

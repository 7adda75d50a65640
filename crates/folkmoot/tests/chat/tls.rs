//! Encrypted connections: HTTP and the socket over them, a certificate that is renewed meanwhile.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

use crate::support::{Scratch, Server};

/// A certificate for localhost with its key, in PEM, and as a client has to trust it.
struct Certificate {
    certificate: String,
    key: String,
    trusted: CertificateDer<'static>,
}

impl Certificate {
    fn make() -> Self {
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("it is valid");
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        Self { certificate, key, trusted: made.cert.der().clone() }
    }

    fn write(&self, scratch: &Scratch) {
        // The key first: the server may look between the two, and says then that they do not fit.
        scratch.file("key.pem", &self.key);
        scratch.file("cert.pem", &self.certificate);
    }

    /// Connects, and trusts this certificate only.
    async fn connect(&self, server: &Server) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).expect("it is valid");
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("it is valid")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let socket = TcpStream::connect(server.address()).await?;
        let name = ServerName::try_from("localhost").expect("it is valid");
        TlsConnector::from(Arc::new(config)).connect(name, socket).await
    }

    async fn request(&self, server: &Server, line: &str, body: &str) -> String {
        let mut socket = self.connect(server).await.expect("the certificate is the server's");
        let length = body.len();
        let text = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        socket.write_all(text.as_bytes()).await.expect("it is open");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("an answer");
        answer
    }
}

async fn encrypted(scratch: &Scratch, header_timeout_s: u32) -> Server {
    let settings = format!(
        "tls_cert = {:?}\ntls_key = {:?}\n[gateway]\nheader_timeout_s = {header_timeout_s}\n",
        scratch.path().join("cert.pem"),
        scratch.path().join("key.pem")
    );
    Server::with(&settings).await
}

#[tokio::test(flavor = "multi_thread")]
async fn http_and_the_socket_work_over_tls() {
    let (scratch, certificate) = (Scratch::new(), Certificate::make());
    certificate.write(&scratch);
    let server = encrypted(&scratch, 60).await;
    assert!(server.setup_token().is_some(), "the printed link says https");
    let anna = json!({"name": "anna", "password": "correct horse"}).to_string();
    let answer = certificate.request(&server, "POST /api/v1/accounts", &anna).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let signed_in: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();

    let socket = certificate.connect(&server).await.unwrap();
    let (mut socket, _) =
        client_async("wss://localhost/connection/websocket", socket).await.unwrap();
    for (command, answer) in [
        (json!({"id": 1, "connect": {"token": signed_in["token"]}}), "connect"),
        (json!({"id": 2, "rpc": {"method": "room.create", "data": {"name": "Tea"}}}), "rpc"),
    ] {
        socket.send(Message::text(command.to_string())).await.unwrap();
        loop {
            let message = socket.next().await.expect("the socket is open").unwrap();
            let text = message.into_text().unwrap();
            let replies = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            if replies.into_iter().any(|reply| !reply[answer].is_null()) {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_speaks_in_the_clear_or_not_at_all_is_closed_and_hinders_nobody() {
    let (scratch, certificate) = (Scratch::new(), Certificate::make());
    certificate.write(&scratch);
    let server = encrypted(&scratch, 1).await;
    let mut clear = TcpStream::connect(server.address()).await.unwrap();
    clear.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = clear.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    let answer = certificate.request(&server, "GET /healthz", "").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // The time for headers is over: it is closed.
    assert_eq!(silent.read(&mut [0; 16]).await.unwrap_or(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_taken_without_a_restart() {
    let (scratch, first) = (Scratch::new(), Certificate::make());
    first.write(&scratch);
    let server = encrypted(&scratch, 60).await;
    // An open connection goes on whatever the next ones are encrypted by.
    let mut open = first.connect(&server).await.unwrap();
    let second = Certificate::make();
    second.write(&scratch);
    while second.connect(&server).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(first.connect(&server).await.is_err());
    open.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    open.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

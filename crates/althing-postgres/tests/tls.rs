//! Encrypted connections to a real PostgreSQL: who is believed in which mode, and how a refusal
//! reads.

use std::path::PathBuf;

use althing_postgres::Server;
use althing_testkit::servers::PostgresServer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

/// Who signs certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs itself");
        let directory = tempfile::tempdir().expect("a directory can be made");
        let authority = Self { issuer, directory };
        std::fs::write(authority.file(), authority.issuer.pem()).expect("it can be written");
        authority
    }

    /// Its own certificate.
    fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// A certificate for that host, and its key.
    fn sign(&self, host: &str) -> (String, String) {
        let params = CertificateParams::new(vec![host.to_owned()]).expect("it is a host");
        let key = KeyPair::generate().expect("a key can be made");
        let signed = params.signed_by(&key, &self.issuer).expect("it signs");
        (signed.pem(), key.serialize_pem())
    }
}

/// Whether a session is encrypted, as the server sees it; or all that the error says.
async fn connect(url: &str) -> Result<bool, String> {
    let server: Server =
        url.parse().map_err(|error: althing_postgres::UrlError| error.to_string())?;
    let connected = server.connect().await.map_err(|error| {
        let error: &dyn std::error::Error = &error;
        let sources = std::iter::successors(Some(error), |error| error.source());
        sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    });
    let (client, connection) = connected?;
    tokio::spawn(connection);
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    Ok(client.query_one(sql, &[]).await.expect("it answers").get(0))
}

#[tokio::test]
async fn each_mode_believes_whom_it_should_and_refuses_others_by_name() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let mut server = PostgresServer::start();
    let plain = server.url();
    let refused = connect(&format!("{plain}?sslmode=require")).await.expect_err("no TLS here");
    assert!(refused.contains("server does not support TLS"), "{refused}");
    assert_eq!(connect(&format!("{plain}?sslmode=prefer")).await, Ok(false));

    let host = server.address().0.to_owned();
    let (certificate, key) = ours.sign(&host);
    server.encrypt(&certificate, &key);
    let url = server.url();
    let with = |mode: &str, authority: &Authority| {
        format!("{url}?sslmode={mode}&sslrootcert={}", authority.file().display())
    };
    for encrypted in ["", "?sslmode=prefer", "?sslmode=require"] {
        assert_eq!(connect(&format!("{url}{encrypted}")).await, Ok(true), "{encrypted}");
    }
    assert_eq!(connect(&format!("{url}?sslmode=disable")).await, Ok(false));
    for mode in ["require", "verify-ca", "verify-full"] {
        assert_eq!(connect(&with(mode, &ours)).await, Ok(true), "{mode}");
        let refused = connect(&with(mode, &other)).await.expect_err("another authority");
        assert!(refused.contains("UnknownIssuer"), "{mode}: {refused}");
    }

    let (certificate, key) = ours.sign("db.example");
    server.encrypt(&certificate, &key);
    assert_eq!(connect(&with("verify-ca", &ours)).await, Ok(true), "whatever the name");
    let refused = connect(&with("verify-full", &ours)).await.expect_err("another host");
    assert!(refused.contains(&host) && refused.contains("db.example"), "{refused}");
}

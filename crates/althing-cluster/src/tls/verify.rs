//! Whether a certificate is one of the cluster's: signed by its authority, of today, and for a node
//! of that name.

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use webpki::EndEntityCert;

use super::SUFFIX;
use super::strangers::{RefusedFor, Untrusted};
use crate::capability::is_of_client;

/// The names of the nodes of a cluster that a certificate is for, and of its clients. A wildcard is
/// none.
pub(super) fn nodes_of(certificate: &CertificateDer<'_>, cluster: &str) -> Vec<String> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    let end = format!(".{cluster}.{SUFFIX}");
    let nodes = certificate.valid_dns_names().filter_map(|name| name.strip_suffix(&end));
    nodes.map(str::to_owned).collect()
}

/// What a connection is dialled as: a node of the cluster, or any that it has.
///
/// # Errors
/// A node of that name can have no certificate.
pub(crate) fn expected_name(
    cluster: &str,
    node: Option<&str>,
) -> Result<ServerName<'static>, Untrusted> {
    let name = match node {
        Some(node) => format!("{node}.{cluster}.{SUFFIX}"),
        None => format!("{cluster}.{SUFFIX}"),
    };
    ServerName::try_from(name.clone()).map_err(|_| {
        Untrusted::new(RefusedFor::Node, format!("`{name}` can stand in no certificate"))
    })
}

/// Judges the certificates of one cluster, on both sides of a connection.
#[derive(Debug)]
pub(super) struct Judge {
    cluster: String,
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
    of_clients: Arc<dyn ClientCertVerifier>,
}

impl Judge {
    pub(super) fn new(
        cluster: &str,
        roots: RootCertStore,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let roots = Arc::new(roots);
        let of_clients =
            WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        let of_clients = of_clients.build()?;
        Ok(Self { cluster: cluster.to_owned(), roots, provider, of_clients })
    }

    /// Whether it would let in who shows that chain, on either side of a connection to that name.
    pub(super) fn trusts(
        &self,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let (own, others) = chain.split_first().ok_or(Error::NoCertificatesPresented)?;
        self.verify_client_cert(own, others, now)?;
        self.verify_server_cert(own, others, name, &[], now)?;
        Ok(())
    }

    /// The nodes that a certificate of this cluster is for.
    fn nodes(&self, certificate: &CertificateDer<'_>) -> Result<Vec<String>, Error> {
        let nodes = nodes_of(certificate, &self.cluster);
        if nodes.is_empty() {
            let why = format!("its certificate is for no node of the cluster `{}`", self.cluster);
            return Err(refused(RefusedFor::Cluster, why));
        }
        Ok(nodes)
    }
}

fn refused(reason: RefusedFor, why: String) -> Error {
    let other = OtherError(Arc::new(Untrusted::new(reason, why)));
    Error::InvalidCertificate(CertificateError::Other(other))
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        let mut nodes = self.nodes(end_entity)?;
        nodes.retain(|name| !is_of_client(name));
        if nodes.is_empty() {
            let why = "its certificate is for a client, and for no node".to_owned();
            return Err(refused(RefusedFor::Node, why));
        }
        let expected = server_name.to_str();
        if let Some(node) = expected.strip_suffix(&format!(".{}.{SUFFIX}", self.cluster))
            && !nodes.iter().any(|known| known == node)
        {
            let why = format!("its certificate is for {}, not for `{node}`", nodes.join(", "));
            return Err(refused(RefusedFor::Node, why));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_clients.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_clients.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of_clients.supported_verify_schemes()
    }
}

impl ClientCertVerifier for Judge {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.of_clients.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.of_clients.verify_client_cert(end_entity, intermediates, now)?;
        self.nodes(end_entity)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_clients.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_clients.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of_clients.supported_verify_schemes()
    }
}

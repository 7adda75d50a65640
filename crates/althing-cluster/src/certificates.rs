//! A cluster's own certificate authority, and the certificates of its nodes.
//!
//! The authority signs for one cluster only: its certificate names it, and allows no names outside
//! of it. Whoever has its key can be any node, so it belongs on no machine of the cluster.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use webpki::EndEntityCert;

use crate::capability::{Capability, is_of_client};

/// Last label of the names in certificates.
const SUFFIX: &str = ".althing";

/// The longest label of a DNS name, and the longest name.
const LABEL_LEN_MAX: usize = 63;
const NAME_LEN_MAX: usize = 253;

/// The last year that a certificate can name: it has four digits.
const YEAR_MAX: i32 = 9_999;

/// Certificates count from a little earlier, because clocks differ.
const EARLIER: Duration = Duration::from_secs(3_600);

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The name of a cluster or a node cannot stand in a certificate.
    #[error("`{0}` cannot be a name in a certificate: it needs letters, digits, `-` and `_`")]
    Name(String),
    /// What should be an authority of a cluster is none.
    #[error("this is no authority that `cluster init` has made: {0}")]
    NoAuthority(String),
    /// It would end later than a certificate can say.
    #[error("a certificate cannot last beyond the year {YEAR_MAX}")]
    TooLong,
    /// The library cannot make it.
    #[error("the certificate cannot be made: {0}")]
    Unmade(#[from] rcgen::Error),
}

/// Signs the certificates of one cluster's nodes.
pub struct CertificateAuthority {
    cluster: String,
    certificate: String,
    key: KeyPair,
}

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Certified {
    /// The certificate.
    pub certificate: String,
    /// Its key, which nobody else should read.
    pub key: String,
}

impl CertificateAuthority {
    /// A new authority.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn new(cluster: &str, until: SystemTime) -> Result<Self, CertificateError> {
        is_label(cluster)
            .then_some(())
            .ok_or_else(|| CertificateError::Name(cluster.to_owned()))?;
        let key = KeyPair::generate()?;
        let mut params = parameters(cluster)?;
        last(&mut params, until)?;
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { cluster: cluster.to_owned(), certificate, key })
    }

    /// The authority again, from its certificate and its key in PEM.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn open(certificate: &str, key: &str) -> Result<Self, CertificateError> {
        let no = |why: String| CertificateError::NoAuthority(why);
        let der = CertificateDer::from_pem_slice(certificate.as_bytes());
        let der = der.map_err(|error| no(error.to_string()))?;
        let parsed = EndEntityCert::try_from(&der).map_err(|error| no(error.to_string()))?;
        let mut names = parsed.valid_dns_names().filter_map(|name| name.strip_suffix(SUFFIX));
        let cluster = names.find(|name| is_label(name));
        let cluster = cluster.ok_or_else(|| no("it names no cluster".to_owned()))?.to_owned();
        let key = KeyPair::from_pem(key)?;
        let info = rcgen::PublicKeyData::subject_public_key_info(&key);
        if *parsed.subject_public_key_info() != *info {
            return Err(no("the key is not that of the certificate".to_owned()));
        }
        Ok(Self { cluster, certificate: certificate.to_owned(), key })
    }

    /// The name of the cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// What every node needs: the authority's certificate.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its certificate and its key.
    pub fn certified(&self) -> Certified {
        Certified { certificate: self.certificate.clone(), key: self.key.serialize_pem() }
    }

    /// A certificate with a key of its own for the node of that name. A name like
    /// `ada.look.client` is that of a client who may [`Look`](Capability::Look).
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn certify(&self, node: &str, until: SystemTime) -> Result<Certified, CertificateError> {
        if !is_of_client(node) {
            let usages =
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            return self.sign(&[node.to_owned()], usages, until);
        }
        if Capability::of_name(node).is_none() {
            return Err(CertificateError::Name(node.to_owned()));
        }
        self.sign(&[node.to_owned()], vec![ExtendedKeyUsagePurpose::ClientAuth], until)
    }

    /// A certificate with a key of its own for somebody who is no node and may do that.
    ///
    /// # Errors
    /// See [`CertificateError`]; `Name` if there is no capability.
    pub fn certify_client(
        &self,
        who: &str,
        capabilities: &[Capability],
        until: SystemTime,
    ) -> Result<Certified, CertificateError> {
        let names: Vec<_> = capabilities.iter().map(|may| may.name_for(who)).collect();
        if names.is_empty() {
            return Err(CertificateError::Name(who.to_owned()));
        }
        self.sign(&names, vec![ExtendedKeyUsagePurpose::ClientAuth], until)
    }

    fn sign(
        &self,
        names: &[String],
        usages: Vec<ExtendedKeyUsagePurpose>,
        until: SystemTime,
    ) -> Result<Certified, CertificateError> {
        let whole = |name: &String| format!("{name}.{}{SUFFIX}", self.cluster);
        let is_wrong =
            |name: &&String| !name.split('.').all(is_label) || whole(name).len() > NAME_LEN_MAX;
        if let Some(wrong) = names.iter().find(is_wrong) {
            return Err(CertificateError::Name(wrong.clone()));
        }
        let key = KeyPair::generate()?;
        let names: Vec<_> = names.iter().map(whole).collect();
        let mut params = CertificateParams::new(names.clone())?;
        params.distinguished_name = called(&names[0]);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages;
        last(&mut params, until)?;
        let issuer = parameters(&self.cluster)?;
        let certificate = params.signed_by(&key, &Issuer::from_params(&issuer, &self.key))?;
        Ok(Certified { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// What an authority is, whenever it was made.
fn parameters(cluster: &str) -> Result<CertificateParams, CertificateError> {
    let name = format!("{cluster}{SUFFIX}");
    let mut params = CertificateParams::new([name.clone()])?;
    params.distinguished_name = called(&format!("authority of {name}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let permitted_subtrees = vec![GeneralSubtree::DnsName(name)];
    params.name_constraints =
        Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    Ok(params)
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn is_label(label: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_hyphen_inside = !label.starts_with('-') && !label.ends_with('-');
    (1..=LABEL_LEN_MAX).contains(&label.len()) && is_hyphen_inside && label.bytes().all(is_known)
}

/// Has it count from now on, and until then.
///
/// # Errors
/// No certificate can say that.
fn last(params: &mut CertificateParams, until: SystemTime) -> Result<(), CertificateError> {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    // Certificates count in seconds.
    let seconds = |time: SystemTime| {
        Duration::from_secs(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    };
    params.not_before = epoch + seconds(SystemTime::now().min(until)).saturating_sub(EARLIER);
    let end = rcgen::date_time_ymd(YEAR_MAX, 12, 31);
    // Compared before it is added: the sum may be no time.
    let lasts = seconds(until);
    let is_time = |seconds| seconds <= (end - epoch).whole_seconds();
    if !i64::try_from(lasts.as_secs()).is_ok_and(is_time) {
        return Err(CertificateError::TooLong);
    }
    params.not_after = epoch + lasts;
    Ok(())
}

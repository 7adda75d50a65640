//! Who was refused, and why: counted always, logged now and then.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

/// How often one reason is logged for one host: a node that is refused dials twice a second.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Hosts and reasons that are remembered for that.
const TOLD_MAX: usize = 256;

/// Why a connection was not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusedFor {
    /// The other side speaks no TLS, and this one does.
    Plaintext,
    /// The other side speaks TLS, and this one does not.
    Encrypted,
    /// The other side did not end the handshake, or not in time.
    Unfinished,
    /// It shows no certificate.
    NoCertificate,
    /// Its certificate was not signed by the cluster's authority.
    Authority,
    /// Its certificate is not valid any more, or not yet.
    Expired,
    /// It is of another cluster.
    Cluster,
    /// It is not the node that it claims to be, or that was dialled.
    Node,
    /// Its version of the protocol is another one.
    Version,
    /// It does not trust this side.
    ByTheOther,
    /// Something else is wrong with its TLS.
    Other,
}

impl RefusedFor {
    const ALL: [Self; 11] = [
        Self::Plaintext,
        Self::Encrypted,
        Self::Unfinished,
        Self::NoCertificate,
        Self::Authority,
        Self::Expired,
        Self::Cluster,
        Self::Node,
        Self::Version,
        Self::ByTheOther,
        Self::Other,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Encrypted => "encrypted",
            Self::Unfinished => "unfinished",
            Self::NoCertificate => "no_certificate",
            Self::Authority => "authority",
            Self::Expired => "expired",
            Self::Cluster => "cluster",
            Self::Node => "node",
            Self::Version => "version",
            Self::ByTheOther => "by_the_other",
            Self::Other => "other",
        }
    }
}

/// Why the other side of a connection is not trusted, in words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Untrusted {
    pub(crate) reason: RefusedFor,
    why: String,
}

impl Untrusted {
    pub(crate) fn new(reason: RefusedFor, why: impl Into<String>) -> Self {
        Self { reason, why: why.into() }
    }
}

impl From<&Error> for Untrusted {
    fn from(error: &Error) -> Self {
        let (reason, why) = match error {
            Error::InvalidCertificate(CertificateError::Other(other)) => {
                match other.0.downcast_ref::<Self>() {
                    Some(known) => return known.clone(),
                    None => (RefusedFor::Other, "its certificate cannot be used"),
                }
            }
            Error::InvalidCertificate(why) => of_certificate(why),
            Error::NoCertificatesPresented => {
                (RefusedFor::NoCertificate, "it shows no certificate")
            }
            Error::AlertReceived(alert) => {
                let why = format!("it does not trust this side: {}", of_alert(*alert));
                return Self::new(RefusedFor::ByTheOther, why);
            }
            Error::InvalidMessage(_) => (RefusedFor::Plaintext, "it speaks no TLS"),
            _ => (RefusedFor::Other, "its TLS cannot be used"),
        };
        Self::new(reason, format!("{why} ({error})"))
    }
}

fn of_certificate(error: &CertificateError) -> (RefusedFor, &'static str) {
    match error {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            (RefusedFor::Expired, "its certificate is not valid at this time")
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            (RefusedFor::Authority, "its certificate is not of the cluster's authority")
        }
        _ => (RefusedFor::Other, "its certificate cannot be used"),
    }
}

fn of_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "this certificate is not of its authority".to_owned()
        }
        AlertDescription::CertificateExpired => {
            "this certificate has expired, or does not count yet".to_owned()
        }
        AlertDescription::CertificateUnknown => {
            "this certificate is for another cluster or another node".to_owned()
        }
        AlertDescription::CertificateRequired => "it wants a certificate".to_owned(),
        other => format!("{other:?}"),
    }
}

/// What one port or one node has refused since its start.
#[derive(Default)]
pub(crate) struct Strangers {
    counts: [AtomicU64; RefusedFor::ALL.len()],
    told: Mutex<HashMap<(String, RefusedFor), Instant>>,
}

impl Strangers {
    /// Counts one, and logs it. `who` is a host, without the port that changes with each dial.
    pub(crate) fn met(&self, who: &str, untrusted: &Untrusted) {
        let Untrusted { reason, why } = untrusted;
        self.counts[*reason as usize].fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut told = self.told.lock();
        if told.len() >= TOLD_MAX {
            told.retain(|_, at| now.duration_since(*at) < TELL_EVERY);
        }
        let at = told.get(&(who.to_owned(), *reason));
        if at.is_some_and(|at| now.duration_since(*at) < TELL_EVERY) || told.len() >= TOLD_MAX {
            return tracing::debug!(who, why, "a connection is not trusted");
        }
        told.insert((who.to_owned(), *reason), now);
        drop(told);
        tracing::warn!(who, why, "a connection is not trusted");
    }

    pub(crate) fn counts(&self) -> Refusals {
        let count = |reason: RefusedFor| self.counts[reason as usize].load(Ordering::Relaxed);
        Refusals(RefusedFor::ALL.map(count))
    }
}

/// Connections that came to nothing because one side did not trust the other, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; RefusedFor::ALL.len()]);

impl Refusals {
    /// How many there were for that reason.
    pub fn count(&self, reason: RefusedFor) -> u64 {
        self.0[reason as usize]
    }

    /// How many there were.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// As `althing_cluster_refused_total`, by reason, in Prometheus' text format.
    pub fn prometheus_text(&self) -> String {
        let name = "althing_cluster_refused_total";
        let mut text = format!(
            "# HELP {name} Connections of which one side did not trust the other.\n\
             # TYPE {name} counter\n"
        );
        for (reason, count) in RefusedFor::ALL.into_iter().zip(self.0) {
            _ = writeln!(text, "{name}{{reason=\"{}\"}} {count}", reason.label());
        }
        text
    }
}

impl fmt::Display for RefusedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

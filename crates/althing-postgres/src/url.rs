//! The URL of a server: what it says about TLS is ours, all else the driver's.

use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::server::Server;
use crate::tls::{Mode, Tls, TlsError};

/// Settings of libpq about TLS that are not supported. Leaving one out would change who is
/// believed, or who the client is.
const UNSUPPORTED: [&str; 9] = [
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslcrl",
    "sslcrldir",
    "sslcertmode",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "requiressl",
];

/// Why a URL is none by which to connect. It never holds the URL, which may have a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The driver cannot read it.
    #[error("the address of the database cannot be read: {}", in_full(.0))]
    Unreadable(tokio_postgres::Error),
    /// A mode that libpq does not have, or that is not supported.
    #[error(
        "sslmode={0} is not known: there are disable, prefer, require, verify-ca and verify-full"
    )]
    Mode(String),
    /// A setting that is not supported.
    #[error("{0} is not supported in the address of a database")]
    Unsupported(String),
    /// The certificates by which the server is to be known.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl FromStr for Server {
    type Err = UrlError;

    /// Reads the URL of a server, or libpq's pairs of words and values, and the certificates that
    /// it names.
    ///
    /// # Errors
    /// It cannot be read, it asks for something that is not supported, or the certificates cannot
    /// be read.
    fn from_str(text: &str) -> Result<Self, UrlError> {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let (rest, mode, roots) = match text.split_once('?') {
            Some((address, query)) if is_url => {
                let query = Query::read(query)?;
                (format!("{address}{}", query.rest), query.mode, query.roots)
            }
            _ => (text.to_owned(), None, None),
        };
        let mut config = Config::from_str(&rest).map_err(UrlError::Unreadable)?;
        let mode = mode.unwrap_or_else(|| match config.get_ssl_mode() {
            SslMode::Disable => Mode::Disable,
            SslMode::Require => Mode::Require,
            _ => Mode::Prefer,
        });
        config.ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        Ok(Self { config, tls: Tls::new(mode, roots.as_deref())? })
    }
}

/// The part of a URL after the question mark.
#[derive(Default)]
struct Query {
    mode: Option<Mode>,
    roots: Option<String>,
    /// What is left for the driver, with its question mark.
    rest: String,
}

impl Query {
    fn read(text: &str) -> Result<Self, UrlError> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decoded(name);
            match name.as_str() {
                "sslmode" => {
                    let value = decoded(value);
                    let mode = Mode::of(&value).ok_or(UrlError::Mode(value))?;
                    query.mode = Some(mode);
                }
                "sslrootcert" => query.roots = Some(decoded(value)),
                _ if UNSUPPORTED.contains(&name.as_str()) => {
                    return Err(UrlError::Unsupported(name));
                }
                _ => {
                    query.rest.push(if query.rest.is_empty() { '?' } else { '&' });
                    query.rest.push_str(pair);
                }
            }
        }
        Ok(query)
    }
}

/// With `%2F` and the like replaced by what they stand for.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| first == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn in_full(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(Some(error), |error| error.source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_about_tls_is_taken_out_and_the_rest_is_read_by_the_driver() {
        let url = "postgres://ana@db/chat?application_name=a&sslmode=disable&connect_timeout=7";
        let Server { config, tls } = url.parse().expect("it is read");
        assert_eq!(config.get_application_name(), Some("a"));
        assert_eq!(config.get_connect_timeout().map(|it| it.as_secs()), Some(7));
        assert_eq!((config.get_ssl_mode(), tls.mode()), (SslMode::Disable, Mode::Disable));
        let Server { config, tls } = "postgres://ana@db/chat".parse().expect("it is read");
        assert_eq!((config.get_ssl_mode(), tls.mode()), (SslMode::Prefer, Mode::Prefer));
        let Server { config, tls } =
            "host=db user=ana sslmode=require".parse().expect("it is read");
        assert_eq!((config.get_ssl_mode(), tls.mode()), (SslMode::Require, Mode::Require));
    }

    #[test]
    fn what_is_not_supported_is_refused_by_name_and_no_password_is_shown() {
        for (query, named) in [
            ("sslmode=allow", "sslmode=allow"),
            ("sslmode=verify_full", "sslmode=verify_full"),
            ("sslcert=/me.pem", "sslcert"),
            ("sslmode=verify-ca&sslrootcert=%2Fnot%2Fthere.pem", "/not/there.pem"),
            ("sslmode=require&sslrootcert=system", "verify-full"),
        ] {
            let read = format!("postgres://ana:hush@db/chat?{query}").parse::<Server>();
            let error = read.expect_err(query).to_string();
            assert!(error.contains(named) && !error.contains("hush"), "{query}: {error}");
        }
    }
}

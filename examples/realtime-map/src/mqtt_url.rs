//! `mqtt://user:password@host:port`, read into its parts.

use std::fmt;
use std::str::FromStr;

const PORT: u16 = 1883;

/// Address of a broker.
#[derive(Clone, PartialEq, Eq)]
pub struct MqttUrl {
    /// Name or number of the host.
    pub host: String,
    /// Port, 1883 unless given.
    pub port: u16,
    /// User name and password.
    pub credentials: Option<(String, String)>,
}

/// Why a text is no broker's address.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum MqttUrlError {
    /// Another scheme.
    #[error(
        "a broker's address begins with mqtt:// (TLS is not built in; put a TLS proxy in front)"
    )]
    Scheme,
    /// No host.
    #[error("a broker's address names a host, as in mqtt://127.0.0.1:1883")]
    Host,
    /// No port number.
    #[error("{0} is not a port")]
    Port(String),
}

impl FromStr for MqttUrl {
    type Err = MqttUrlError;

    fn from_str(text: &str) -> Result<Self, MqttUrlError> {
        let rest = text.strip_prefix("mqtt://").ok_or(MqttUrlError::Scheme)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let credentials = user.map(|user| {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            (name.to_owned(), password.to_owned())
        });
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| MqttUrlError::Port(port.to_owned()))?)
            }
            _ => (place, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains('/') {
            return Err(MqttUrlError::Host);
        }
        Ok(Self { host: host.to_owned(), port, credentials })
    }
}

/// Without the credentials: it is shown to everyone.
impl fmt::Display for MqttUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mqtt://{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for MqttUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_without_their_password() {
        let url: MqttUrl = "mqtt://ann:s3cret@broker.example:1884/".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port), ("broker.example", 1884));
        assert_eq!(url.credentials, Some(("ann".to_owned(), "s3cret".to_owned())));
        assert_eq!(format!("{url} {url:?}").matches("s3cret").count(), 0);
        let url: MqttUrl = "mqtt://[::1]".parse().unwrap();
        assert_eq!((url.host.as_str(), url.port), ("::1", 1883));
    }

    #[test]
    fn bad_addresses_are_refused_by_name() {
        let refused = |text: &str| text.parse::<MqttUrl>().unwrap_err();
        assert_eq!(refused("mqtts://host"), MqttUrlError::Scheme);
        assert_eq!(refused("mqtt://"), MqttUrlError::Host);
        assert_eq!(refused("mqtt://:1883"), MqttUrlError::Host);
        assert_eq!(refused("mqtt://host:99999"), MqttUrlError::Port("99999".to_owned()));
    }
}

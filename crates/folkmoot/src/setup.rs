//! The token by which the first administrator is made. It exists while nobody administers the
//! server, is printed on the server's own terminal and kept in memory only: a new start, a new
//! token.

use std::net::{IpAddr, SocketAddr};

use crate::account::token::{Token, TokenHash};
use crate::storage::ReadError;
use crate::storage::contract::Administration;

/// Where the web client takes the token. Behind `#`, so that it never reaches a server's log.
const PATH: &str = "/setup#";

#[derive(Debug, Default)]
pub(crate) struct Setup {
    token: Option<(Token, TokenHash)>,
}

impl Setup {
    /// A token if the store has no administrator; it goes on deciding who was first.
    pub(crate) async fn of(store: &impl Administration) -> Result<Self, ReadError> {
        let token = store.needs_setup().await?.then(|| {
            let token = Token::random();
            let hash = token.hash();
            (token, hash)
        });
        Ok(Self { token })
    }

    /// Whether `text` is the token.
    pub(crate) fn is_opened_by(&self, text: &str) -> bool {
        let Some((_, hash)) = &self.token else { return false };
        // Hashes are compared, so how long it takes tells nothing about the token.
        Token::parse(text).is_some_and(|token| token.hash() == *hash)
    }

    /// The link to print, if one is needed.
    pub(crate) fn link(
        &self,
        scheme: &str,
        address: SocketAddr,
        public_url: Option<&str>,
    ) -> Option<String> {
        let (token, _) = self.token.as_ref()?;
        if let Some(url) = public_url {
            return Some(format!("{url}{PATH}{}", token.reveal()));
        }
        let host = match address.ip() {
            // Listening everywhere is no address to go to.
            IpAddr::V4(ip) if ip.is_unspecified() => format!("localhost:{}", address.port()),
            IpAddr::V6(ip) if ip.is_unspecified() => format!("localhost:{}", address.port()),
            _ => address.to_string(),
        };
        Some(format!("{scheme}://{host}{PATH}{}", token.reveal()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_printed_token_opens_and_without_one_nothing_does() {
        let token = Token::random();
        let hash = token.hash();
        let setup = Setup { token: Some((token.clone(), hash)) };
        assert!(setup.is_opened_by(token.reveal()));
        assert!(!setup.is_opened_by(Token::random().reveal()));
        assert!(!setup.is_opened_by(""));
        assert!(!Setup::default().is_opened_by(token.reveal()));
    }

    #[test]
    fn the_link_can_be_opened_where_the_server_runs() {
        let token = Token::random();
        let hash = token.hash();
        let setup = Setup { token: Some((token.clone(), hash)) };
        let link = setup.link("http", SocketAddr::from(([0, 0, 0, 0], 80)), None).unwrap();
        assert_eq!(link, format!("http://localhost:80/setup#{}", token.reveal()));
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let link = setup.link("http", address, Some("https://chat.example.org")).unwrap();
        assert_eq!(link, format!("https://chat.example.org/setup#{}", token.reveal()));
        assert_eq!(Setup::default().link("http", address, None), None);
    }
}

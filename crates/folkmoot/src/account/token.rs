//! Session tokens and other secrets: made here, shown once, kept only as SHA-256.
//!
//! A token has 256 random bits, so a fast hash suffices: there is nothing to guess, unlike a
//! password.

use argon2::password_hash::rand_core::{OsRng, RngCore};
use base64ct::{Base64UrlUnpadded, Encoding};
use sha2::{Digest, Sha256};

/// Tells people and secret scanners what a leaked string is.
const PREFIX: &str = "fm_";
/// 32 bytes in base64url without padding.
const ENCODED_LEN: usize = 43;

/// A bearer token, in clear; never logged, never stored.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

/// What the store keeps of a token.
pub(crate) type TokenHash = [u8; 32];

impl Token {
    pub(crate) fn random() -> Self {
        let mut secret = [0; 32];
        OsRng.fill_bytes(&mut secret);
        Self(format!("{PREFIX}{}", Base64UrlUnpadded::encode_string(&secret)))
    }

    /// Takes what a client presents; `None` if no token of ours can look like that.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(PREFIX)?;
        let is_token = encoded.len() == ENCODED_LEN
            && encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        is_token.then(|| Self(text.to_owned()))
    }

    pub(crate) fn hash(&self) -> TokenHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The text to hand to its owner, once.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(..)")
    }
}

/// A random 64-bit id for a user, room or device: never 0, and positive when read as signed, so
/// that a listing sorted by the store is sorted for clients too.
pub(crate) fn random_id() -> u64 {
    (OsRng.next_u64() >> 1).max(1)
}

/// An invite code: 96 random bits, so that it cannot be guessed and still fits a chat message.
pub(crate) fn random_invite_code() -> String {
    let mut secret = [0; 12];
    OsRng.fill_bytes(&mut secret);
    Base64UrlUnpadded::encode_string(&secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_and_hashed_the_same_every_time() {
        let token = Token::random();
        assert_eq!(token.reveal().len(), PREFIX.len() + ENCODED_LEN);
        let parsed = Token::parse(token.reveal()).unwrap();
        assert_eq!(parsed.hash(), token.hash());
        assert_ne!(Token::random().hash(), token.hash());
    }

    #[test]
    fn what_is_not_a_token_is_refused() {
        let valid = Token::random();
        let cut = &valid.reveal()[..45];
        for text in ["", "fm_", "hello", cut, &format!("{}=", valid.reveal())] {
            assert_eq!(Token::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_token_does_not_appear_in_debug_output() {
        let token = Token::random();
        assert!(!format!("{token:?}").contains(&token.reveal()[3..]));
    }

    #[test]
    fn ids_fit_a_signed_column() {
        for _ in 0..1000 {
            assert!(i64::try_from(random_id()).is_ok_and(|id| id > 0));
        }
    }
}

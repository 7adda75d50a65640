//! What the tokens of a backend say, as Centrifugo's documentation names it.

use std::collections::{BTreeMap, BTreeSet};

use base64ct::{Base64, Encoding};
use bytes::Bytes;
use folkmoot_protocol::field::null_as_absent;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::overrides::Overrides;
use crate::server::now_ms;

/// A token for a connection.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConnectionClaims {
    /// The user's id; empty: anonymous.
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) sub: String,
    /// When it ends, in seconds since 1970; 0: never.
    #[serde(deserialize_with = "date")]
    pub(crate) exp: i64,
    #[serde(rename = "nbf", deserialize_with = "begun")]
    pub(crate) _begun: (),
    /// When the connection ends, instead of `exp`.
    #[serde(deserialize_with = "optional_date")]
    pub(crate) expire_at: Option<i64>,
    /// Named by tokens for a subscription only.
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) channel: String,
    pub(crate) info: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) b64info: String,
    /// Subscribed by the server.
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) channels: Vec<String>,
    /// The same, with more to say about each.
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) subs: BTreeMap<String, SubClaims>,
    /// What backends are told of the connection when they are asked; its client never sees it.
    pub(crate) meta: Option<Box<RawValue>>,
    /// What a backend says to the client; tokens have none.
    #[serde(skip)]
    pub(crate) data: Bytes,
}

impl ConnectionClaims {
    /// The channels that the server subscribes the connection to.
    pub(crate) fn named(&self) -> BTreeSet<String> {
        self.channels.iter().chain(self.subs.keys()).cloned().collect()
    }
}

/// How the server subscribes a connection.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SubClaims {
    pub(crate) info: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) b64info: String,
    pub(crate) data: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) b64data: String,
    #[serde(rename = "override", deserialize_with = "null_as_absent")]
    pub(crate) overrides: Overrides,
}

/// A token for a subscription.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SubscriptionClaims {
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) sub: String,
    /// The one connection that it is for; empty: all of the user.
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) client: String,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) channel: String,
    #[serde(deserialize_with = "date")]
    pub(crate) exp: i64,
    #[serde(rename = "nbf", deserialize_with = "begun")]
    pub(crate) _begun: (),
    #[serde(deserialize_with = "optional_date")]
    pub(crate) expire_at: Option<i64>,
    pub(crate) info: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) b64info: String,
    #[serde(rename = "override", deserialize_with = "null_as_absent")]
    pub(crate) overrides: Overrides,
}

/// Seconds since 1970, perhaps with a fraction, as RFC 7519 has them. A negative one would pass for
/// none, and open for ever.
pub(crate) fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    whole_seconds(f64::deserialize(deserializer)?)
}

/// The same of what a backend says; 0, if it says none.
pub(crate) fn date_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    optional_date(deserializer).map(Option::unwrap_or_default)
}

/// Seconds since 1970 from which a token counts. Whoever checks the signature checks this, but passes
/// over what is no number that it can hold, and would open before its time.
fn begun<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        Some(at) if at >= u64::MAX as f64 => Err(D::Error::custom("it never counts")),
        _ => Ok(()),
    }
}

fn optional_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Option::<f64>::deserialize(deserializer)?.map(whole_seconds).transpose()
}

fn whole_seconds<E: Error>(seconds: f64) -> Result<i64, E> {
    match seconds >= 0.0 {
        true => Ok(seconds as i64),
        false => Err(E::custom("a date before 1970")),
    }
}

/// JSON as it stands, or bytes in base64; `None`: the base64 is none.
pub(crate) fn bytes(json: Option<&RawValue>, base64: &str) -> Option<Bytes> {
    match (json, base64) {
        (_, text) if !text.is_empty() => Base64::decode_vec(text).ok().map(Bytes::from),
        (Some(json), _) => Some(Bytes::copy_from_slice(json.get().as_bytes())),
        (None, _) => Some(Bytes::new()),
    }
}

/// When what a token opens ends, in seconds since 1970; 0: never.
pub(crate) fn ends_at(exp: i64, expire_at: Option<i64>) -> i64 {
    expire_at.unwrap_or(exp).max(0)
}

/// Whether what a token would open has ended. Its own end, `exp`, is checked with its signature.
pub(crate) fn is_over(expire_at: Option<i64>) -> bool {
    expire_at.is_some_and(|at| at > 0 && at < now_ms() / 1_000)
}

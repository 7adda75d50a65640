//! What backends are asked, and what they answer, as Centrifugo's documentation names it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use folkmoot_gateway::Close;
use folkmoot_protocol::field::null_as_absent;
use folkmoot_protocol::frame::Error;
use folkmoot_protocol::{DisconnectCode, ErrorCode, Format};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Origin;
use crate::claims::{self, SubClaims};
use crate::overrides::Overrides;
use crate::session::Refusal;

/// Of every request: which connection it is about.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct About<'a> {
    client: &'a str,
    transport: &'static str,
    protocol: &'static str,
    encoding: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    /// What the backend, or a token of it, said for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Box<RawValue>>,
}

impl<'a> About<'a> {
    /// `None`: who it is, is asked for.
    pub(crate) fn new(
        client: &'a str,
        user: Option<&'a str>,
        format: Format,
        origin: &Origin,
    ) -> Self {
        let (protocol, encoding) = match format {
            Format::Json => ("json", "json"),
            Format::Protobuf => ("protobuf", "binary"),
        };
        Self { client, transport: origin.transport, protocol, encoding, user, meta: None }
    }

    pub(crate) fn with_meta(self, meta: Option<Box<RawValue>>) -> Self {
        Self { meta, ..self }
    }
}

/// JSON of a client; bytes that are none are told as a string.
pub(crate) fn payload(data: &Bytes) -> Option<Cow<'_, RawValue>> {
    if data.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(data);
    let json = serde_json::from_str::<&RawValue>(&text).map(ToOwned::to_owned);
    let json = json.or_else(|_| serde_json::value::to_raw_value(&text));
    json.ok().map(Cow::Owned)
}

#[derive(Debug, Serialize)]
pub(crate) struct ConnectRequest<'a> {
    #[serde(flatten)]
    pub(crate) about: About<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Cow<'a, RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) channels: Vec<&'a str>,
}

/// Of what is done in a channel.
#[derive(Debug, Serialize)]
pub(crate) struct WithChannel<'a> {
    #[serde(flatten)]
    pub(crate) about: About<'a>,
    pub(crate) channel: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Cow<'a, RawValue>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RpcRequest<'a> {
    #[serde(flatten)]
    pub(crate) about: About<'a>,
    pub(crate) method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Cow<'a, RawValue>>,
}

/// An answer: one of the three.
#[derive(Debug, Deserialize)]
pub(super) struct Answer<T> {
    result: Option<T>,
    error: Option<ErrorAnswer>,
    disconnect: Option<DisconnectAnswer>,
}

#[derive(Debug, Deserialize)]
struct ErrorAnswer {
    code: u32,
    #[serde(default, deserialize_with = "null_as_absent")]
    message: String,
    #[serde(default, deserialize_with = "null_as_absent")]
    temporary: bool,
}

#[derive(Debug, Deserialize)]
struct DisconnectAnswer {
    code: u32,
    #[serde(default, deserialize_with = "null_as_absent")]
    reason: String,
}

impl<T: Default> Answer<T> {
    pub(super) fn outcome(self) -> Result<T, Refusal> {
        if let Some(DisconnectAnswer { code, reason }) = self.disconnect {
            let number = u16::try_from(code).ok().filter(|code| (3000..5000).contains(code));
            let fits = reason.len() <= Close::REASON_BYTES_MAX;
            let (Some(code), true) = (number, fits) else {
                tracing::warn!(
                    code,
                    "a proxy's disconnect has a code or reason that cannot be told"
                );
                return Err(Refusal::Disconnect(DisconnectCode::ServerError.into()));
            };
            return Err(Refusal::Disconnect(Close { code, reason: reason.into() }));
        }
        if let Some(ErrorAnswer { code, message, temporary }) = self.error {
            let code = if code == 0 { ErrorCode::Internal.code() } else { code };
            return Err(Refusal::Error(Error { code, message, temporary }));
        }
        Ok(self.result.unwrap_or_default())
    }
}

/// Who has connected.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Connected {
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) user: String,
    /// In seconds since 1970; 0: never.
    #[serde(deserialize_with = "claims::date_if_any")]
    pub(crate) expire_at: i64,
    pub(crate) info: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) b64info: String,
    data: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    b64data: String,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) channels: Vec<String>,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) subs: BTreeMap<String, SubClaims>,
    pub(crate) meta: Option<Box<RawValue>>,
}

impl Connected {
    pub(crate) fn data(&self) -> Bytes {
        claims::bytes(self.data.as_deref(), &self.b64data).unwrap_or_default()
    }
}

/// How somebody is subscribed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subscribed {
    info: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    b64info: String,
    data: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    b64data: String,
    #[serde(deserialize_with = "claims::date_if_any")]
    pub(crate) expire_at: i64,
    #[serde(rename = "override", deserialize_with = "null_as_absent")]
    pub(crate) overrides: Overrides,
}

impl Subscribed {
    pub(crate) fn info(&self) -> Bytes {
        claims::bytes(self.info.as_deref(), &self.b64info).unwrap_or_default()
    }

    pub(crate) fn data(&self) -> Bytes {
        claims::bytes(self.data.as_deref(), &self.b64data).unwrap_or_default()
    }
}

/// Whether a connection or subscription goes on.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Refreshed {
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) expired: bool,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) expire_at: i64,
    info: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    b64info: String,
    /// `None`: what was said before.
    pub(crate) meta: Option<Box<RawValue>>,
}

impl Refreshed {
    /// What is said of the user from now on; `None`: what was said before.
    pub(crate) fn info(&self) -> Option<Bytes> {
        claims::bytes(self.info.as_deref(), &self.b64info).filter(|info| !info.is_empty())
    }
}

/// What a call returns, or what is published in place of what the client said.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ReplyData {
    data: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    b64data: String,
    #[serde(deserialize_with = "null_as_absent")]
    pub(crate) skip_history: bool,
}

impl ReplyData {
    pub(crate) fn data(&self) -> Bytes {
        claims::bytes(self.data.as_deref(), &self.b64data).unwrap_or_default()
    }
}

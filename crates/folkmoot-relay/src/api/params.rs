//! What the methods of the server API take.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::field::null_as_absent;
use folkmoot_protocol::frame::StreamPosition;
use folkmoot_protocol::rpc::RpcError;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::claims;
use crate::overrides::Overrides;
use crate::version::Version;

/// The longest epoch of versions: each channel keeps the newest, on disk if it is durable.
const VERSION_EPOCH_BYTES_MAX: usize = 256;

/// Reads a body; an empty one has no fields.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, RpcError> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body)
        .map_err(|error| RpcError::new(ErrorCode::BadRequest, format!("bad request: {error}")))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) method: String,
    params: Option<Box<RawValue>>,
}

impl Named {
    pub(super) fn params(&self) -> &[u8] {
        self.params.as_ref().map_or(b"{}", |params| params.get().as_bytes())
    }
}

/// What `publish` and `broadcast` share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    #[serde(deserialize_with = "as_it_stands")]
    pub(super) data: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) b64data: String,
    /// The data as it stands, where it need not be JSON.
    #[serde(skip)]
    pub(super) raw: Bytes,
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) skip_history: bool,
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) delta: bool,
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) tags: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) idempotency_key: String,
    /// What it is a state of has had so many changes; 0: it is not said.
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) version: u64,
    /// In which versions count.
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) version_epoch: String,
}

/// JSON that is there: `null` is data like any other.
fn as_it_stands<'de, D>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error>
where
    D: Deserializer<'de>,
{
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Content {
    /// The data, from either field.
    pub(super) fn bytes(&self) -> Result<Bytes, RpcError> {
        if !self.raw.is_empty() && self.b64data.is_empty() {
            return Ok(self.raw.clone());
        }
        match claims::bytes(self.data.as_deref(), &self.b64data) {
            Some(data) if !data.is_empty() => Ok(data),
            Some(_) => Err(RpcError::new(ErrorCode::BadRequest, "data is required")),
            None => Err(RpcError::new(ErrorCode::BadRequest, "b64data is no base64")),
        }
    }
}

impl Content {
    /// Which version of the data it is, if that is said.
    pub(super) fn version(&self) -> Result<Option<Arc<Version>>, RpcError> {
        let refused = |text: &str| Err(RpcError::new(ErrorCode::BadRequest, text));
        if self.version == 0 && !self.version_epoch.is_empty() {
            return refused("version_epoch needs a version");
        }
        if self.version_epoch.len() > VERSION_EPOCH_BYTES_MAX {
            let text =
                format!("version_epoch is over the limit of {VERSION_EPOCH_BYTES_MAX} bytes");
            return refused(&text);
        }
        let epoch = || self.version_epoch.as_str().into();
        let version = (self.version > 0).then(|| Version { number: self.version, epoch: epoch() });
        Ok(version.map(Arc::new))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Channel {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) channel: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Broadcast {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) channels: Vec<String>,
}

/// Which of a user's connections are meant.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Of {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) user: String,
    /// One connection; empty: all.
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) client: String,
    /// Connections that are spared.
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) whitelist: Vec<String>,
    /// One connection, by the name that its client alone was told; empty: all.
    pub(super) session: Option<String>,
    /// Refused: to pass over it would mean more connections than the caller wants.
    pub(super) label_filter: Option<IgnoredAny>,
    /// Refused without a user: it asks for the connections of all.
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) all_users: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subscribe {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) channel: String,
    info: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    b64info: String,
    data: Option<Box<RawValue>>,
    #[serde(deserialize_with = "null_as_absent")]
    b64data: String,
    pub(super) recover_since: Option<StreamPosition>,
    /// In seconds since 1970; 0: it has no end.
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) expire_at: i64,
    #[serde(rename = "override")]
    pub(super) overrides: Option<Overrides>,
}

impl Subscribe {
    pub(super) fn info(&self) -> Result<Bytes, RpcError> {
        claims::bytes(self.info.as_deref(), &self.b64info)
            .ok_or_else(|| RpcError::new(ErrorCode::BadRequest, "b64info is no base64"))
    }

    pub(super) fn data(&self) -> Result<Bytes, RpcError> {
        claims::bytes(self.data.as_deref(), &self.b64data)
            .ok_or_else(|| RpcError::new(ErrorCode::BadRequest, "b64data is no base64"))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Disconnect {
    pub(super) disconnect: Option<Code>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Code {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) code: u32,
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refresh {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) expired: bool,
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) expire_at: i64,
    /// What is said of the user from now on; `None`: what was said before.
    info: Option<Box<RawValue>>,
    /// The same as it stands, where it need not be JSON.
    #[serde(skip)]
    raw_info: Bytes,
}

impl Refresh {
    /// With the info as it stands.
    pub(super) fn raw(expired: bool, expire_at: i64, raw_info: Bytes) -> Self {
        Self { expired, expire_at, info: None, raw_info }
    }

    pub(super) fn info(&self) -> Option<Bytes> {
        let json = self.info.as_ref().map(|info| Bytes::copy_from_slice(info.get().as_bytes()));
        json.or_else(|| Some(self.raw_info.clone())).filter(|info| !info.is_empty())
    }
}

/// A call by its name.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rpc {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) method: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct List {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) pattern: String,
}

/// Commands of a batch, each an object with the method as its only key.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Batch {
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) commands: Vec<BatchCommand>,
    /// Whether they may run beside each other.
    #[serde(deserialize_with = "null_as_absent")]
    pub(super) parallel: bool,
}

/// The keys of a command with their values, each as often as it is there: a map would keep the last of
/// two that are the same, and nobody would hear of the first.
#[derive(Debug)]
pub(super) struct BatchCommand(pub(super) Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for BatchCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = BatchCommand;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with a method as its key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BatchCommand, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(BatchCommand(all))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

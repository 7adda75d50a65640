//! From a record to what it asks to publish.

use std::collections::BTreeMap;

use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::api::publish::{Asked, Plain, asked, asked_plain};
use crate::durable::{RowKey, fingerprint};
use crate::server::Server;
use crate::settings::{KafkaSettings, PublicationDataMode};

/// The value of a record that names its method itself.
#[derive(Deserialize)]
struct Command<'a> {
    method: String,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// By what a record is recognised beside its place.
pub(super) fn hash(record: &BorrowedMessage<'_>) -> u64 {
    let at = record.timestamp().to_millis().unwrap_or(0).to_le_bytes();
    fingerprint(&[&at, record.payload().unwrap_or_default()])
}

/// Reads a record.
pub(super) fn read(
    server: &Server,
    settings: &KafkaSettings,
    record: &BorrowedMessage<'_>,
    key: &RowKey,
) -> Result<Asked, RpcError> {
    let Some(value) = record.payload() else { return refused("the record has no value") };
    let header = |name: &str| header(record, name);
    let mode = &settings.publication_data_mode;
    if mode.enabled {
        let (channels, plain) = plain(record, mode, value)?;
        return asked_plain(server, channels, plain, key);
    }
    if let Some(method) = header(&settings.method_header)? {
        return asked(server, method, value, key);
    }
    let Command { method, payload } = match serde_json::from_slice(value) {
        Ok(command) => command,
        Err(error) => return refused(&format!("the record is no command: {error}")),
    };
    let payload = payload.map_or("", |payload| payload.get());
    // Connectors that copy a column of JSON may write it as a text.
    if payload.starts_with('"') {
        let text: String = serde_json::from_str(payload).unwrap_or_default();
        return asked(server, &method, text.as_bytes(), key);
    }
    asked(server, &method, payload.as_bytes(), key)
}

/// Channels and publication of a record whose headers say what its value is for.
fn plain(
    record: &BorrowedMessage<'_>,
    mode: &PublicationDataMode,
    value: &[u8],
) -> Result<(Vec<String>, Plain), RpcError> {
    let header = |name: &str| header(record, name).map(Option::unwrap_or_default);
    let channels = header(&mode.channels_header)?;
    if channels.is_empty() {
        return refused(&format!("the record has no header `{}`", mode.channels_header));
    }
    let channels = channels.split(',').map(|channel| channel.trim().to_owned()).collect();
    let delta = match header(&mode.delta_header)? {
        "" | "0" | "f" | "F" | "false" | "False" | "FALSE" => false,
        "1" | "t" | "T" | "true" | "True" | "TRUE" => true,
        _ => {
            return refused(&format!(
                "the header `{}` is neither true nor false",
                mode.delta_header
            ));
        }
    };
    let version = match header(&mode.version_header)? {
        "" => 0,
        text => match text.parse() {
            Ok(version) => version,
            Err(_) => {
                return refused(&format!("the header `{}` is no number", mode.version_header));
            }
        },
    };
    let plain = Plain {
        data: Bytes::copy_from_slice(value),
        tags: tags(record, &mode.tags_header_prefix)?,
        idempotency_key: header(&mode.idempotency_key_header)?.to_owned(),
        delta,
        version,
        version_epoch: header(&mode.version_epoch_header)?.to_owned(),
    };
    Ok((channels, plain))
}

fn tags(record: &BorrowedMessage<'_>, prefix: &str) -> Result<BTreeMap<String, String>, RpcError> {
    let mut tags = BTreeMap::new();
    for header in record.headers().into_iter().flat_map(Headers::iter) {
        let tag =
            header.key.strip_prefix(prefix).filter(|tag| !prefix.is_empty() && !tag.is_empty());
        if let Some(tag) = tag {
            tags.insert(tag.to_owned(), text(header.key, header.value)?.to_owned());
        }
    }
    Ok(tags)
}

/// The first header of this name; one without a name is never there.
fn header<'a>(record: &'a BorrowedMessage<'_>, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut headers = record.headers().into_iter().flat_map(Headers::iter);
    let found = headers.find(|header| header.key == name && !name.is_empty());
    found.map(|header| text(header.key, header.value)).transpose()
}

fn text<'a>(name: &str, value: Option<&'a [u8]>) -> Result<&'a str, RpcError> {
    std::str::from_utf8(value.unwrap_or_default())
        .or_else(|_| refused(&format!("the header `{name}` is no text")))
}

fn refused<T>(text: &str) -> Result<T, RpcError> {
    Err(RpcError::new(ErrorCode::BadRequest, text.to_owned()))
}

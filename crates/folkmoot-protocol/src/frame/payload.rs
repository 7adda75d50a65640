//! Payload fields: JSON bytes that frames carry without looking inside. In protobuf they are a
//! `bytes` field; in JSON they are embedded as they stand. Bytes that are not JSON cannot enter a
//! JSON frame. Line breaks between tokens become spaces, because a line break ends a command in the
//! JSON format.

use bytes::Bytes;
use serde::de::Deserialize;
use serde::ser::{Error, Serialize};
use serde::{Deserializer, Serializer};
use serde_json::value::RawValue;

pub(super) fn serialize<S: Serializer>(payload: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    if payload.is_empty() {
        return serializer.serialize_unit();
    }
    if payload.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        // Inside a JSON string a line break is always escaped, so these stand between tokens.
        let one_line: Vec<u8> = payload
            .iter()
            .map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte })
            .collect();
        return raw(&one_line)?.serialize(serializer);
    }
    raw(payload)?.serialize(serializer)
}

fn raw<E: Error>(json: &[u8]) -> Result<&RawValue, E> {
    serde_json::from_slice(json).map_err(|error| E::custom(format!("payload is not JSON: {error}")))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(Bytes::copy_from_slice(raw.get().as_bytes()))
}

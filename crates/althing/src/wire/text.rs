//! Text and bytes.

use std::sync::Arc;

use super::writer::put_bytes;
use super::{Depth, Value, WireError, WireField, alone};

/// A value that is a run of bytes.
macro_rules! run_of_bytes {
    ($type:ty, $as_bytes:expr, $from_bytes:expr) => {
        alone!([] $type);

        impl WireField for $type {
            fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
                if !self.is_empty() {
                    self.encode_single(number, out);
                }
            }

            fn encode_single(&self, number: u32, out: &mut Vec<u8>) {
                let as_bytes: fn(&Self) -> &[u8] = $as_bytes;
                put_bytes(number, as_bytes(self), out);
            }

            fn decode_single(value: Value<'_>) -> Result<Self, WireError> {
                let from_bytes: fn(&[u8]) -> Result<Self, WireError> = $from_bytes;
                from_bytes(value.bytes()?)
            }

            fn absent(_: Depth) -> Result<Self, WireError> {
                Ok(Self::default())
            }
        }
    };
}

fn text(bytes: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(bytes).map_err(|_| WireError::new("text that is not UTF-8"))
}

run_of_bytes!(String, |text| text.as_bytes(), |bytes| text(bytes).map(str::to_owned));
run_of_bytes!(Arc<str>, |text| text.as_bytes(), |bytes| text(bytes).map(Arc::from));
#[cfg(feature = "bytes")]
run_of_bytes!(bytes::Bytes, |bytes| bytes, |bytes| Ok(bytes::Bytes::copy_from_slice(bytes)));

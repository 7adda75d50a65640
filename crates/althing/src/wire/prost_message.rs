//! Types that `prost` generated travel as they are.

use super::WireError;

/// Implements `Wire` for types that implement `prost::Message`.
///
/// ```
/// use althing::Wire;
///
/// #[derive(Clone, PartialEq, prost::Message)]
/// struct Item {
///     #[prost(string, tag = "1")]
///     name: String,
/// }
///
/// althing::wire_prost!(Item);
///
/// let mut bytes = Vec::new();
/// Item { name: "tea".to_owned() }.encode(&mut bytes);
/// ```
#[macro_export]
macro_rules! wire_prost {
    ($($type:ty),+ $(,)?) => {$(
        impl $crate::Wire for $type {
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                $crate::wire::encode_prost(self, out);
            }

            fn decode_within(
                bytes: &[u8],
                _: $crate::wire::Depth,
            ) -> ::core::result::Result<Self, $crate::WireError> {
                $crate::wire::decode_prost(bytes)
            }
        }

        impl $crate::wire::WireField for $type {}
    )+};
}

/// Appends the message.
pub fn encode_prost<M: prost::Message>(message: &M, out: &mut Vec<u8>) {
    // A vector takes any length.
    let _ = message.encode(out);
}

/// Reads the message; prost has a limit of its own for how deeply it may nest.
///
/// # Errors
/// The bytes are no such message.
pub fn decode_prost<M: prost::Message + Default>(bytes: &[u8]) -> Result<M, WireError> {
    M::decode(bytes).map_err(|error| WireError::new(error.to_string()))
}

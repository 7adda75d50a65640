//! Values as bytes, in protobuf's encoding, for messages that leave the process.
//!
//! Only what is to travel needs it: an actor that stays on its node never touches this module.
//! Field numbers are the contract, names are not. Bytes from elsewhere are never trusted: decoding
//! arbitrary input returns an error or a value, does not panic, nests at most [`DEPTH_MAX`]
//! messages, and reserves nothing that the input only promises.
//!
//! | Rust | protobuf |
//! |---|---|
//! | struct, tuple, the arguments of a call | a message with the fields 1, 2, 3 … in their order |
//! | `()` | a message without fields |
//! | `u8`, `u16`, `u32`, `u64`, `usize`, `bool` | `uint32`, `uint64`, `bool` |
//! | `i8`, `i16`, `i32`, `i64`, `isize` | `sint32`, `sint64` |
//! | `f32`, `f64` | `float`, `double` |
//! | `String`, `Arc<str>` | `string` |
//! | `Vec<u8>`, `Bytes` (feature `bytes`) | `bytes` |
//! | `Duration` | `uint64`, nanoseconds; longer than 584 years counts as 584 years |
//! | `Timestamp` | `uint64`, milliseconds since 1970 |
//! | `Option<T>` | an `optional` field |
//! | `Vec<T>` | a `repeated` field, packed if its elements are numbers |
//! | `HashMap<K, V>`, `BTreeMap<K, V>` | a `map` field |
//! | `Result<T, E>` | a message with `oneof { T ok = 1; E error = 2; }` |
//! | `enum` without payloads | an `enum` |
//! | `enum` with a payload in some variants | a message with one `oneof` |
//! | `Box<T>`, `Arc<T>` | as `T` |
//!
//! A number, text or list that stands alone, as a reply does, is a message whose field 1 it is,
//! like protobuf's well-known wrapper types. The same holds for a list or an option inside another
//! one, or inside a `oneof`. As in proto3, a number or text that has its type's default is not
//! written, and a field that is not there reads as the default. Of a field that is there twice, the
//! later one counts. Fields that nobody knows are skipped, so that newer senders may add some.

pub(crate) mod codec;
pub(crate) mod codecs;

mod compound;
mod error;
mod number;
#[cfg(feature = "prost")]
mod prost_message;
mod reader;
mod text;
mod writer;

pub use error::WireError;
#[cfg(feature = "prost")]
#[doc(hidden)]
pub use prost_message::{decode_prost, encode_prost};
pub use reader::{DEPTH_MAX, Depth, Fields, Value};
pub use writer::put_nested;

/// A value as a protobuf message of its own.
///
/// Derive it for your own types: see the [derive macro](derive@crate::Wire).
///
/// ```
/// use althing::Wire;
///
/// #[derive(Debug, PartialEq, Wire)]
/// struct Item {
///     name: String,
///     pieces: u32,
/// }
///
/// let item = Item { name: "tea".to_owned(), pieces: 300 };
/// let mut bytes = Vec::new();
/// item.encode(&mut bytes);
/// assert_eq!(bytes, [0x0a, 3, b't', b'e', b'a', 0x10, 0xac, 0x02]);
/// assert_eq!(Item::decode(&bytes), Ok(item));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot leave its node: it has no `Wire`",
    label = "this type has no `Wire`",
    note = "derive it for a type of your own: `#[derive(althing::Wire)]`; for a `prost::Message` write `althing::wire_prost!(Type)`"
)]
pub trait Wire: Sized {
    /// Appends the value's fields to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads a value that stands `depth` messages deep in another one.
    ///
    /// # Errors
    /// The bytes are no such message, or nest too deeply.
    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError>;

    /// Reads a value.
    ///
    /// # Errors
    /// The bytes are no such message.
    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        Self::decode_within(bytes, Depth::OUTERMOST)
    }
}

/// A value as a field of a message. For a type that is a message itself, an empty `impl` is all
/// there is to write.
///
/// A field has four forms, of which only types that are no messages change the ones that differ: as
/// written in the message (`encode_field`: nothing, if it is what an absent field reads as), as one
/// certain value (`encode_single`: an element, or a variant of a `oneof`), as elements in a row
/// (`encode_repeated`), and as a list that is one value (`encode_list`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot leave its node: it has no `Wire`",
    label = "this type has no `Wire`",
    note = "derive it for a type of your own: `#[derive(althing::Wire)]`; for a `prost::Message` write `althing::wire_prost!(Type)`"
)]
pub trait WireField: Wire {
    /// Appends the field, unless it is what an absent field reads as.
    fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
        self.encode_single(number, out);
    }

    /// Appends the field in any case.
    fn encode_single(&self, number: u32, out: &mut Vec<u8>) {
        put_nested(number, out, |out| self.encode(out));
    }

    /// Reads one value.
    ///
    /// # Errors
    /// The value is of another type.
    fn decode_single(value: Value<'_>) -> Result<Self, WireError> {
        let (bytes, depth) = value.nested()?;
        Self::decode_within(bytes, depth)
    }

    /// Adds one more occurrence of the field to what was read so far.
    ///
    /// # Errors
    /// The value is of another type.
    fn merge_field(slot: &mut Option<Self>, value: Value<'_>) -> Result<(), WireError> {
        *slot = Some(Self::decode_single(value)?);
        Ok(())
    }

    /// What a field that is not there reads as.
    ///
    /// # Errors
    /// The field has to be there.
    fn absent(depth: Depth) -> Result<Self, WireError> {
        Self::decode_within(&[], depth.deeper()?)
    }

    /// Appends all elements of a repeated field.
    fn encode_repeated(items: &[Self], number: u32, out: &mut Vec<u8>) {
        for item in items {
            item.encode_single(number, out);
        }
    }

    /// Adds one occurrence of a repeated field to its elements.
    ///
    /// # Errors
    /// The value is of another type.
    fn merge_repeated(items: &mut Vec<Self>, value: Value<'_>) -> Result<(), WireError> {
        items.push(Self::decode_single(value)?);
        Ok(())
    }

    /// Appends a list that is one value: a message whose field 1 is repeated.
    fn encode_list(items: &[Self], number: u32, out: &mut Vec<u8>) {
        put_nested(number, out, |out| Self::encode_repeated(items, 1, out));
    }

    /// Reads a list that is one value.
    ///
    /// # Errors
    /// The value is of another type.
    fn decode_list(value: Value<'_>) -> Result<Vec<Self>, WireError> {
        let (bytes, depth) = value.nested()?;
        let mut fields = Fields::new(bytes, depth);
        let mut items = Vec::new();
        while let Some(value) = fields.next_field()? {
            if value.number() == 1 {
                Self::merge_repeated(&mut items, value)?;
            }
        }
        Ok(items)
    }
}

/// Adds an occurrence of the field called `name`; generated code reads messages by it.
///
/// # Errors
/// The value is of another type; the error names the field.
#[doc(hidden)]
pub fn merge<T: WireField>(
    slot: &mut Option<T>,
    value: Value<'_>,
    name: &'static str,
) -> Result<(), WireError> {
    T::merge_field(slot, value).map_err(|error| error.inside(name))
}

/// What was read of the field called `name`, or what its absence means.
///
/// # Errors
/// The field has to be there.
#[doc(hidden)]
pub fn finish<T: WireField>(
    slot: Option<T>,
    depth: Depth,
    name: &'static str,
) -> Result<T, WireError> {
    slot.map_or_else(|| T::absent(depth).map_err(|error| error.inside(name)), Ok)
}

/// Writes a value that is no message as a message whose field 1 it is.
fn encode_alone<T: WireField>(value: &T, out: &mut Vec<u8>) {
    value.encode_field(1, out);
}

/// Reads a message whose field 1 is the value.
fn decode_alone<T: WireField>(bytes: &[u8], depth: Depth) -> Result<T, WireError> {
    let mut fields = Fields::new(bytes, depth);
    let mut slot = None;
    while let Some(value) = fields.next_field()? {
        if value.number() == 1 {
            T::merge_field(&mut slot, value)?;
        }
    }
    slot.map_or_else(|| T::absent(depth), Ok)
}

/// Implements `Wire` for a type that is no message.
macro_rules! alone {
    ([$($parameters:tt)*] $type:ty) => {
        impl<$($parameters)*> $crate::wire::Wire for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                $crate::wire::encode_alone(self, out);
            }

            fn decode_within(
                bytes: &[u8],
                depth: $crate::wire::Depth,
            ) -> Result<Self, $crate::wire::WireError> {
                $crate::wire::decode_alone(bytes, depth)
            }
        }
    };
}
use alone;

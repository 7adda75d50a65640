//! Identifiers as clients see them: 64-bit integers written as 13 characters of Crockford base32,
//! lower case. The width is fixed, so text sorts like the number. There is one spelling per id:
//! upper case and similar letters (i, l, o, u) are refused, because ids serve as keys.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Characters of an id in text: 13 × 5 bits hold 64; the first character uses only four of its
/// five.
pub const ID_TEXT_LEN: usize = 13;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Says that a text is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is 13 characters of lower-case Crockford base32")]
pub struct ParseIdError;

fn encode(mut value: u64) -> [u8; ID_TEXT_LEN] {
    let mut text = [b'0'; ID_TEXT_LEN];
    for slot in text.iter_mut().rev() {
        *slot = ALPHABET[(value & 31) as usize];
        value >>= 5;
    }
    text
}

fn decode(text: &str) -> Result<u64, ParseIdError> {
    let bytes = text.as_bytes();
    // The first character carries the top four bits; a larger one would make 65.
    if bytes.len() != ID_TEXT_LEN || bytes[0] > b'f' {
        return Err(ParseIdError);
    }
    bytes.iter().try_fold(0u64, |value, byte| {
        let digit = ALPHABET.iter().position(|letter| letter == byte).ok_or(ParseIdError)?;
        Ok(value << 5 | digit as u64)
    })
}

struct IdText;

impl Visitor<'_> for IdText {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an id of 13 characters of lower-case Crockford base32")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        decode(text).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "string"))]
        pub struct $name(u64);

        impl $name {
            /// Names the thing with this number.
            pub const fn from_u64(value: u64) -> Self {
                Self(value)
            }

            /// The number behind the text.
            pub const fn as_u64(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                let text = encode(self.0);
                formatter.write_str(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                decode(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = encode(self.0);
                serializer.serialize_str(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(IdText).map(Self)
            }
        }
    )*};
}

id_types! {
    /// Names a user account.
    UserId;
    /// Names a room, a direct conversation included.
    RoomId;
    /// Names one signed-in device of a user.
    DeviceId;
    /// Names one uploaded attachment.
    AttachmentId;
    /// Names one picture that a user shows.
    PictureId;
}

macro_rules! number_types {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(type = "number"))]
        pub struct $name(u64);

        impl $name {
            /// Wraps the plain number.
            pub const fn from_u64(value: u64) -> Self {
                Self(value)
            }

            /// The plain number.
            pub const fn as_u64(self) -> u64 {
                self.0
            }

            /// The number that follows this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    )*};
}

number_types! {
    /// Counts the messages of a room: from 1, without gaps; 0 stands before the first.
    Seq;
    /// Counts the events of a stream: from 1, without gaps; 0 stands before the first.
    Offset;
    /// A moment: milliseconds since 1970 in UTC.
    UnixMillis;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_numbers_have_their_known_text() {
        for (number, text) in [
            (0, "0000000000000"),
            (31, "000000000000z"),
            (1 << 32, "0000004000000"),
            (u64::MAX, "fzzzzzzzzzzzz"),
        ] {
            assert_eq!(UserId::from_u64(number).to_string(), text);
            assert_eq!(text.parse::<UserId>(), Ok(UserId::from_u64(number)));
        }
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in [
            "",
            "0",
            "00000000000000",
            "000000000000Z",
            "000000000000i",
            "g000000000000",
            "é00000000000",
        ] {
            assert_eq!(text.parse::<RoomId>(), Err(ParseIdError), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn text_returns_the_number_and_sorts_like_it(a: u64, b: u64) {
            let (left, right) = (RoomId::from_u64(a), RoomId::from_u64(b));
            prop_assert_eq!(left.to_string().parse::<RoomId>().unwrap(), left);
            prop_assert_eq!(left.to_string().cmp(&right.to_string()), a.cmp(&b));
        }
    }
}

//! Ids, numbers and views as parts of messages between the nodes of one server (feature `wire`).
//! Clients never see this encoding; nodes of one server are of one version.

use std::str::FromStr;

use althing::WireError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::chat::{MessageView, UserView};
use crate::frame::{ClientInfo, Publication, StreamPosition};
use crate::rpc::ReadState;
use crate::{
    AttachmentId, Channel, DeviceId, DisconnectCode, Offset, PictureId, RoomId, Seq, UnixMillis,
    UserId,
};

/// Lets a type travel as another one; not for lists and options.
///
/// `wire_as!(Type as Other, |value: &Type| -> Other, |other: Other| -> Result<Type, WireError>)`
#[macro_export]
macro_rules! wire_as {
    ($type:ty as $other:ty, $to:expr, $from:expr) => {
        impl $crate::althing::Wire for $type {
            fn encode(&self, out: &mut Vec<u8>) {
                let to: fn(&Self) -> $other = $to;
                $crate::althing::Wire::encode(&to(self), out);
            }

            fn decode_within(
                bytes: &[u8],
                depth: $crate::althing::wire::Depth,
            ) -> Result<Self, $crate::althing::WireError> {
                let from: fn($other) -> Result<Self, $crate::althing::WireError> = $from;
                from(<$other as $crate::althing::Wire>::decode_within(bytes, depth)?)
            }
        }

        impl $crate::althing::wire::WireField for $type {
            fn encode_field(&self, number: u32, out: &mut Vec<u8>) {
                let to: fn(&Self) -> $other = $to;
                $crate::althing::wire::WireField::encode_field(&to(self), number, out);
            }

            fn encode_single(&self, number: u32, out: &mut Vec<u8>) {
                let to: fn(&Self) -> $other = $to;
                $crate::althing::wire::WireField::encode_single(&to(self), number, out);
            }

            fn decode_single(
                value: $crate::althing::wire::Value<'_>,
            ) -> Result<Self, $crate::althing::WireError> {
                let from: fn($other) -> Result<Self, $crate::althing::WireError> = $from;
                from(<$other as $crate::althing::wire::WireField>::decode_single(value)?)
            }

            fn absent(
                depth: $crate::althing::wire::Depth,
            ) -> Result<Self, $crate::althing::WireError> {
                let from: fn($other) -> Result<Self, $crate::althing::WireError> = $from;
                from(<$other as $crate::althing::wire::WireField>::absent(depth)?)
            }
        }
    };
}

/// A value as the JSON that clients get of it.
///
/// # Panics
/// It has no JSON, which is a bug: all views have.
pub fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("views have no failing parts")
}

/// The value of such a text.
///
/// # Errors
/// The text is none.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, WireError> {
    serde_json::from_str(text).map_err(|error| WireError::new(error.to_string()))
}

macro_rules! numbers {
    ($($type:ty),+ $(,)?) => {
        $(wire_as!($type as u64, |id| id.as_u64(), |number| Ok(Self::from_u64(number)));)+
    };
}

macro_rules! views {
    ($($type:ty),+ $(,)?) => {
        $(wire_as!($type as String, |view| to_json(view), |text| from_json(&text));)+
    };
}

numbers!(UserId, RoomId, DeviceId, AttachmentId, PictureId, Seq, Offset, UnixMillis);
views!(UserView, MessageView, ReadState);
wire_as!(Channel as String, |channel| channel.to_string(), |text| {
    Self::from_str(&text).map_err(|error| WireError::new(error.to_string()))
});
wire_as!(DisconnectCode as u32, |code| code.code(), |number| {
    Self::from_code(number).ok_or_else(|| WireError::new("an unknown disconnect code"))
});

althing::wire_prost!(Publication, ClientInfo, StreamPosition);

#[cfg(test)]
mod tests {
    use althing::Wire;

    use super::*;

    fn round_trip<T: Wire + PartialEq + std::fmt::Debug>(value: &T) {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(T::decode(&bytes).as_ref(), Ok(value));
    }

    #[test]
    fn ids_channels_and_codes_come_back_as_they_were() {
        for number in [0, 1, u64::MAX] {
            round_trip(&UserId::from_u64(number));
            round_trip(&Offset::from_u64(number));
            round_trip(&Some(Seq::from_u64(number)));
            round_trip(&vec![UserId::from_u64(number), UserId::from_u64(3)]);
            round_trip(&Channel::Room(RoomId::from_u64(number)));
        }
        round_trip(&DisconnectCode::InvalidToken);
        round_trip(&ReadState { read_seq: Seq::from_u64(4), unread: 2, mentions: 1 });
    }

    #[test]
    fn what_is_no_code_and_no_channel_is_refused() {
        let mut bytes = Vec::new();
        7_u32.encode(&mut bytes);
        assert!(DisconnectCode::decode(&bytes).is_err());
        assert!(Channel::decode(b"\x0a\x04room").is_err());
        assert!(ReadState::decode(b"\x0a\x02{}").is_err());
    }
}

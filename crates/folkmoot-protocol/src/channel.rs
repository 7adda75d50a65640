//! Channel names: `room:<id>` and `user:<id>`. Nothing else can be subscribed to, and a name has
//! one spelling.

use std::fmt;
use std::str::FromStr;

use crate::id::{RoomId, UserId};

/// Names one stream of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// The stream of a room, for its members.
    Room(RoomId),
    /// The stream of a user, subscribed by the server for each of the user's connections.
    User(UserId),
}

/// Says that a channel name is neither `room:<id>` nor `user:<id>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a channel is `room:` or `user:` followed by an id")]
pub struct ParseChannelError;

impl fmt::Display for Channel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(id) => write!(formatter, "room:{id}"),
            Self::User(id) => write!(formatter, "user:{id}"),
        }
    }
}

impl FromStr for Channel {
    type Err = ParseChannelError;

    fn from_str(text: &str) -> Result<Self, ParseChannelError> {
        let (kind, id) = text.split_once(':').ok_or(ParseChannelError)?;
        match kind {
            "room" => id.parse().map(Self::Room).map_err(|_| ParseChannelError),
            "user" => id.parse().map(Self::User).map_err(|_| ParseChannelError),
            _ => Err(ParseChannelError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_strangers_are_refused() {
        for channel in
            [Channel::Room(RoomId::from_u64(7)), Channel::User(UserId::from_u64(u64::MAX))]
        {
            assert_eq!(channel.to_string().parse(), Ok(channel));
        }
        for name in ["", "room", "room:", "room:7", "Room:0000000000007", "news:0000000000007"] {
            assert_eq!(name.parse::<Channel>(), Err(ParseChannelError), "{name:?}");
        }
    }
}

//! Where a hit stands in the order of hits, newest first; also the cursor between pages.

use std::fmt;
use std::str::FromStr;

use folkmoot_protocol::rpc::RpcError;

use crate::storage::{RoomId, Seq, UnixMillis};

/// Compared by time first; room and number make it exact, so that pages neither overlap nor skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) at: UnixMillis,
    pub(crate) room: RoomId,
    pub(crate) seq: Seq,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.at.as_u64(), self.room, self.seq.as_u64())
    }
}

impl FromStr for Place {
    type Err = RpcError;

    fn from_str(text: &str) -> Result<Self, RpcError> {
        let read = || {
            let mut parts = text.splitn(3, '.');
            let at = UnixMillis::from_u64(parts.next()?.parse().ok()?);
            let room = parts.next()?.parse().ok()?;
            let seq = Seq::from_u64(parts.next()?.parse().ok()?);
            Some(Self { at, room, seq })
        };
        read().ok_or_else(|| RpcError::invalid("cursor", "is not the `next` of a search"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_anything_else_refused() {
        let place = Place {
            at: UnixMillis::from_u64(1_795_276_800_000),
            room: RoomId::from_u64(7),
            seq: Seq::from_u64(8),
        };
        assert_eq!(place.to_string().parse(), Ok(place));
        for text in ["", "1", "1.2", "a.0000000000007.8", "1.0000000000007.-8", "1.!.8"] {
            assert!(text.parse::<Place>().is_err(), "{text:?}");
        }
    }
}

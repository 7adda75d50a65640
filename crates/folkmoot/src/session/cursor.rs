//! One connection's place in one stream: which publications to send on, which to hold back until
//! the subscription's reply is out, which were sent already.
//!
//! A client that is live sees every offset exactly once and in order, or loses the connection and
//! recovers: never a silent gap, never a double.

use std::sync::Arc;

use crate::storage::Offset;
use crate::stream::{Place, Publication};

/// Publications held back while a subscription is being made; who exceeds it starts over.
const HELD_LEN_MAX: usize = 4_096;

/// A publication is missing between what was sent and what came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap;

#[derive(Debug)]
pub(crate) enum Cursor {
    /// The stream has been joined, its position is still being asked for.
    Joining { held: Held },
    /// Everything up to here was sent.
    Live { offset: Offset },
}

/// Boxed, because a connection has a cursor for each channel and holds something back for a moment
/// only.
type Held = Option<Box<HeldBack>>;

#[derive(Debug, Default)]
pub(crate) struct HeldBack(Vec<Arc<Publication>>);

impl Cursor {
    pub(crate) fn joining() -> Self {
        Self::Joining { held: None }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Live { .. })
    }

    /// Whether to send a publication on now.
    pub(crate) fn take(&mut self, publication: &Arc<Publication>) -> Result<bool, Gap> {
        match self {
            Self::Joining { held } => held.get_or_insert_default().hold(publication),
            Self::Live { offset } => advance(offset, publication.place),
        }
    }

    /// Holds again what comes, because the stream's owner is another one now; gives what was sent so
    /// far. `None`: its position is still being asked for.
    pub(crate) fn rejoin(&mut self) -> Option<Offset> {
        let Self::Live { offset } = *self else { return None };
        *self = Self::joining();
        Some(offset)
    }

    /// Goes live after `position`; returns what was held and comes after it.
    pub(crate) fn go_live(&mut self, position: Offset) -> Result<Vec<Arc<Publication>>, Gap> {
        let live = Self::Live { offset: position };
        let Self::Joining { held } = std::mem::replace(self, live) else { return Ok(Vec::new()) };
        let mut after = Vec::new();
        for publication in held.map(|held| held.0).unwrap_or_default() {
            if self.take(&publication)? {
                after.push(publication);
            }
        }
        Ok(after)
    }
}

impl HeldBack {
    fn hold(&mut self, publication: &Arc<Publication>) -> Result<bool, Gap> {
        if self.0.len() >= HELD_LEN_MAX {
            return Err(Gap);
        }
        self.0.push(publication.clone());
        Ok(false)
    }
}

fn advance(sent: &mut Offset, place: Place) -> Result<bool, Gap> {
    match place {
        Place::Fleeting => Ok(true),
        Place::At(offset) if offset <= *sent => Ok(false),
        Place::At(offset) if offset == sent.next() => {
            *sent = offset;
            Ok(true)
        }
        Place::At(_) => Err(Gap),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use folkmoot_protocol::{Channel, RoomId};
    use proptest::prelude::*;

    use super::*;

    fn publication(place: Place) -> Arc<Publication> {
        let channel = Channel::Room(RoomId::from_u64(1));
        Arc::new(Publication::new(channel, place, Bytes::from_static(b"{}")))
    }

    fn at(offset: u64) -> Arc<Publication> {
        publication(Place::At(Offset::from_u64(offset)))
    }

    #[test]
    fn what_the_reply_covers_is_not_sent_again() {
        let mut cursor = Cursor::joining();
        for offset in 4..=7 {
            assert_eq!(cursor.take(&at(offset)), Ok(false));
        }
        let after = cursor.go_live(Offset::from_u64(5)).unwrap();
        let offsets: Vec<_> = after.iter().map(|one| one.place).collect();
        assert_eq!(offsets, [Place::At(Offset::from_u64(6)), Place::At(Offset::from_u64(7))]);
        assert_eq!(cursor.take(&at(7)), Ok(false));
        assert_eq!(cursor.take(&at(8)), Ok(true));
    }

    #[test]
    fn a_gap_is_never_passed_over() {
        let mut cursor = Cursor::Live { offset: Offset::from_u64(5) };
        assert_eq!(cursor.take(&at(7)), Err(Gap));
        let mut joining = Cursor::joining();
        assert_eq!(joining.take(&at(9)), Ok(false));
        assert!(joining.go_live(Offset::from_u64(7)).is_err());
    }

    #[test]
    fn fleeting_ones_pass_and_move_nothing() {
        let mut cursor = Cursor::Live { offset: Offset::from_u64(5) };
        assert_eq!(cursor.take(&publication(Place::Fleeting)), Ok(true));
        assert_eq!(cursor.take(&at(6)), Ok(true));
    }

    #[test]
    fn a_subscription_that_never_completes_does_not_hold_without_end() {
        let mut cursor = Cursor::joining();
        for offset in 1..=HELD_LEN_MAX as u64 {
            assert_eq!(cursor.take(&at(offset)), Ok(false));
        }
        assert_eq!(cursor.take(&at(HELD_LEN_MAX as u64 + 1)), Err(Gap));
    }

    proptest! {
        /// Whenever the position is read while the stream goes on, what is recovered up to it and
        /// what is sent after it make the whole stream, once and in order.
        #[test]
        fn recovery_and_live_join_without_seam(
            joined_at in 0u64..30, position in 0u64..30, last in 0u64..40,
        ) {
            // The stream was joined before its position was read, and both lie before its end.
            let position = position.max(joined_at);
            let last = last.max(position);
            let mut cursor = Cursor::joining();
            for offset in joined_at + 1..=position {
                cursor.take(&at(offset)).unwrap();
            }
            let mut sent: Vec<u64> = (1..=position).collect();
            let held = cursor.go_live(Offset::from_u64(position)).unwrap();
            sent.extend(held.iter().map(|one| one.frame().offset));
            for offset in position + 1..=last {
                if cursor.take(&at(offset)).unwrap() {
                    sent.push(offset);
                }
            }
            prop_assert_eq!(sent, (1..=last).collect::<Vec<_>>());
        }
    }
}

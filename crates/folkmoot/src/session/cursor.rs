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

/// Everything of a stream up to here was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent(Offset);

/// What came while a stream's position is being asked for.
#[derive(Debug, Default)]
pub(crate) struct Held(Vec<Arc<Publication>>);

impl Sent {
    pub(crate) fn up_to(offset: Offset) -> Self {
        Self(offset)
    }

    pub(crate) fn offset(self) -> Offset {
        self.0
    }

    /// Whether to send a publication on now.
    pub(crate) fn take(&mut self, publication: &Publication) -> Result<bool, Gap> {
        advance(&mut self.0, publication.place)
    }
}

impl Held {
    pub(crate) fn hold(&mut self, publication: &Arc<Publication>) -> Result<(), Gap> {
        if self.0.len() >= HELD_LEN_MAX {
            return Err(Gap);
        }
        self.0.push(publication.clone());
        Ok(())
    }

    /// What was held and comes after `position`, to be sent now, and how far the stream is sent
    /// with that.
    pub(crate) fn release(self, position: Offset) -> Result<(Vec<Arc<Publication>>, Sent), Gap> {
        let (mut after, mut sent) = (Vec::new(), Sent(position));
        for publication in self.0 {
            if sent.take(&publication)? {
                after.push(publication);
            }
        }
        Ok((after, sent))
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

    fn sent(offset: u64) -> Sent {
        Sent::up_to(Offset::from_u64(offset))
    }

    #[test]
    fn what_the_reply_covers_is_not_sent_again() {
        let mut held = Held::default();
        for offset in 4..=7 {
            held.hold(&at(offset)).unwrap();
        }
        let (after, mut sent) = held.release(Offset::from_u64(5)).unwrap();
        let offsets: Vec<_> = after.iter().map(|one| one.place).collect();
        assert_eq!(offsets, [Place::At(Offset::from_u64(6)), Place::At(Offset::from_u64(7))]);
        assert_eq!(sent.take(&at(7)), Ok(false));
        assert_eq!(sent.take(&at(8)), Ok(true));
    }

    #[test]
    fn a_gap_is_never_passed_over() {
        assert_eq!(sent(5).take(&at(7)), Err(Gap));
        let mut held = Held::default();
        held.hold(&at(9)).unwrap();
        assert!(held.release(Offset::from_u64(7)).is_err());
    }

    #[test]
    fn fleeting_ones_pass_and_move_nothing() {
        let mut sent = sent(5);
        assert_eq!(sent.take(&publication(Place::Fleeting)), Ok(true));
        assert_eq!(sent.take(&at(6)), Ok(true));
    }

    #[test]
    fn a_subscription_that_never_completes_does_not_hold_without_end() {
        let mut held = Held::default();
        for offset in 1..=HELD_LEN_MAX as u64 {
            assert_eq!(held.hold(&at(offset)), Ok(()));
        }
        assert_eq!(held.hold(&at(HELD_LEN_MAX as u64 + 1)), Err(Gap));
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
            let mut held = Held::default();
            for offset in joined_at + 1..=position {
                held.hold(&at(offset)).unwrap();
            }
            let mut got: Vec<u64> = (1..=position).collect();
            let (after, mut sent) = held.release(Offset::from_u64(position)).unwrap();
            got.extend(after.iter().map(|one| one.frame().offset));
            for offset in position + 1..=last {
                if sent.take(&at(offset)).unwrap() {
                    got.push(offset);
                }
            }
            prop_assert_eq!(got, (1..=last).collect::<Vec<_>>());
        }
    }
}

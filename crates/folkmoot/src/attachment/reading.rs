//! Pieces on their way to this node, until each is here whole. The sender of an upload may have two
//! of it on their way, and has given up what it sends anew.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::storage::AttachmentId;

/// One piece must be here by then: a client makes its pieces as large as its line carries in about
/// a second.
pub(super) const PIECE_TIME_MAX: Duration = Duration::from_secs(60);
/// Of one upload at once: the second comes while the first is answered.
const AT_ONCE_MAX: usize = 2;

/// The pieces that this node reads at present.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pieces: Mutex<Pieces>,
}

#[derive(Debug, Default)]
struct Pieces {
    begun: u64,
    of_uploads: HashMap<AttachmentId, Vec<Piece>>,
}

#[derive(Debug)]
struct Piece {
    number: u64,
    offset: u64,
    /// Dropping it ends the reading.
    _goes_on: oneshot::Sender<()>,
}

/// A piece is among those being read until this is dropped.
struct Listed<'a> {
    reading: &'a Reading,
    id: AttachmentId,
    number: u64,
}

impl Reading {
    /// Reads a piece that begins at `offset`, until another one comes in its place.
    pub(super) async fn whole(
        &self,
        id: AttachmentId,
        offset: u64,
        piece: impl Future<Output = Result<Bytes, RpcError>>,
    ) -> Result<Bytes, RpcError> {
        let (_listed, given_up) = self.list(id, offset);
        let refused = |text: String| Err(RpcError::new(ErrorCode::BadRequest, text));
        tokio::select! {
            piece = tokio::time::timeout(PIECE_TIME_MAX, piece) => match piece {
                Ok(piece) => piece,
                Err(_) => refused(format!("the piece took longer than {PIECE_TIME_MAX:?}")),
            },
            _ = given_up => {
                refused("another piece of this upload has come in place of this one".to_owned())
            }
        }
    }

    fn list(&self, id: AttachmentId, offset: u64) -> (Listed<'_>, oneshot::Receiver<()>) {
        let (goes_on, given_up) = oneshot::channel();
        let mut pieces = self.pieces.lock();
        pieces.begun += 1;
        let number = pieces.begun;
        let others = pieces.of_uploads.entry(id).or_default();
        others.retain(|other| other.offset < offset);
        if others.len() == AT_ONCE_MAX {
            // The sender of this one knows that the first of them has come, or sends too many.
            let first = others.iter().map(|other| other.offset).min();
            others.retain(|other| Some(other.offset) != first);
        }
        others.push(Piece { number, offset, _goes_on: goes_on });
        drop(pieces);
        (Listed { reading: self, id, number }, given_up)
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let mut pieces = self.reading.pieces.lock();
        let Some(others) = pieces.of_uploads.get_mut(&self.id) else { return };
        others.retain(|piece| piece.number != self.number);
        if others.is_empty() {
            pieces.of_uploads.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const PIECE: Bytes = Bytes::from_static(b"a piece");

    fn id() -> AttachmentId {
        AttachmentId::from_u64(1)
    }

    #[tokio::test]
    async fn two_pieces_come_at_once_and_one_that_is_sent_anew_takes_their_place() {
        let reading = Reading::default();
        let first = reading.whole(id(), 0, pending());
        let second = reading.whole(id(), 7, pending());
        let both = async { tokio::join!(first, second) };
        tokio::pin!(both);
        assert!(futures_util::poll!(&mut both).is_pending());
        assert!(futures_util::poll!(&mut both).is_pending(), "they go on beside each other");
        assert_eq!(reading.whole(id(), 0, ready(Ok(PIECE))).await.unwrap(), PIECE);
        let (first, second) = both.await;
        assert!(first.is_err() && second.is_err(), "their sender gave both up");
        assert!(reading.pieces.lock().of_uploads.is_empty());
    }

    #[tokio::test]
    async fn a_third_piece_ends_the_first_and_not_the_second() {
        let reading = Reading::default();
        let mut readings: Vec<_> =
            (0..3).map(|number| Box::pin(reading.whole(id(), number * 7, pending()))).collect();
        for reading in &mut readings {
            assert!(futures_util::poll!(reading).is_pending());
        }
        assert!(futures_util::poll!(&mut readings[0]).is_ready());
        assert!(futures_util::poll!(&mut readings[1]).is_pending());
        drop(readings);
        assert!(reading.pieces.lock().of_uploads.is_empty());
    }
}

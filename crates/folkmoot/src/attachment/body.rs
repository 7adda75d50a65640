//! The bytes of a file as they come, with an end to patience: what is silent or far too slow is
//! given up.

use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;
use futures_util::{Stream, StreamExt};
use tokio::time::Instant;

use super::media_type;

/// Who has sent one byte now and then for some time keeps a place for ever: so much a second must
/// have come by then. The slowest lines of telephones had more.
const PACE_BYTES_PER_S: u64 = 1_024;
/// How long the rest of a refused file is read, so that its sender gets to hear why.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// How long a sender is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// A sender that says nothing for so long has gone.
    pub(super) silence_max: Duration,
    /// From then on the pace is looked at.
    pub(super) pace_from: Duration,
}

impl Patience {
    /// With one request that carries a whole file.
    pub(super) const WITH_A_REQUEST: Self =
        Self { silence_max: Duration::from_secs(60), pace_from: Duration::from_secs(60) };

    /// Whether a sender is too slow to be waited for.
    fn is_over(self, elapsed: Duration, bytes: u64) -> bool {
        elapsed >= self.pace_from && bytes < elapsed.as_secs() * PACE_BYTES_PER_S
    }
}

/// A body that is read piece by piece, with an end to patience.
pub(super) struct Body<S> {
    stream: std::pin::Pin<Box<S>>,
    is_over: bool,
    drain_bytes_max: u64,
    patience: Patience,
    begun: Instant,
    bytes: u64,
}

impl<S, E> Body<S>
where
    S: Stream<Item = Result<Bytes, E>>,
    E: std::error::Error,
{
    pub(super) fn new(stream: S, drain_bytes_max: u64, patience: Patience) -> Self {
        let (stream, begun) = (Box::pin(stream), Instant::now());
        Self { stream, is_over: false, drain_bytes_max, patience, begun, bytes: 0 }
    }

    /// The next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, RpcError> {
        let piece = tokio::time::timeout(self.patience.silence_max, self.stream.next()).await;
        let ended = |reason: String| {
            RpcError::new(ErrorCode::BadRequest, format!("the file ended early: {reason}"))
        };
        match piece {
            Ok(Some(Ok(piece))) => {
                self.bytes += piece.len() as u64;
                if self.patience.is_over(self.begun.elapsed(), self.bytes) {
                    self.is_over = true;
                    return Err(ended(format!("less than {PACE_BYTES_PER_S} bytes a second")));
                }
                Ok(Some(piece))
            }
            Ok(None) => {
                self.is_over = true;
                Ok(None)
            }
            Ok(Some(Err(error))) => {
                self.is_over = true;
                Err(ended(error.to_string()))
            }
            Err(_) => {
                self.is_over = true;
                Err(ended(format!("nothing came for {} s", self.patience.silence_max.as_secs())))
            }
        }
    }

    /// As much of the beginning as tells what it is.
    pub(super) async fn head(&mut self) -> Result<Bytes, RpcError> {
        let mut head = BytesMut::new();
        while head.len() < media_type::HEAD_LEN {
            let Some(piece) = self.next().await? else { break };
            head.extend_from_slice(&piece);
        }
        Ok(head.freeze())
    }

    /// Reads on after a refusal: a sender whose connection is closed in the middle never sees the
    /// answer.
    pub(super) async fn drain(mut self) {
        let mut left = self.drain_bytes_max;
        let mut reading = pin!(async {
            while !self.is_over && left > 0 {
                match self.next().await {
                    Ok(Some(piece)) => left = left.saturating_sub(piece.len() as u64),
                    Ok(None) | Err(_) => break,
                }
            }
        });
        let _ = tokio::time::timeout(DRAIN_MAX, &mut reading).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_a_byte_now_and_then_is_not_waited_for() {
        let second = Duration::from_secs(1);
        let is_over = |elapsed, bytes| Patience::WITH_A_REQUEST.is_over(elapsed, bytes);
        assert!(!is_over(59 * second, 1), "it may only have begun");
        assert!(is_over(60 * second, 60 * 1_024 - 1));
        assert!(!is_over(60 * second, 60 * 1_024));
        assert!(is_over(3_600 * second, 1 << 20));
    }
}

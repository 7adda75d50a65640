//! The body of a request, which has to come: one that halts would keep its socket and its place for
//! as long as it likes. Each part gives it more time, so a large one may take its own.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::doorman::Visit;

/// What a body has to come to in a second, once the time for its beginning is over: the slowest
/// lines of telephones had more.
const PACE_BYTES_PER_S: u64 = 1_024;

/// However much has come, a halt is waited out for so many times the time for the beginning. So it is
/// for who has said who they are, from the beginning: their line may stand still for a while.
const HALT_FACTOR: u32 = 6;

/// A body on its way.
#[derive(Debug)]
pub(super) struct Coming {
    body: Incoming,
    /// How long it may still be waited for. What reads it takes its own time.
    left: Duration,
    left_max: Duration,
    /// Who sends it, until they were given as long as there is.
    by: Option<Arc<Visit>>,
    /// While it is waited for.
    late: Option<Pin<Box<Sleep>>>,
}

/// Why a body has not come.
#[derive(Debug)]
pub(super) enum NotCome {
    /// Its sender has gone, or does not keep to HTTP.
    Broken(hyper::Error),
    TooSlow,
}

impl Coming {
    /// A body whose beginning is waited for so long.
    pub(super) fn new(body: Incoming, patience: Duration, by: Arc<Visit>) -> Self {
        let left_max = patience.saturating_mul(HALT_FACTOR);
        Self { body, left: patience, left_max, by: Some(by), late: None }
    }
}

impl Body for Coming {
    type Data = Bytes;
    type Error = NotCome;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, NotCome>>> {
        let Self { body, left, left_max, by, late } = &mut *self;
        let Poll::Ready(came) = Pin::new(body).poll_frame(context) else {
            if late.is_none() && by.take_if(|visit| visit.is_known()).is_some() {
                *left = *left_max;
            }
            ready!(late.get_or_insert_with(|| Box::pin(sleep(*left))).as_mut().poll(context));
            return Poll::Ready(Some(Err(NotCome::TooSlow)));
        };
        if let Some(late) = late.take() {
            *left = late.deadline().saturating_duration_since(Instant::now());
        }
        if let Some(Ok(frame)) = &came {
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            let more = Duration::from_millis(bytes * 1_000 / PACE_BYTES_PER_S);
            *left = (*left + more).min(*left_max);
        }
        Poll::Ready(came.map(|frame| frame.map_err(NotCome::Broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Display for NotCome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => error.fmt(f),
            Self::TooSlow => write!(f, "less than {PACE_BYTES_PER_S} bytes of it came in a second"),
        }
    }
}

impl Error for NotCome {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Broken(error) => error.source(),
            Self::TooSlow => None,
        }
    }
}

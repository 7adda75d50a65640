//! The task of a scheduled actor. Its run is made where it runs: actors that wait for a worker, which
//! may be many, have none yet.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Run;
use crate::address::place::AnyPlace;

pub(super) enum Scheduled {
    /// `None` once the run was made.
    Due(Option<Arc<dyn AnyPlace>>),
    Begun(Box<Run>),
}

impl Scheduled {
    pub(super) fn new(place: Arc<dyn AnyPlace>) -> Self {
        Self::Due(Some(place))
    }
}

impl Future for Scheduled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            match this {
                Self::Due(place) => {
                    let place = place.take().expect("replaced at once");
                    *this = Self::Begun(Box::new(Run::new(place)));
                }
                Self::Begun(run) => return Pin::new(run).poll(cx),
            }
        }
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        if let Self::Due(Some(place)) = self {
            drop(Run::new(place.clone()));
        }
    }
}

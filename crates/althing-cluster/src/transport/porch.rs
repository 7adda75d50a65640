//! Where connections are until they have shown who they are: bounded, and whoever has been there
//! for the longest makes room.
//!
//! A node shows itself within milliseconds. So strangers that say nothing, or say it slowly, keep
//! no node out by their number; each takes its place at once, without waiting for another to go.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::protocol::Broken;
use crate::tls::{RefusedFor, Untrusted};

/// Connections at one time that have not shown who they are.
const STRANGERS_MAX: usize = 1_024;

/// The porch of one port.
#[derive(Clone, Default)]
pub(crate) struct Porch(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    last: u64,
    /// In the order in which they came; each is told to go by dropping its sender.
    places: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The place of one connection; it is free again once this is dropped.
pub(crate) struct Place {
    porch: Porch,
    number: u64,
    dismissed: oneshot::Receiver<()>,
}

impl Porch {
    /// Takes the place of a connection that has just come; the oldest one makes room if it has to.
    pub(crate) fn enter(&self) -> Place {
        let (stay, dismissed) = oneshot::channel();
        let mut waiting = self.0.lock();
        waiting.last += 1;
        let number = waiting.last;
        if waiting.places.len() >= STRANGERS_MAX {
            waiting.places.pop_first();
        }
        waiting.places.insert(number, stay);
        drop(waiting);
        Place { porch: self.clone(), number, dismissed }
    }
}

impl Place {
    /// Has a connection show who it is, unless it has to make room before.
    pub(crate) async fn hold<T>(
        mut self,
        greeting: impl Future<Output = Result<T, Broken>>,
    ) -> Result<T, Broken> {
        tokio::select! {
            biased;
            greeted = greeting => greeted,
            _ = &mut self.dismissed => {
                let why = "it did not show who it is before so many others had come";
                Err(Untrusted::new(RefusedFor::Unfinished, why).into())
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.porch.0.lock().places.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn who_has_been_there_for_the_longest_makes_room_and_who_comes_is_heard() {
        let porch = Porch::default();
        let silent: Vec<_> = (0..STRANGERS_MAX).map(|_| porch.enter()).collect();
        let node = porch.enter();
        assert_eq!(porch.0.lock().places.len(), STRANGERS_MAX);
        let mut silent = silent.into_iter();
        let first = silent.next().expect("it came first");
        let held = timeout(Duration::from_secs(5), first.hold(pending::<Result<(), _>>())).await;
        assert!(matches!(held, Ok(Err(Broken::Untrusted(_)))), "it makes room");
        assert!(node.hold(ready(Ok(()))).await.is_ok());
        let mut second = silent.next().expect("it came next");
        assert!(
            second.dismissed.try_recv().is_err_and(|it| it == oneshot::error::TryRecvError::Empty)
        );
        drop((second, silent));
        assert_eq!(porch.0.lock().places.len(), 0, "no place is kept");
    }
}

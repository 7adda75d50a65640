//! Futures beside the test's own: clients that act at the same time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

/// A future that runs beside the test's own, started by `World::spawn`. Awaited, it yields what
/// that future does; dropped, the future goes on.
#[derive(Debug)]
pub struct Client<T> {
    output: oneshot::Receiver<T>,
}

impl<T> Client<T> {
    /// The client, and what is to run.
    pub(crate) fn new(future: impl Future<Output = T>) -> (Self, impl Future<Output = ()>) {
        let (sender, output) = oneshot::channel();
        let task = async move {
            // Nobody may want to know.
            let _ = sender.send(future.await);
        };
        (Self { output }, task)
    }
}

impl<T> Future for Client<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let output = Pin::new(&mut self.get_mut().output).poll(cx);
        output.map(|output| output.expect("a client's future runs to its end, or the test fails"))
    }
}

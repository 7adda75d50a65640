//! Runs a question on the spot if nothing stands in its way, and hands it back if it has to wait.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Polls `question` once; returns it if it waits, to be awaited elsewhere.
pub async fn at_once<F>(question: F) -> Option<Pin<Box<F>>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut question = Box::pin(question);
    let is_over = poll_fn(|cx| Poll::Ready(question.as_mut().poll(cx).is_ready())).await;
    (!is_over).then_some(question)
}

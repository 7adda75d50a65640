//! What a client has sent to actors that have no room: it waits in a line for each actor, so that one
//! whose mailbox stays full holds up nothing else that its client wants.
//!
//! Each message keeps the room of its question while it waits, so all lines of a client together are
//! as long as its questions may be many.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use althing::ActorId;
use parking_lot::Mutex;

use super::Conversation;

/// A message on its way to its actor.
pub(super) type HandingOver = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The lines of one client; an actor has one as long as a message waits for it.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<HashMap<ActorId, VecDeque<HandingOver>>>>);

impl Conversation {
    /// Hands a message over, or has it wait behind those that wait for the same actor. Called for one
    /// after the other.
    pub(super) async fn in_line(&self, to: ActorId, mut message: HandingOver) {
        if let Some(line) = self.lines.0.lock().get_mut(&to) {
            line.push_back(message);
            return;
        }
        if poll_fn(|cx| Poll::Ready(message.as_mut().poll(cx).is_ready())).await {
            return;
        }
        self.lines.0.lock().insert(to.clone(), VecDeque::new());
        let lines = self.lines.clone();
        let gone = self.answers.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = lines.serve(&to, message) => {}
                () = gone.closed() => {}
            }
        });
    }
}

impl Lines {
    /// Hands over what waits for one actor, in order.
    async fn serve(&self, to: &ActorId, first: HandingOver) {
        let mut next = Some(first);
        while let Some(message) = next {
            message.await;
            let mut lines = self.0.lock();
            next = lines.get_mut(to).and_then(VecDeque::pop_front);
            if next.is_none() {
                lines.remove(to);
            }
        }
    }
}

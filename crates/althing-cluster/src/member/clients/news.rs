//! What a client hears of nodes without asking again: the view now and at each change.
//!
//! One that may talk and not look hears where nodes are, because it has to find another when its own
//! goes, and nothing else of them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Conversation;
use crate::capability::Capability;
use crate::client::protocol::{Answer, Sight};

impl Conversation {
    /// Tells the view until the client goes.
    pub(super) fn tell_changes(&self, number: u64, room: OwnedSemaphorePermit) {
        let on = self.clone();
        tokio::spawn(async move {
            let mut views = on.shared.view.subscribe();
            let gone = on.answers.clone();
            // The room stays taken for as long as there is something to tell.
            let each = Arc::new(Semaphore::new(1));
            let tell = async {
                loop {
                    let Ok(turn) = each.clone().acquire_owned().await else { return };
                    views.borrow_and_update();
                    on.say(number, Answer::View(on.sight()), turn);
                    if views.changed().await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = tell => {}
                () = gone.closed() => {}
            }
            drop(room);
        });
    }

    fn sight(&self) -> Sight {
        let sight = Sight::from(self.shared.sight());
        if self.may(Capability::Look) { sight } else { sight.addresses() }
    }
}

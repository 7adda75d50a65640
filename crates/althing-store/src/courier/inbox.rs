//! What turns have left since the carrier last looked: bounded, because the store has it as well.

use althing::{ActorId, WeakRef};
use parking_lot::Mutex;

use super::carrier::{Carrier, Look};
use crate::delivery::Posting;

/// Postings that wait for the carrier, at most: those of a few transactions. What does not fit is
/// read from the store.
const POSTED_MAX: usize = 131_072;

#[derive(Default)]
pub(super) struct Inbox {
    posted: Mutex<Posted>,
}

#[derive(Default)]
struct Posted {
    postings: Vec<(ActorId, Posting)>,
    has_missed: bool,
    carrier: Option<WeakRef<Carrier>>,
}

impl Inbox {
    pub(super) fn set_carrier(&self, carrier: WeakRef<Carrier>) {
        self.posted.lock().carrier = Some(carrier);
    }

    /// Whether somebody still takes from it.
    pub(super) fn is_open(&self) -> bool {
        self.posted.lock().carrier.as_ref().is_none_or(|carrier| carrier.upgrade().is_some())
    }

    pub(super) fn put(&self, owner: &ActorId, postings: &[Posting]) {
        let mut posted = self.posted.lock();
        let is_first = posted.postings.is_empty();
        // After one that was missed, none may overtake it.
        if posted.has_missed || posted.postings.len() + postings.len() > POSTED_MAX {
            posted.has_missed = true;
        } else {
            let postings = postings.iter().map(|posting| (owner.clone(), posting.clone()));
            posted.postings.extend(postings);
        }
        let carrier = posted.carrier.as_ref().filter(|_| is_first).and_then(WeakRef::upgrade);
        // Released before telling: the carrier looks here.
        drop(posted);
        if let Some(carrier) = carrier {
            // A mailbox that is full has something in it that makes the carrier look.
            _ = carrier.send(Look).try_tell();
        }
    }

    /// What has been left, and whether something was missed.
    pub(super) fn take(&self) -> (Vec<(ActorId, Posting)>, bool) {
        let mut posted = self.posted.lock();
        (std::mem::take(&mut posted.postings), std::mem::take(&mut posted.has_missed))
    }
}

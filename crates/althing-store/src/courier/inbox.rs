//! What turns have left since the carrier last looked, and who is about to leave something for the
//! first time: bounded, because the store has it as well.

use std::mem::take;

use althing::{ActorId, WeakRef};
use parking_lot::{Mutex, MutexGuard};

use super::carrier::{Carrier, Look};
use crate::delivery::Posting;

/// Postings that wait for the carrier, at most: those of a few transactions. What does not fit is
/// read from the store.
const POSTED_MAX: usize = 131_072;

#[derive(Default)]
pub(super) struct Inbox {
    posted: Mutex<Posted>,
}

/// What the carrier takes: the first letters of lives before all that was left.
pub(super) struct Taken {
    pub(super) firsts: Vec<(ActorId, String)>,
    pub(super) postings: Vec<(ActorId, Posting)>,
    /// Whether there was more than that.
    pub(super) has_missed: bool,
}

#[derive(Default)]
struct Posted {
    /// Owners, and the names of the first letters of their lives.
    firsts: Vec<(ActorId, String)>,
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

    /// An owner is about to leave the first letter of its life, under that name.
    pub(super) fn came(&self, owner: &ActorId, first: &str) {
        let mut posted = self.posted.lock();
        let is_first = posted.is_empty();
        if posted.has_missed || posted.firsts.len() >= POSTED_MAX {
            posted.has_missed = true;
        } else {
            posted.firsts.push((owner.clone(), first.to_owned()));
        }
        Self::wake(posted, is_first);
    }

    pub(super) fn put(&self, owner: &ActorId, postings: &[Posting]) {
        let mut posted = self.posted.lock();
        let is_first = posted.is_empty();
        // After one that was missed, none may overtake it.
        if posted.has_missed || posted.postings.len() + postings.len() > POSTED_MAX {
            posted.has_missed = true;
        } else {
            let postings = postings.iter().map(|posting| (owner.clone(), posting.clone()));
            posted.postings.extend(postings);
        }
        Self::wake(posted, is_first);
    }

    fn wake(posted: MutexGuard<'_, Posted>, is_first: bool) {
        let carrier = posted.carrier.as_ref().filter(|_| is_first).and_then(WeakRef::upgrade);
        // Released before telling: the carrier looks here.
        drop(posted);
        if let Some(carrier) = carrier {
            // A mailbox that is full has something in it that makes the carrier look.
            _ = carrier.send(Look).try_tell();
        }
    }

    pub(super) fn take(&self) -> Taken {
        let mut posted = self.posted.lock();
        let (firsts, postings) = (take(&mut posted.firsts), take(&mut posted.postings));
        Taken { firsts, postings, has_missed: take(&mut posted.has_missed) }
    }
}

impl Posted {
    fn is_empty(&self) -> bool {
        self.firsts.is_empty() && self.postings.is_empty()
    }
}

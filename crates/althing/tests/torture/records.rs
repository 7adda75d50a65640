//! What is written down while a program runs, to be judged after it: messages, asks under way, and
//! events of interest.
//!
//! A record is an atomic word or a line in a list; nothing here waits for anything of the runtime.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use althing::Sequence;
use tokio::time::Instant;

/// What has become of a message, as bits.
pub(crate) const HANDLED: u32 = 1;
pub(crate) const DROPPED: u32 = 2;
/// A send handed it back.
pub(crate) const RETURNED: u32 = 4;
/// A send said that it was taken.
pub(crate) const ACCEPTED: u32 = 8;
/// `cancel` of its timer returned true.
pub(crate) const CANCELLED: u32 = 16;
/// Its ask was told that it did not run.
pub(crate) const DID_NOT_RUN: u32 = 32;
/// Its handler sent a reply, and somebody still waited.
pub(crate) const REPLIED: u32 = 64;
/// Its ask ended or was dropped.
pub(crate) const ASK_OVER: u32 = 128;
/// Its handler keeps or drops the reply, so that its ask may go without one.
pub(crate) const REPLY_WITHHELD: u32 = 256;
/// It was made in a `stopping` hook, and ends with that life.
pub(crate) const LAST_WORD: u32 = 512;
/// Its handler has ended with a reply.
pub(crate) const ENDED: u32 = 1_024;
/// It was handed on to its target, which was not asked whether it has room.
pub(crate) const HANDED_ON: u32 = 2_048;

/// Why a message was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Tell,
    Ask,
    After,
    /// By a timer that wakes its actor.
    Wake,
    Pipe,
    /// Of a stream.
    Item,
    /// A copy for a group, or what a drop sends: without a number.
    Loose,
}

/// How much each sender has sent to each actor, as far as somebody knows: a matrix, by target and
/// sender.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    counts: Vec<u16>,
}

/// Senders that are told apart: actors, clients, and as many detached tasks and overlapping reads
/// as there is room for.
pub(crate) const SENDERS_MAX: usize = 56;

impl Known {
    pub(crate) fn nothing(targets: usize) -> Self {
        Self { counts: vec![0; targets * SENDERS_MAX] }
    }

    pub(crate) fn learn(&mut self, other: &Self) {
        for (own, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *own = (*own).max(*theirs);
        }
    }

    /// Counts one more message of `sender` to `target`, and returns its number.
    pub(crate) fn count(&mut self, target: usize, sender: usize) -> u16 {
        let count = &mut self.counts[target * SENDERS_MAX + sender];
        *count += 1;
        *count
    }

    /// What is known to have been sent to `target`, by sender.
    pub(crate) fn sent_to(&self, target: usize) -> Box<[u16]> {
        self.counts[target * SENDERS_MAX..][..SENDERS_MAX].into()
    }
}

/// One message.
pub(crate) struct Mail {
    pub(crate) id: u32,
    pub(crate) target: usize,
    pub(crate) purpose: Purpose,
    /// Who sent it, and how many it had sent to the target by then; absent where no order is
    /// promised.
    pub(crate) number: Option<(usize, u16)>,
    /// What its sender knew to have been sent to the target before; absent where no order is
    /// promised.
    pub(crate) before: Option<Box<[u16]>>,
    pub(crate) flags: AtomicU32,
    /// When its receiver's guard was asked first, in the run's own count; zero: not yet.
    pub(crate) arrived: AtomicU64,
    /// Not to be handled before, and only in this life.
    pub(crate) due: Option<(Instant, u32)>,
    /// The message whose handler replies in place of this one's.
    pub(crate) next: OnceLock<Arc<Mail>>,
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 12] = [
            "handled",
            "dropped",
            "returned",
            "accepted",
            "cancelled",
            "told it did not run",
            "replied",
            "ask over",
            "reply withheld",
            "last word",
            "ended",
            "handed on",
        ];
        write!(f, "{:?} {} to {}", self.purpose, self.id, self.target)?;
        if let Some((sender, number)) = self.number {
            write!(f, " number {number} of sender {sender}")?;
        }
        let flags = self.flags.load(SeqCst);
        let set = NAMES.iter().enumerate().filter(|(bit, _)| flags & (1 << bit) != 0);
        let set: Vec<_> = set.map(|(_, name)| *name).collect();
        write!(f, " (arrived at {}; {})", self.arrived.load(SeqCst), set.join(", "))
    }
}

impl Mail {
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags.load(SeqCst) & flag != 0
    }

    /// The message whose handler replies in the end.
    pub(crate) fn last(self: &Arc<Self>) -> Arc<Self> {
        let mut last = self.clone();
        while let Some(next) = last.next.get().cloned() {
            last = next;
        }
        last
    }

    /// Sets a flag; returns whether it was set before.
    pub(crate) fn set(&self, flag: u32) -> bool {
        self.flags.fetch_or(flag, SeqCst) & flag != 0
    }
}

/// Causes for which an actor may have ended, restarted or refused, as bits.
pub(crate) const STOPPED: u32 = 1;
pub(crate) const KILLED: u32 = 2;
pub(crate) const STOPPED_ITSELF: u32 = 4;
pub(crate) const PASSIVATED: u32 = 8;
pub(crate) const PANICKED: u32 = 16;
pub(crate) const TIED: u32 = 32;
pub(crate) const SHUT_DOWN: u32 = 64;
pub(crate) const NOT_STARTED: u32 = 128;
/// Its idle time may have run out.
pub(crate) const IDLED: u32 = 256;
/// Sent away, though no other node is there.
pub(crate) const MOVED: u32 = 512;
pub(crate) const FENCED: u32 = 1_024;

/// An ask made by an actor's handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) began: Instant,
    /// Whether its handler lets nothing else of its actor run meanwhile.
    pub(crate) is_alone: bool,
    pub(crate) ended: Option<u64>,
}

/// Something that happened, for the checks at the end.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// `was_stopped`: the watched one was known to be stopped right after.
    Watched {
        by: usize,
        on: usize,
        was_stopped: bool,
    },
    Unwatched {
        by: usize,
        on: usize,
    },
    Terminated {
        by: usize,
        on: usize,
    },
    Linked {
        one: usize,
        other: usize,
    },
    Child {
        parent: usize,
        child: usize,
    },
    Published {
        topic: usize,
        sequence: Sequence,
    },
    Subscribed {
        who: usize,
        topic: usize,
        since: Sequence,
    },
    Unsubscribed {
        who: usize,
        topic: usize,
        last: Sequence,
    },
    Heard {
        who: usize,
        topic: usize,
        sequence: Sequence,
        previous: Sequence,
        stamp: u64,
        /// What its publisher knew to have been sent to the subscriber.
        before: Box<[u16]>,
    },
    /// `before`: what its caller knew to have been sent to the actor.
    StopRequested {
        on: usize,
        before: Box<[u16]>,
    },
    Started {
        who: usize,
    },
    Stopping {
        who: usize,
    },
    /// A state went after its `stopping` hook: events after `last` are not for it.
    Ended {
        who: usize,
        topic: usize,
        last: Sequence,
    },
    /// About to be activated.
    Activated {
        who: usize,
    },
    /// About to be asked by a message that is not followed, or given a state.
    Poked {
        who: usize,
    },
    /// A stream that began after `began` had read up to `after`: then it gave an event or a gap.
    Read {
        topic: usize,
        after: Sequence,
        what: Reading,
        /// Whether it has just begun, and how many events had come after its beginning by then.
        began_behind: Option<u64>,
    },
}

/// What a stream gave.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    Event(Sequence),
    /// Nothing is kept up to that one.
    Gap(Sequence, Sequence),
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Which promise; a shrunk program must break the same.
    pub(crate) promise: &'static str,
    pub(crate) details: String,
}

//! A lane: the tells of a running handler to one actor, before they are handed over to its mailbox.
//!
//! A handler that tells one actor again and again would lock that mailbox for each message. Instead it attaches a lane to the
//! mailbox, once, writes message after message into it without a lock, and detaches it later. What has been written counts as
//! queued from that moment: whoever locks the mailbox first moves it into the queue. So nobody who has learned of a message by
//! any means can get in front of it; only waking the actor is put off until the lane is detached.
//!
//! Layout and ownership: `slots` before `written` hold messages. The thread that opened the lane alone writes slots and
//! `written` (release); who holds the mailbox's lock alone reads slots from `taken` up to `written` (acquire), owns `taken` and
//! `next`. `capacity` changes only while the lane is attached to nothing, by the thread that opens it.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::sync::{AtomicU32, Ordering};

/// Messages in one lane: with more, handing over saves nothing further.
pub(crate) const LANE_LEN: usize = 32;

/// Messages on their way into one mailbox.
pub(crate) struct Lane<T> {
    slots: [UnsafeCell<MaybeUninit<T>>; LANE_LEN],
    written: AtomicU32,
    capacity: UnsafeCell<u32>,
    taken: UnsafeCell<u32>,
    next: UnsafeCell<Option<Arc<Lane<T>>>>,
}

// SAFETY: slots pass from the writing thread to a reading one by release and acquire of `written`, each once; the other cells
// have one owner at a time, as the header says.
unsafe impl<T: Send> Send for Lane<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Lane<T> {}

impl<T> Lane<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: [const { UnsafeCell::new(MaybeUninit::uninit()) }; LANE_LEN],
            written: AtomicU32::new(0),
            capacity: UnsafeCell::new(0),
            taken: UnsafeCell::new(0),
            next: UnsafeCell::new(None),
        }
    }

    /// Writes a message, unless the lane is full.
    ///
    /// # Safety
    /// Only the thread that opened the lane may write.
    #[inline]
    pub(crate) unsafe fn write(&self, make: impl FnOnce() -> T) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        // SAFETY: the capacity is this thread's to read and write.
        if written == unsafe { *self.capacity.get() } {
            return false;
        }
        // SAFETY: the slot is free, because it lies beyond `written`, and nobody else writes.
        unsafe { self.slot(written).write(make()) };
        self.written.store(written + 1, Ordering::Release);
        true
    }
}

/// The lanes that are attached to one mailbox; its lock protects this.
pub(crate) struct Lanes<T> {
    first: Option<Arc<Lane<T>>>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { first: None }
    }
}

impl<T> Lanes<T> {
    /// Whether no lane is attached.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Attaches a lane for up to `capacity` messages, at most [`LANE_LEN`].
    ///
    /// # Safety
    /// The lane is attached to nothing, and the caller is the thread that will write to it.
    pub(crate) unsafe fn attach(&mut self, lane: &Arc<Lane<T>>, capacity: u32) {
        debug_assert!(capacity as usize <= LANE_LEN, "a lane has no more slots");
        lane.written.store(0, Ordering::Relaxed);
        // SAFETY: nobody else knows of a lane that is attached to nothing.
        unsafe { *lane.capacity.get() = capacity };
        // SAFETY: as above.
        unsafe { *lane.taken.get() = 0 };
        // SAFETY: as above.
        unsafe { *lane.next.get() = self.first.take() };
        self.first = Some(lane.clone());
    }

    /// Moves what has been written to the end of `queue`; returns how many messages that was.
    pub(crate) fn absorb(&self, queue: &mut Vec<T>) -> u32 {
        let mut moved = 0;
        let mut next = self.first.as_deref();
        while let Some(lane) = next {
            moved += lane.drain_into(queue);
            // SAFETY: `next` is ours: the caller holds the mailbox's lock.
            next = unsafe { (*lane.next.get()).as_deref() };
        }
        moved
    }

    /// Takes a lane out of the list; returns how many more messages it could have taken. Absorb first.
    pub(crate) fn detach(&mut self, lane: &Arc<Lane<T>>) -> u32 {
        // SAFETY: `next` is ours, as above.
        let rest = unsafe { (*lane.next.get()).take() };
        let mut place = &mut self.first;
        loop {
            let Some(found) = place else {
                unreachable!("a lane is detached from where it is attached")
            };
            if Arc::ptr_eq(found, lane) {
                break;
            }
            // SAFETY: `next` is ours, and `found` keeps the lane alive while we hold on to it.
            place = unsafe { &mut *found.next.get() };
        }
        *place = rest;
        // SAFETY: the thread that opened the lane detaches it.
        let capacity = unsafe { *lane.capacity.get() };
        // SAFETY: `taken` is ours: the caller holds the mailbox's lock.
        capacity - unsafe { *lane.taken.get() }
    }
}

impl<T> Lane<T> {
    fn slot(&self, index: u32) -> *mut T {
        self.slots[index as usize].get().cast()
    }

    /// Moves messages not yet taken; the caller holds the lock of the mailbox that the lane is attached to.
    fn drain_into(&self, queue: &mut Vec<T>) -> u32 {
        let written = self.written.load(Ordering::Acquire);
        // SAFETY: `taken` belongs to who holds the lock.
        let taken = unsafe { &mut *self.taken.get() };
        let fresh = written - *taken;
        queue.reserve(fresh as usize);
        for index in *taken..written {
            // SAFETY: slots before `written` are filled, and each is read once, because `taken` moves on.
            queue.push(unsafe { self.slot(index).read() });
        }
        *taken = written;
        fresh
    }
}

impl<T> Drop for Lane<T> {
    fn drop(&mut self) {
        // Messages are left only if the mailbox went while the lane was attached.
        let (written, taken) = (self.written.load(Ordering::Acquire), *self.taken.get_mut());
        for slot in &mut self.slots[taken as usize..written as usize] {
            // SAFETY: filled and not read, as in `drain_into`.
            unsafe { slot.get_mut().assume_init_drop() };
        }
    }
}

#[cfg(all(test, althing_loom))]
mod model {
    //! Every interleaving of a handler that tells by a lane, a runner that drains, and a third thread that has learned of the
    //! first tell and sends after it: `make loom`.

    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Arc as LoomArc, Mutex};
    use loom::thread;

    use super::{Arc, Lane, Lanes};

    #[derive(Default)]
    struct Mailbox {
        queue: Vec<u32>,
        lanes: Lanes<u32>,
        handled: Vec<u32>,
    }

    impl Mailbox {
        fn run(&mut self) {
            let Self { queue, lanes, handled } = self;
            lanes.absorb(queue);
            handled.append(queue);
        }
    }

    #[test]
    fn what_follows_from_a_tell_is_queued_behind_it() {
        loom::model(|| {
            let mailbox = LoomArc::new(Mutex::new(Mailbox::default()));
            let told = LoomArc::new(AtomicU32::new(0));
            let lane = Arc::new(Lane::new());
            // SAFETY: this thread writes.
            unsafe { mailbox.lock().unwrap().lanes.attach(&lane, 2) };
            let follower = thread::spawn({
                let (mailbox, told) = (mailbox.clone(), told.clone());
                move || {
                    let seen = told.load(Ordering::Acquire);
                    let mut mailbox = mailbox.lock().unwrap();
                    mailbox.run();
                    let Mailbox { queue, lanes, .. } = &mut *mailbox;
                    lanes.absorb(queue);
                    queue.push(100 + seen);
                }
            });
            for n in 1..=2 {
                // SAFETY: this thread attached the lane.
                assert!(unsafe { lane.write(|| n) });
                told.store(n, Ordering::Release);
            }
            // SAFETY: as above.
            assert!(!unsafe { lane.write(|| 3) }, "full");
            {
                let mut mailbox = mailbox.lock().unwrap();
                let Mailbox { queue, lanes, .. } = &mut *mailbox;
                lanes.absorb(queue);
                assert_eq!(lanes.detach(&lane), 0);
                assert!(lanes.is_empty());
            }
            follower.join().unwrap();
            let mut mailbox = mailbox.lock().unwrap();
            mailbox.run();
            let order = &mailbox.handled;
            let at = |n: u32| order.iter().position(|m| *m == n).expect("nothing is lost");
            assert_eq!(order.len(), 3);
            assert!(at(1) < at(2));
            let follows = order.iter().find(|m| **m >= 100).copied().unwrap();
            for n in 1..=follows - 100 {
                assert!(at(n) < at(follows), "{order:?}");
            }
        });
    }
}

//! A lane: the tells of a running handler to one actor, before they are handed over to its mailbox.
//!
//! A handler that tells one actor again and again would lock that mailbox for each message. Instead
//! it attaches a lane to the mailbox, once, writes message after message into it without a lock,
//! and detaches it later. What has been written counts as queued from that moment: whoever locks
//! the mailbox first moves it into the queue. So nobody who has learned of a message by any means
//! can get in front of it; only waking the actor is put off until the lane is detached.
//!
//! Layout and ownership: `slots` before `written` hold messages. The thread that opened the lane
//! alone writes slots and `written` (release); who holds the mailbox's lock alone reads slots from
//! `taken` up to `written` (acquire), owns `taken` and `next`. `capacity` changes only while the
//! lane is attached to nothing, by the thread that opens it. What the one side writes lies in other
//! cache lines than what the other writes.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use crate::sync::{AtomicU32, Ordering};

/// Messages in one lane: with more, handing over saves nothing further.
pub(crate) const LANE_LEN: usize = 32;

/// Messages on their way into one mailbox.
pub(crate) struct Lane<T> {
    slots: [UnsafeCell<MaybeUninit<T>>; LANE_LEN],
    writer: Apart<Writer>,
    reader: Apart<Reader<T>>,
}

/// Two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// What the thread that opened the lane writes.
struct Writer {
    written: AtomicU32,
    capacity: UnsafeCell<u32>,
}

/// What belongs to who holds the lock.
struct Reader<T> {
    taken: UnsafeCell<u32>,
    next: UnsafeCell<Option<Arc<Lane<T>>>>,
}

// SAFETY: slots pass from the writing thread to a reading one by release and acquire of `written`,
// each once; the other cells have one owner at a time, as the header says.
unsafe impl<T: Send> Send for Lane<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Lane<T> {}

impl<T> Lane<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: [const { UnsafeCell::new(MaybeUninit::uninit()) }; LANE_LEN],
            writer: Apart(Writer { written: AtomicU32::new(0), capacity: UnsafeCell::new(0) }),
            reader: Apart(Reader { taken: UnsafeCell::new(0), next: UnsafeCell::new(None) }),
        }
    }

    /// Whether another message can be written.
    ///
    /// # Safety
    /// The caller is the thread that opened the lane.
    #[inline]
    pub(crate) unsafe fn has_room(&self) -> bool {
        // SAFETY: the capacity is this thread's to read and write.
        let capacity = unsafe { *self.writer.0.capacity.get() };
        self.writer.0.written.load(Ordering::Relaxed) < capacity
    }

    /// Writes a message.
    ///
    /// # Safety
    /// The caller is the thread that opened the lane, which has room.
    #[inline]
    pub(crate) unsafe fn write(&self, message: T) {
        let written = self.writer.0.written.load(Ordering::Relaxed);
        // SAFETY: a lane with room has a slot there.
        let slot = unsafe { self.slot(written) };
        // SAFETY: the slot is free, because it lies beyond `written`, and nobody else writes.
        unsafe { slot.write(message) };
        self.writer.0.written.store(written + 1, Ordering::Release);
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
        lane.writer.0.written.store(0, Ordering::Relaxed);
        // SAFETY: nobody else knows of a lane that is attached to nothing.
        unsafe { *lane.writer.0.capacity.get() = capacity };
        // SAFETY: as above.
        unsafe { *lane.reader.0.taken.get() = 0 };
        // SAFETY: as above.
        unsafe { *lane.reader.0.next.get() = self.first.take() };
        self.first = Some(lane.clone());
    }

    /// Empties a lane from which all has been absorbed, for up to `capacity` messages more; returns
    /// how many it could still have taken.
    ///
    /// # Safety
    /// The caller holds the lock of the mailbox that the lane is attached to, and is the thread
    /// that writes to it.
    pub(crate) unsafe fn renew(lane: &Lane<T>, capacity: u32) -> u32 {
        debug_assert!(capacity as usize <= LANE_LEN, "a lane has no more slots");
        // SAFETY: the caller's promise.
        let taken = unsafe { &mut *lane.reader.0.taken.get() };
        debug_assert_eq!(*taken, lane.writer.0.written.load(Ordering::Relaxed), "absorbed");
        // SAFETY: the caller's promise.
        let before = unsafe { std::mem::replace(&mut *lane.writer.0.capacity.get(), capacity) };
        // Nobody reads this one without the lock.
        lane.writer.0.written.store(0, Ordering::Relaxed);
        before - std::mem::take(taken)
    }

    /// Moves what has been written to the end of `queue`; returns how many messages that was.
    pub(crate) fn absorb(&self, queue: &mut Vec<T>) -> u32 {
        let mut moved = 0;
        let mut next = self.first.as_deref();
        while let Some(lane) = next {
            moved += lane.drain_into(queue);
            // SAFETY: `next` is ours: the caller holds the mailbox's lock.
            next = unsafe { (*lane.reader.0.next.get()).as_deref() };
        }
        moved
    }

    /// Takes a lane out of the list; returns how many more messages it could have taken. Absorb
    /// first.
    pub(crate) fn detach(&mut self, lane: &Arc<Lane<T>>) -> u32 {
        // SAFETY: `next` is ours, as above.
        let rest = unsafe { (*lane.reader.0.next.get()).take() };
        let mut place = &mut self.first;
        loop {
            let Some(found) = place else {
                unreachable!("a lane is detached from where it is attached")
            };
            if Arc::ptr_eq(found, lane) {
                break;
            }
            // SAFETY: `next` is ours, and `found` keeps the lane alive while we hold on to it.
            place = unsafe { &mut *found.reader.0.next.get() };
        }
        *place = rest;
        // SAFETY: the thread that opened the lane detaches it.
        let capacity = unsafe { *lane.writer.0.capacity.get() };
        // SAFETY: `taken` is ours: the caller holds the mailbox's lock.
        capacity - unsafe { *lane.reader.0.taken.get() }
    }
}

impl<T> Lane<T> {
    /// # Safety
    /// There is a slot of that index, or one before it.
    #[inline]
    unsafe fn slot(&self, index: u32) -> *mut T {
        let first = ptr::from_ref(&self.slots).cast::<UnsafeCell<MaybeUninit<T>>>();
        // SAFETY: the caller's promise: within the array or at its end.
        UnsafeCell::raw_get(unsafe { first.add(index as usize) }).cast()
    }

    /// Moves messages not yet taken; the caller holds the lock of the mailbox that the lane is
    /// attached to.
    fn drain_into(&self, queue: &mut Vec<T>) -> u32 {
        let written = self.writer.0.written.load(Ordering::Acquire);
        // SAFETY: `taken` belongs to who holds the lock.
        let taken = unsafe { &mut *self.reader.0.taken.get() };
        let fresh = written - *taken;
        if fresh == 0 {
            return 0;
        }
        queue.reserve(fresh as usize);
        // SAFETY: no more is taken than was written, so there is such a slot.
        let first = unsafe { self.slot(*taken) };
        // SAFETY: there is room for so many behind the last message.
        let end = unsafe { queue.as_mut_ptr().add(queue.len()) };
        // SAFETY: slots before `written` are filled, and each is read once, because `taken` moves
        // on; the queue is elsewhere.
        unsafe { ptr::copy_nonoverlapping(first, end, fresh as usize) };
        // SAFETY: so many have just been written behind the last one.
        unsafe { queue.set_len(queue.len() + fresh as usize) };
        *taken = written;
        fresh
    }
}

impl<T> Drop for Lane<T> {
    fn drop(&mut self) {
        // Messages are left only if the mailbox went while the lane was attached.
        let written = self.writer.0.written.load(Ordering::Acquire);
        let taken = *self.reader.0.taken.get_mut();
        for slot in &mut self.slots[taken as usize..written as usize] {
            // SAFETY: filled and not read, as in `drain_into`.
            unsafe { slot.get_mut().assume_init_drop() };
        }
    }
}

#[cfg(all(test, althing_loom))]
mod model {
    //! Every interleaving of a handler that tells by a lane, a runner that drains, and a third
    //! thread that has learned of the first tell and sends after it: `make loom`.

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
                assert!(unsafe { lane.has_room() });
                // SAFETY: as above, and there is room.
                unsafe { lane.write(n) };
                told.store(n, Ordering::Release);
            }
            // SAFETY: as above.
            assert!(!unsafe { lane.has_room() }, "full");
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

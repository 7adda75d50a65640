//! Where an actor's state lies: in its place if it fits into a word, else in a box that is there
//! only while the actor is in memory.
//!
//! So an address of an actor that sleeps, or lives on another node, costs no state, however large
//! that would be.
//!
//! Layout: `word` holds the state itself if `IS_INLINE`, else a pointer from `Box::into_raw`, which
//! is null while there is none. Whoever holds the actor's claim owns what is in it; this type does
//! not know whether it is full, its user does.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};

/// The place of a state of type `A`.
pub(crate) struct Storage<A> {
    /// A number would lose what a pointer may point to, and may not hold a state's padding,
    /// whenever the storage is moved.
    word: UnsafeCell<MaybeUninit<usize>>,
    state: PhantomData<A>,
}

impl<A> Storage<A> {
    const IS_INLINE: bool =
        size_of::<A>() <= size_of::<usize>() && align_of::<A>() <= align_of::<usize>();

    pub(crate) fn empty() -> Self {
        Self { word: UnsafeCell::new(MaybeUninit::new(0)), state: PhantomData }
    }

    /// Where the state is; valid while there is one. No reference is made on the way: a handler
    /// that waits may hold one.
    #[inline]
    pub(crate) fn get(&self) -> *mut A {
        if Self::IS_INLINE {
            self.word.get().cast()
        } else {
            // SAFETY: the word is a pointer, and changes only under the claim, which the caller
            // holds.
            unsafe { self.word.get().cast::<*mut A>().read() }
        }
    }

    /// # Safety
    /// The caller has the storage to itself, and it is empty.
    pub(crate) unsafe fn put(&self, state: A) {
        if Self::IS_INLINE {
            // SAFETY: size and alignment fit; the caller's promise.
            unsafe { self.word.get().cast::<A>().write(state) };
        } else {
            let state = Box::into_raw(Box::new(state));
            // SAFETY: a pointer fits into the word; the caller's promise.
            unsafe { self.word.get().cast::<*mut A>().write(state) };
        }
    }

    /// Drops the state.
    ///
    /// # Safety
    /// The caller has the storage to itself, and it is full; it is empty afterwards, even if the
    /// state's drop panics.
    pub(crate) unsafe fn clear(&self) {
        let state = self.get();
        if Self::IS_INLINE {
            // SAFETY: it is there, by the caller's promise.
            unsafe { state.drop_in_place() };
        } else {
            // SAFETY: a null pointer fits into the word; the caller's promise.
            unsafe { self.word.get().cast::<*mut A>().write(std::ptr::null_mut()) };
            // SAFETY: the pointer came from `Box::into_raw` and is used once.
            drop(unsafe { Box::from_raw(state) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Storage;

    #[test]
    fn an_address_costs_a_word_of_state_at_most() {
        assert_eq!(size_of::<Storage<[u8; 4096]>>(), size_of::<usize>());
        assert_eq!(size_of::<Storage<u8>>(), size_of::<usize>());
    }

    #[test]
    fn a_state_comes_back_as_it_was_put_and_is_dropped_once() {
        let large = std::sync::Arc::new(());
        let storage = Storage::empty();
        // SAFETY: the storage is ours and empty.
        unsafe { storage.put((large.clone(), [7_u64; 9])) };
        // SAFETY: it is full.
        assert_eq!(unsafe { &*storage.get() }.1, [7; 9]);
        // SAFETY: as above.
        unsafe { storage.clear() };
        assert_eq!(std::sync::Arc::strong_count(&large), 1);
        let small = Storage::empty();
        // SAFETY: the storage is ours and empty.
        unsafe { small.put(9_u32) };
        // SAFETY: it is full.
        assert_eq!(unsafe { *small.get() }, 9);
    }
}

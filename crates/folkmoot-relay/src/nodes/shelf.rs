//! What owners of channels that move to this node have sent ahead, until they begin here.

use std::collections::HashMap;

use althing::Wire;
use parking_lot::Mutex;

use crate::channels::MovedChannel;

/// A part of what an owner keeps.
#[derive(Debug, Clone, Wire)]
pub(crate) struct Page {
    /// 0 is the first one.
    pub(crate) number: u32,
    pub(crate) is_last: bool,
    /// Of the owner that keeps it.
    pub(crate) life: u64,
    /// In which epoch channels begin.
    pub(crate) epochs: u64,
    pub(crate) channels: Vec<MovedChannel>,
}

/// What an owner keeps, whole.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) epochs: u64,
    pub(crate) channels: Vec<MovedChannel>,
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    of: Mutex<HashMap<u32, Incoming>>,
}

#[derive(Debug)]
struct Incoming {
    /// Pages that have come, in their order.
    pages: u32,
    is_whole: bool,
    life: u64,
    moved: Moved,
}

impl Shelf {
    pub(super) fn put(&self, shard: u32, page: Page) {
        let mut of = self.of.lock();
        if page.number == 0 {
            let moved = Moved { epochs: page.epochs, channels: Vec::new() };
            let life = page.life;
            of.insert(shard, Incoming { pages: 0, is_whole: false, life, moved });
        }
        let Some(incoming) = of.get_mut(&shard).filter(|one| one.pages == page.number) else {
            of.remove(&shard);
            return;
        };
        incoming.pages += 1;
        incoming.is_whole = page.is_last;
        for part in page.channels {
            // Of one that does not fit into a page, keys and history go on in the next.
            match incoming.moved.channels.last_mut().filter(|last| last.name == part.name) {
                Some(last) => {
                    last.keys.extend(part.keys);
                    last.history.extend(part.history);
                }
                None => incoming.moved.channels.push(part),
            }
        }
    }

    /// Forgets what comes from a life before that one.
    pub(super) fn forget_before(&self, shard: u32, life: u64) {
        let mut of = self.of.lock();
        if of.get(&shard).is_some_and(|incoming| incoming.life < life) {
            of.remove(&shard);
        }
    }

    /// What there is, if it is whole.
    pub(super) fn take(&self, shard: u32) -> Option<Moved> {
        let incoming = self.of.lock().remove(&shard)?;
        incoming.is_whole.then_some(incoming.moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u32, is_last: bool) -> Page {
        Page { number, is_last, life: 3, epochs: 7, channels: Vec::new() }
    }

    #[test]
    fn only_what_came_whole_and_in_order_is_taken_over_and_only_once() {
        let shelf = Shelf::default();
        shelf.put(1, page(0, false));
        assert!(shelf.take(1).is_none(), "half of it");
        shelf.put(1, page(0, false));
        shelf.put(1, page(2, true));
        assert!(shelf.take(1).is_none(), "one is missing");
        shelf.put(1, page(0, false));
        shelf.put(1, page(1, true));
        assert_eq!(shelf.take(1).unwrap().epochs, 7);
        assert!(shelf.take(1).is_none());
        shelf.put(1, page(0, true));
        shelf.forget_before(1, 3);
        assert!(shelf.take(1).is_some(), "its own life asks late");
        shelf.put(1, page(0, true));
        shelf.forget_before(1, 4);
        assert!(shelf.take(1).is_none(), "another life has begun elsewhere");
    }
}

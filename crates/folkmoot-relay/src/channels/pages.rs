//! What an owner of channels keeps, in parts of which each fits into a message between nodes: so it
//! travels to the node that the owner moves to, however much it is.

use super::MovedChannel;
use crate::nodes::Page;

/// What one message with a part of the state has about, in bytes.
const PAGE_BYTES: usize = 1 << 20;

/// What an owner keeps, in parts.
pub(super) struct Pages<I> {
    moved: I,
    /// Of a channel whose history did not fit into the last one.
    rest: Option<MovedChannel>,
    life: u64,
    epochs: u64,
}

impl<I: Iterator<Item = MovedChannel>> Pages<I> {
    pub(super) fn new(moved: I, life: u64, epochs: u64) -> Self {
        Self { moved, rest: None, life, epochs }
    }

    /// The next part, and whether it is the last one.
    pub(super) fn next(&mut self, number: u32) -> (Page, bool) {
        let (mut channels, mut len, mut is_last) = (Vec::new(), 0, false);
        while len <= PAGE_BYTES {
            let Some(mut moved) = self.rest.take().or_else(|| self.moved.next()) else {
                is_last = true;
                break;
            };
            len += moved.name.len();
            len += moved.keys.iter().map(|one| one.key.len() + 64).sum::<usize>();
            self.rest = cut(&mut moved, &mut len);
            channels.push(moved);
        }
        let (life, epochs) = (self.life, self.epochs);
        (Page { number, is_last, life, epochs, channels }, is_last)
    }
}

/// Takes away from a channel's history what does not fit into a page any more; all else of the
/// channel comes with the first part.
fn cut(moved: &mut MovedChannel, len: &mut usize) -> Option<MovedChannel> {
    let mut fits = 0;
    while *len <= PAGE_BYTES && fits < moved.history.len() {
        *len += moved.history[fits].data.len() + 64;
        fits += 1;
    }
    if fits == moved.history.len() {
        return None;
    }
    let history = moved.history.split_off(fits);
    let (name, position, version) = (moved.name.clone(), moved.position, None);
    let MovedChannel { history_until, numbers_until, .. } = *moved;
    let keys = Vec::new();
    Some(MovedChannel { name, position, history, history_until, numbers_until, keys, version })
}

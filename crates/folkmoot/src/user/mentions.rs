//! The unread mentions of a user in one room, by the numbers of the messages.
//!
//! A user is in many rooms and mentioned in few: where there is none, this is one empty word.

use std::collections::BTreeSet;

use crate::storage::Seq;

/// Unread mentions remembered by number in one room; the count stops there.
pub(crate) const MENTIONS_LEN: usize = 1_000;

#[derive(Debug, Clone, Default)]
#[expect(clippy::box_collection, reason = "three words otherwise, in each room of each user")]
pub(crate) struct Mentions(Option<Box<BTreeSet<Seq>>>);

impl Mentions {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |known| known.len())
    }

    pub(crate) fn contains(&self, seq: Seq) -> bool {
        self.0.as_ref().is_some_and(|known| known.contains(&seq))
    }

    /// Lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Seq> {
        self.0.iter().flat_map(|known| known.iter().copied())
    }

    /// Adds one; the oldest goes if there are too many.
    pub(super) fn insert(&mut self, seq: Seq) {
        let known = self.0.get_or_insert_default();
        known.insert(seq);
        if known.len() > MENTIONS_LEN {
            known.pop_first();
        }
    }

    pub(super) fn remove(&mut self, seq: Seq) {
        if let Some(known) = &mut self.0 {
            known.remove(&seq);
        }
        self.let_go_if_empty();
    }

    /// Takes out all up to and including one.
    pub(super) fn read_to(&mut self, seq: Seq) {
        if let Some(known) = &mut self.0 {
            **known = known.split_off(&seq.next());
        }
        self.let_go_if_empty();
    }

    fn let_go_if_empty(&mut self) {
        self.0.take_if(|known| known.is_empty());
    }
}

/// How they are kept says nothing: none is none.
impl PartialEq for Mentions {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Mentions {}

impl FromIterator<Seq> for Mentions {
    fn from_iter<I: IntoIterator<Item = Seq>>(mentions: I) -> Self {
        let known: BTreeSet<Seq> = mentions.into_iter().collect();
        Self((!known.is_empty()).then(|| Box::new(known)))
    }
}

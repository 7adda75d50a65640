//! The subscribers of one channel, in a list that can be read page by page while some come and go:
//! whoever is there all the while is on some page.

use std::collections::HashMap;
use std::sync::Arc;

use super::channel::Subscriber;

#[derive(Debug, Default)]
pub(super) struct Subscribers {
    list: Vec<Subscriber>,
    /// Where in the list is whose, by the ids of connections.
    places: HashMap<Arc<str>, usize>,
}

impl Subscribers {
    pub(super) fn insert(&mut self, subscriber: Subscriber) {
        let id = subscriber.connection.id.clone();
        match self.places.get(&id) {
            Some(place) => self.list[*place] = subscriber,
            None => {
                self.places.insert(id, self.list.len());
                self.list.push(subscriber);
            }
        }
    }

    pub(super) fn remove(&mut self, client: &str) -> Option<Subscriber> {
        let place = self.places.remove(client)?;
        let gone = self.list.swap_remove(place);
        if let Some(moved) = self.list.get(place) {
            self.places.insert(moved.connection.id.clone(), place);
        }
        if self.list.is_empty() {
            // Gives the memory back.
            *self = Self::default();
        }
        Some(gone)
    }

    pub(super) fn get_mut(&mut self, client: &str) -> Option<&mut Subscriber> {
        let place = self.places.get(client)?;
        self.list.get_mut(*place)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Subscriber> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Subscriber> {
        self.list.iter_mut()
    }

    /// So many before a place, and the place for the next page; `None`: there is none.
    ///
    /// From the end to the beginning: who moves into a gap comes from the end, so it was read before,
    /// and is at worst read twice.
    pub(super) fn page(&self, before: usize, len_max: usize) -> (&[Subscriber], Option<usize>) {
        let end = before.min(self.list.len());
        let first = end.saturating_sub(len_max);
        (&self.list[first..end], (first > 0).then_some(first))
    }
}

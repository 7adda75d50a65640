//! A map in a sorted list: it takes what is in it and little more, where a tree or a table of the
//! same takes up to twice as much. For what there is of each user or connection, in thousands of
//! which a kibibyte counts, and which changes seldom: to add one moves those behind it.

/// A full list makes room for this part of what it has.
const GROWTH: usize = 8;

/// By rising key.
#[derive(Debug, Clone)]
pub(crate) struct SortedMap<K, V>(Vec<(K, V)>);

impl<K: Ord + Copy, V> SortedMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn contains_key(&self, key: K) -> bool {
        self.place(key).is_ok()
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.place(key).ok().map(|place| &self.0[place].1)
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.place(key).ok().map(|place| &mut self.0[place].1)
    }

    /// Adds one, instead of another of its key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.place(key) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => {
                if self.0.len() == self.0.capacity() {
                    self.0.reserve_exact((self.0.len() / GROWTH).max(1));
                }
                self.0.insert(place, (key, value));
            }
        }
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let place = self.place(key).ok()?;
        Some(self.0.remove(place).1)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = K> {
        self.0.iter().map(|(key, _)| *key)
    }

    /// Those behind a key, or all.
    pub(crate) fn after(&self, key: Option<K>) -> impl Iterator<Item = (K, &V)> {
        let from = key.map_or(0, |key| self.0.partition_point(|(before, _)| *before <= key));
        self.0[from..].iter().map(|(key, value)| (*key, value))
    }

    fn place(&self, key: K) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(key, _)| *key)
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Of each key the last one counts.
impl<K: Ord + Copy, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(all: I) -> Self {
        let mut all: Vec<(K, V)> = all.into_iter().collect();
        all.reverse();
        all.sort_by_key(|(key, _)| *key);
        all.dedup_by_key(|(key, _)| *key);
        all.shrink_to_fit();
        Self(all)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is added and removed, it says what a tree says, and keeps little room to spare.
        #[test]
        fn a_sorted_list_is_a_map(
            first in proptest::collection::vec((0u8..60, 0u32..9), 0..40),
            steps in proptest::collection::vec((0u8..3, 0u8..60, 0u32..9), 0..200),
        ) {
            let mut tree: BTreeMap<u8, u32> = first.iter().copied().collect();
            let mut map: SortedMap<u8, u32> = first.into_iter().collect();
            prop_assert_eq!(map.0.capacity(), tree.len());
            let mut most = tree.len();
            for (step, key, value) in steps {
                match step {
                    0 => prop_assert_eq!(map.remove(key), tree.remove(&key)),
                    _ => {
                        map.insert(key, value);
                        tree.insert(key, value);
                    }
                }
                most = most.max(tree.len());
                prop_assert!(map.0.capacity() <= most + (most / GROWTH).max(1));
                prop_assert_eq!(map.get(key), tree.get(&key));
                prop_assert_eq!(map.get_mut(key).copied(), tree.get(&key).copied());
                prop_assert_eq!(map.contains_key(key), tree.contains_key(&key));
                prop_assert_eq!(map.len(), tree.len());
                prop_assert!(map.keys().eq(tree.keys().copied()));
                let behind = tree.range(key + 1..).map(|(key, value)| (*key, value));
                prop_assert!(map.after(Some(key)).eq(behind));
            }
            prop_assert!(map.after(None).eq(tree.iter().map(|(key, value)| (*key, value))));
        }
    }
}

//! Ids that are never given twice and that nobody can guess.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives ids of 128 bits in hexadecimal: keyed hashes of a number that rises, by keys of the
/// operating system's random source.
#[derive(Debug, Default)]
pub struct Ids {
    keys: [RandomState; 2],
    next: AtomicU64,
}

impl Ids {
    /// The next one.
    pub fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let [high, low] = [&self.keys[0], &self.keys[1]].map(|keys| {
            let mut hasher = keys.build_hasher();
            hasher.write_u64(number);
            hasher.finish()
        });
        format!("{high:016x}{low:016x}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_id_is_given_twice_and_two_processes_give_others() {
        let (one, other) = (Ids::default(), Ids::default());
        let all: HashSet<String> = (0..10_000).flat_map(|_| [one.next(), other.next()]).collect();
        assert_eq!(all.len(), 20_000);
    }
}

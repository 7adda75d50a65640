//! From where accounts were made, or signed in to with the right password, since the server began.
//! Whoever comes from there again is not kept out by what others guess. Pure memory, and bounded:
//! what was needed the longest ago is forgotten.

use std::collections::HashSet;
use std::net::IpAddr;

use parking_lot::Mutex;

/// Places in one of two generations; a hundred bytes each, so three MiB in all.
const GENERATION_LEN: usize = 16_384;

/// A name, and an address it was signed in to from.
type Place = (String, IpAddr);

#[derive(Debug, Default)]
pub(crate) struct Familiar(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashSet<Place>,
    old: HashSet<Place>,
}

impl Familiar {
    /// Notes that the right password came from there.
    pub(crate) fn note(&self, name: &str, address: IpAddr) {
        let mut known = self.0.lock();
        if known.young.len() >= GENERATION_LEN {
            known.old = std::mem::take(&mut known.young);
        }
        known.young.insert((name.to_owned(), address));
    }

    /// Whether the right password has come from there.
    pub(crate) fn has(&self, name: &str, address: IpAddr) -> bool {
        let (place, known) = ((name.to_owned(), address), self.0.lock());
        known.young.contains(&place) || known.old.contains(&place)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_crowd_of_places_takes_no_more_memory_than_two_generations() {
        let familiar = Familiar::default();
        let address = |n: usize| IpAddr::V4(Ipv4Addr::from_bits(n as u32));
        for n in 0..5 * GENERATION_LEN {
            familiar.note("anna", address(n));
        }
        assert!(familiar.has("anna", address(5 * GENERATION_LEN - 1)));
        assert!(!familiar.has("bob", address(5 * GENERATION_LEN - 1)));
        assert!(!familiar.has("anna", address(0)), "the longest ago");
        let known = familiar.0.lock();
        assert!(known.young.len() + known.old.len() <= 2 * GENERATION_LEN);
    }
}

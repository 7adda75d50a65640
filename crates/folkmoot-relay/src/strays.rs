//! How often an address may have other nodes asked for sessions that are not there, a value with a
//! clock: whoever asks for those that are is never held up by it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Of one address in a span: a client notices by the end of its response that its session has ended,
/// so a few of many that come from one network ask in vain.
pub(crate) const STRAYS_LEN_MAX: u32 = 200;
const SPAN: Duration = Duration::from_secs(10);
/// Addresses that are known at once, some 64 bytes each.
const ADDRESSES_LEN_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Strays {
    by_address: Mutex<HashMap<IpAddr, Span>>,
}

/// Of one address.
#[derive(Debug, Clone, Copy)]
struct Span {
    began: Instant,
    /// Asked in vain, or not answered yet.
    asked: u32,
}

/// One question, for who has found what was asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    address: IpAddr,
    span: Instant,
}

impl Strays {
    /// Notes that something is asked for; `None`: this address has asked too often in vain.
    pub(crate) fn ask(&self, address: IpAddr) -> Option<Asked> {
        self.ask_at(address, Instant::now())
    }

    fn ask_at(&self, address: IpAddr, now: Instant) -> Option<Asked> {
        let is_over = |span: &Span| now.duration_since(span.began) >= SPAN;
        let mut by_address = self.by_address.lock();
        if by_address.len() >= ADDRESSES_LEN_MAX && !by_address.contains_key(&address) {
            by_address.retain(|_, span| !is_over(span));
            if by_address.len() >= ADDRESSES_LEN_MAX {
                // Whoever has so many addresses is not held up by a count of each.
                by_address.clear();
            }
        }
        let new = Span { began: now, asked: 0 };
        let span = by_address.entry(address).or_insert(new);
        if is_over(span) {
            *span = new;
        }
        if span.asked >= STRAYS_LEN_MAX {
            return None;
        }
        span.asked += 1;
        Some(Asked { address, span: span.began })
    }

    /// It was there.
    pub(crate) fn found(&self, asked: &Asked) {
        let Asked { address, span: began } = *asked;
        let mut by_address = self.by_address.lock();
        let Some(span) = by_address.get_mut(&address).filter(|span| span.began == began) else {
            return;
        };
        span.asked -= 1;
        if span.asked == 0 {
            by_address.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn who_asks_in_vain_is_held_up_for_a_while_and_nobody_else() {
        let (strays, now) = (Strays::default(), Instant::now());
        for _ in 0..STRAYS_LEN_MAX {
            assert!(strays.ask_at(ip(1), now).is_some());
        }
        assert!(strays.ask_at(ip(1), now).is_none());
        assert!(strays.ask_at(ip(2), now).is_some());
        assert!(strays.ask_at(ip(1), now + SPAN).is_some());
    }

    #[test]
    fn who_finds_what_it_asks_for_is_never_held_up_and_takes_no_memory() {
        let (strays, now) = (Strays::default(), Instant::now());
        for _ in 0..2 * STRAYS_LEN_MAX {
            let asked = strays.ask_at(ip(1), now).unwrap();
            strays.found(&asked);
        }
        assert!(strays.by_address.lock().is_empty());
    }

    #[test]
    fn any_number_of_addresses_takes_bounded_memory() {
        let (strays, now) = (Strays::default(), Instant::now());
        for number in 0..3 * ADDRESSES_LEN_MAX as u32 {
            assert!(strays.ask_at(ip(number), now).is_some());
        }
        assert!(strays.by_address.lock().len() <= ADDRESSES_LEN_MAX);
    }
}

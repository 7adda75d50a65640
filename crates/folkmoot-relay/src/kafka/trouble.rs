//! Why nothing can be read of Kafka, from what the client library says, which it says again at each
//! attempt; a value but for the clock.

use std::time::{Duration, Instant};

/// How long what is wrong with a topic is believed that is not said again: brokers are asked for
/// topics every ten seconds, and each answer may be the same one.
const OTHER_LASTS: Duration = Duration::from_secs(30);
/// The same of a broker that refuses this relay, or is not believed: one of several may do so while
/// the others answer, and it is tried again after five seconds, half of that more or less.
const REFUSED_LASTS: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// No broker can be reached.
    Away,
    /// A broker takes no password or certificate of this relay, or has none that is believed.
    Refused,
    Other,
}

#[derive(Debug)]
pub(super) struct Trouble {
    error: String,
    why: Why,
    at: Instant,
}

impl Trouble {
    /// Takes in what is said, which replaces what is known; returns whether it is news.
    pub(super) fn note(known: &mut Option<Self>, why: Why, error: &str) -> bool {
        // Who is refused by all brokers has none, and the library says so as well.
        let is_explained =
            |it: &Self| why == Why::Away && it.why == Why::Refused && !it.is_over(REFUSED_LASTS);
        if known.as_ref().is_some_and(is_explained) {
            return false;
        }
        let error = without_times(error);
        let is_news = known.as_ref().is_none_or(|known| known.error != error);
        *known = Some(Self { error, why, at: Instant::now() });
        is_news
    }

    /// Whether no broker can be reached.
    pub(super) fn is_away(&self) -> bool {
        self.why == Why::Away
    }

    /// Whether records show that it is over.
    pub(super) fn ends_with_records(&self) -> bool {
        self.why != Why::Away
    }

    /// Whether it is over if a broker answers.
    pub(super) fn ends_with_an_answer(&self) -> bool {
        match self.why {
            Why::Away => true,
            Why::Refused => self.is_over(REFUSED_LASTS),
            Why::Other => self.is_over(OTHER_LASTS),
        }
    }

    fn is_over(&self, lasts: Duration) -> bool {
        self.at.elapsed() > lasts
    }
}

/// The library ends what it says with how long it took and how often it was so, in brackets, which
/// would make it another text each time.
fn without_times(error: &str) -> String {
    match error.rsplit_once(" (after ") {
        Some((error, times)) if times.ends_with(')') => error.to_owned(),
        _ => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_at_each_attempt_is_news_once() {
        let mut known = None;
        let said = |times: &str| format!("a:9093: refused (after {times})");
        assert!(Trouble::note(&mut known, Why::Refused, &said("3ms in state AUTH_REQ")));
        for times in ["311ms in state AUTH_REQ, 1 identical error(s) suppressed", "4ms in state"] {
            assert!(!Trouble::note(&mut known, Why::Refused, &said(times)), "{times}");
            assert!(!Trouble::note(&mut known, Why::Away, "no broker can be reached"));
        }
        assert!(Trouble::note(&mut known, Why::Refused, "b:9093: refused"));
    }

    #[test]
    fn a_reason_is_believed_for_as_long_as_it_may_take_until_it_is_said_again() {
        let ends = |why: Why, seconds: u64| {
            let mut known = None;
            Trouble::note(&mut known, why, "x");
            let mut it = known.unwrap();
            it.at = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
            it.ends_with_an_answer()
        };
        assert!(ends(Why::Away, 0));
        assert!(!ends(Why::Refused, 8) && ends(Why::Refused, 11));
        assert!(!ends(Why::Other, 20) && ends(Why::Other, 31));
    }
}

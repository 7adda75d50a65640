//! Handling times of the last seconds, not since the start: the difference between two states of
//! the same histograms.
//!
//! Looks are kept for the longest window and thinned beyond the shortest, so that a console watched
//! for days keeps about two dozen of them. Invariant: a window begins at a look, so it spans what
//! it says (`Window::spans`), which is more than asked for where nobody looked in between, and less
//! where the first look was later.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use althing::{Histogram, Snapshot};

/// The windows that are told.
pub(crate) const WINDOWS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(60)];
/// Looks older than the shortest window are kept at this distance.
const KEPT_EVERY: Duration = Duration::from_secs(5);

/// Looks at a node's histograms.
#[derive(Default)]
pub(crate) struct Windows {
    looks: VecDeque<Look>,
}

/// The histograms of one look: by type, and by type and message.
struct Look {
    at: Duration,
    kinds: HashMap<String, Histogram>,
    messages: HashMap<(String, String), Histogram>,
}

/// What came since an earlier look.
pub(crate) struct Window<'a> {
    /// How long it is.
    pub(crate) spans: Duration,
    /// `None`: since the node's start.
    since: Option<&'a Look>,
}

impl Windows {
    /// Keeps the histograms of a look at `now`, in time since the node's start.
    pub(crate) fn keep(&mut self, now: Duration, snapshot: &Snapshot) {
        self.looks.push_back(Look::new(now, snapshot));
        let [shortest, longest] = WINDOWS;
        // The last one at or before a window's beginning is where the window begins.
        while self.looks.get(1).is_some_and(|next| now.saturating_sub(next.at) >= longest) {
            self.looks.pop_front();
        }
        let mut kept: Option<Duration> = None;
        let mut ends = self.looks.len();
        self.looks.retain(|look| {
            ends -= 1;
            let is_near = now.saturating_sub(look.at) <= shortest + KEPT_EVERY;
            let is_apart = kept.is_none_or(|kept| look.at - kept >= KEPT_EVERY);
            let stays = is_near || is_apart || ends == 0;
            if stays {
                kept = Some(look.at);
            }
            stays
        });
    }

    /// The window of that length that ends at `now`.
    pub(crate) fn window(&self, asked: Duration, now: Duration) -> Window<'_> {
        let is_before = |look: &&Look| now.saturating_sub(look.at) >= asked;
        let since = self.looks.iter().rev().find(is_before).or_else(|| self.looks.front());
        let since = since.filter(|look| look.at < now);
        Window { spans: now - since.map_or(Duration::ZERO, |look| look.at), since }
    }
}

impl Look {
    fn new(at: Duration, snapshot: &Snapshot) -> Self {
        let mut look = Self { at, kinds: HashMap::new(), messages: HashMap::new() };
        for kind in &snapshot.kinds {
            look.kinds.insert(kind.name.to_string(), kind.handling.clone());
            for message in &kind.messages {
                let name = (kind.name.to_string(), message.name.clone());
                look.messages.insert(name, message.handling.clone());
            }
        }
        look
    }
}

impl Window<'_> {
    /// What came to a type within the window, of which `now` is the histogram at its end.
    pub(crate) fn kind(&self, name: &str, now: &Histogram) -> Histogram {
        let then = self.since.and_then(|look| look.kinds.get(name));
        then.map_or_else(|| now.clone(), |then| now.since(then))
    }

    /// The same for one of its messages.
    pub(crate) fn message(&self, kind: &str, message: &str, now: &Histogram) -> Histogram {
        let name = (kind.to_owned(), message.to_owned());
        let then = self.since.and_then(|look| look.messages.get(&name));
        then.map_or_else(|| now.clone(), |then| now.since(then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_window_begins_at_the_last_look_before_it() {
        let mut windows = Windows::default();
        for second in 0..=100 {
            windows.keep(at(second), &Snapshot::default());
        }
        assert_eq!(windows.window(WINDOWS[0], at(101)).spans, at(10));
        let minute = windows.window(WINDOWS[1], at(101)).spans;
        assert!(minute >= at(60) && minute < at(60) + KEPT_EVERY, "{minute:?}");
    }

    #[test]
    fn a_console_that_is_watched_for_a_day_keeps_about_two_dozen_looks() {
        let mut windows = Windows::default();
        for second in 0..86_400 {
            windows.keep(at(second), &Snapshot::default());
        }
        assert!(windows.looks.len() < 30, "{}", windows.looks.len());
    }

    #[test]
    fn a_window_says_how_long_it_is_where_nobody_looked() {
        let mut windows = Windows::default();
        assert_eq!(windows.window(WINDOWS[0], at(7)).spans, at(7), "since the start");
        windows.keep(at(7), &Snapshot::default());
        assert_eq!(windows.window(WINDOWS[0], at(9)).spans, at(2));
        assert_eq!(windows.window(WINDOWS[0], at(3_607)).spans, at(3_600));
    }
}

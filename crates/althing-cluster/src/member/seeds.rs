//! Which candidate a member asks next, as a step function.
//!
//! A member knows some candidates from the beginning. One of them that does not lead names the one
//! that does; but it may be the last to hear that this one hangs or leads no more. So who was silent
//! is not asked on somebody's word for a while, and of one who was asked on somebody's word no
//! further word counts: two who name each other would be asked for ever.

use std::time::Duration;

/// The candidates that are known, and what became of asking them.
#[derive(Debug)]
pub(crate) struct Seeds {
    known: Vec<String>,
    next: usize,
    /// Who leads, as the last one said.
    named: Option<String>,
    /// Whether the one that is asked, or is next, was named by one that does not lead.
    is_on_word: bool,
    /// Who did not answer, and until when nobody's word for it counts.
    silent: Option<(String, Duration)>,
}

impl Seeds {
    /// `known` are asked in turn, from the first one on.
    pub(crate) fn new(known: Vec<String>) -> Self {
        Self { known, next: 0, named: None, is_on_word: false, silent: None }
    }

    /// Whom to ask now.
    pub(crate) fn next(&mut self) -> Option<String> {
        if let Some(named) = self.named.take() {
            return Some(named);
        }
        self.is_on_word = false;
        let next = self.known.get(self.next % self.known.len().max(1)).cloned();
        self.next = self.next.wrapping_add(1);
        next
    }

    /// It leads: whoever is asked next is the same.
    pub(crate) fn leads(&mut self, address: &str) {
        self.named = Some(address.to_owned());
        self.is_on_word = false;
        self.silent = None;
    }

    /// One that does not lead has named the leader, as far as it knows.
    pub(crate) fn elsewhere(&mut self, now: Duration, leader: Option<String>) {
        let is_silent = |leader: &String| {
            self.silent.as_ref().is_some_and(|(silent, until)| silent == leader && now < *until)
        };
        self.named = leader.filter(|leader| !self.is_on_word && !is_silent(leader));
        self.is_on_word = self.named.is_some();
    }

    /// It did not answer, or could not be reached.
    pub(crate) fn silent(&mut self, address: &str, until: Duration) {
        self.named = None;
        self.silent = Some((address.to_owned(), until));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Seeds;

    const NOW: Duration = Duration::from_secs(100);
    const LATER: Duration = Duration::from_secs(101);

    fn next(seeds: &mut Seeds) -> String {
        seeds.next().expect("some are known")
    }

    #[test]
    fn a_leader_that_is_named_is_asked_and_kept_and_one_that_hangs_is_not_asked_on_anybodys_word() {
        let mut seeds = Seeds::new(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(next(&mut seeds), "a");
        seeds.elsewhere(NOW, Some("c".to_owned()));
        assert_eq!(next(&mut seeds), "c");
        // The connection breaks, and the leader is still there.
        seeds.leads("c");
        assert_eq!(next(&mut seeds), "c");
        seeds.silent("c", LATER);
        assert_eq!(next(&mut seeds), "b");
        seeds.elsewhere(NOW, Some("c".to_owned()));
        assert_eq!(next(&mut seeds), "a", "the other hangs");
        seeds.elsewhere(NOW, Some("b".to_owned()));
        assert_eq!(next(&mut seeds), "b");
        seeds.silent("b", LATER);
        seeds.elsewhere(LATER, Some("b".to_owned()));
        assert_eq!(next(&mut seeds), "b", "it may be back");
    }

    #[test]
    fn of_two_who_name_each_other_neither_is_asked_for_ever() {
        let mut seeds = Seeds::new(["a", "b", "c"].map(str::to_owned).to_vec());
        assert_eq!(next(&mut seeds), "a");
        seeds.elsewhere(NOW, Some("b".to_owned()));
        assert_eq!(next(&mut seeds), "b");
        seeds.elsewhere(NOW, Some("a".to_owned()));
        assert_eq!(next(&mut seeds), "b");
        seeds.elsewhere(NOW, Some("b".to_owned()));
        assert_eq!(next(&mut seeds), "b", "it names itself");
        seeds.elsewhere(NOW, Some("b".to_owned()));
        assert_eq!(next(&mut seeds), "c");
    }

    #[test]
    fn the_only_one_is_asked_again_and_again() {
        let mut seeds = Seeds::new(vec!["a".to_owned()]);
        for _ in 0..3 {
            assert_eq!(next(&mut seeds), "a");
            seeds.silent("a", LATER);
        }
    }
}

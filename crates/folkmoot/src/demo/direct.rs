//! What the host answers to a newcomer in the conversation of the two, as a value.
//!
//! Whoever is spoken to alone answers: in words, or with a reaction where nothing was asked. Words
//! follow one another by the number of the message, so they come again after all others of their
//! kind, and nothing has to be remembered of thousands of guests.

use super::answers::{Answer, Heard, Kind, Line, NAME, called, kind_of, parse};
use super::cast::HOST;

const TEXT: &str = include_str!("scenes/direct.txt");
const REACTIONS: &[&str] = &["👍", "😄", "💚"];

#[derive(Debug)]
pub(super) struct Direct {
    lines: Vec<Line>,
}

impl Direct {
    pub(super) fn new() -> Self {
        Self { lines: parse(TEXT).expect("a test reads the answers") }
    }

    pub(super) fn to(&self, heard: &Heard<'_>) -> Answer {
        let (kind, seq) = (kind_of(heard.body), heard.seq.as_u64() as usize);
        // The greeting is the first message. Words make a message more and a reaction none, so
        // they take turns.
        if kind == Kind::Wordless || (kind == Kind::Remark && seq % 3 == 1) {
            return Answer::React { who: HOST, emoji: REACTIONS[seq / 3 % REACTIONS.len()] };
        }
        let of_kind: Vec<_> = self.lines.iter().filter(|line| line.kind == kind).collect();
        let text = of_kind[seq / 2 % of_kind.len()].text;
        Answer::Say { who: HOST, text: text.replace(NAME, &called(heard.name)) }
    }
}

#[cfg(test)]
mod tests {
    use folkmoot_protocol::{Seq, UserId, field};

    use super::*;

    fn said_to(seq: u64, body: &str) -> Answer {
        let guest = UserId::from_u64(1);
        Direct::new().to(&Heard { guest, name: "Ada", seq: Seq::from_u64(seq), body, room: "" })
    }

    #[test]
    fn every_line_is_read_is_the_hosts_and_keeps_the_limits_of_the_protocol() {
        let lines = Direct::new().lines;
        for kind in [
            Kind::Hello,
            Kind::Hallo,
            Kind::How,
            Kind::Who,
            Kind::Question,
            Kind::Thanks,
            Kind::Bye,
            Kind::Remark,
        ] {
            assert!(lines.iter().filter(|line| line.kind == kind).count() >= 4, "{kind:?}");
        }
        for line in lines {
            field::body("body", line.text, 0).unwrap();
            assert_eq!(line.who, HOST);
        }
    }

    #[test]
    fn what_is_asked_is_answered_in_words_that_differ() {
        let texts = [2, 4, 6, 8].map(|seq| said_to(seq, "what time is it?"));
        for (index, text) in texts.iter().enumerate() {
            assert!(matches!(text, Answer::Say { who, .. } if *who == HOST), "{text:?}");
            assert!(!texts[..index].contains(text), "{text:?} again");
        }
    }

    #[test]
    fn remarks_get_words_and_a_reaction_in_turn() {
        let (mut seq, mut kinds) = (2, Vec::new());
        for _ in 0..6 {
            let is_words = matches!(said_to(seq, "the sky is blue"), Answer::Say { .. });
            kinds.push(is_words);
            // One's own message, and the answer if it is one.
            seq += 1 + u64::from(is_words);
        }
        assert_eq!(kinds, [true, false, true, false, true, false]);
    }
}

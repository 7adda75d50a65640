//! What the bots answer to a guest, as a value: told what was said, it decides who says what. It
//! knows no server and no clock.
//!
//! A guest hears words first, then sees a reaction, then nothing, and so on: bots that answer
//! everything are no company. A question, or a bot's name, is always worth words, and no words come
//! back within a screen. What is talked of in a room is answered there with what is known there.

use std::collections::HashMap;

use folkmoot_protocol::{Seq, UserId};

use super::script::bot;

const TEXT: &str = include_str!("scenes/answers.txt");
/// Where the text of an answer names the guest.
pub(super) const NAME: &str = "{name}";
/// The same words stand so many messages apart: more than the largest window shows.
const SCREEN: u64 = 40;
/// Guests of whom it is known how often they were answered; beyond them all are new again.
const GUESTS_MAX: usize = 1_000;
/// Reactions, in turn, and whose.
const REACTIONS: &[(&str, &str)] =
    &[("sena", "👋"), ("tomas", "👍"), ("aiko", "🎉"), ("ruth", "😄"), ("priya", "💚")];

/// How a message begins that greets, and how one that does so in German.
const HELLO: &[&str] = &[
    "hello",
    "hi",
    "hey",
    "hiya",
    "yo",
    "howdy",
    "greetings",
    "good",
    "welcome",
    "test",
    "salut",
    "bonjour",
    "hola",
    "buenas",
    "ciao",
    "مرحبا",
    "こんにちは",
];
const HALLO: &[&str] = &["hallo", "moin", "servus", "guten", "tach", "na", "grüezi"];
const THANKS: &[&str] =
    &["thanks", "thank", "thx", "danke", "merci", "gracias", "شكرا", "ありがとう"];
const BYE: &[&str] =
    &["bye", "goodbye", "cheerio", "tschüss", "tschüs", "adieu", "adiós", "cya", "goodnight"];
/// Words in a row that ask how one is, and who or what one is talking to; without what stands
/// between them.
const HOW: &[&str] = &[
    "how are you",
    "how is it going",
    "how s it going",
    "what s up",
    "wie geht",
    "ça va",
    "qué tal",
];
const WHO: &[&str] = &[
    "a bot",
    "are bots",
    "are you real",
    "who are you",
    "anybody here",
    "anyone here",
    "anybody there",
    "anyone there",
    "what is this",
    "bist du",
    "jemand da",
    "jemand hier",
];
const QUESTION_MARKS: &[char] = &['?', '？', '؟'];

/// What a guest said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard<'a> {
    pub(super) guest: UserId,
    /// The guest's name, as it is shown.
    pub(super) name: &'a str,
    pub(super) seq: Seq,
    pub(super) body: &'a str,
    /// The name of the room.
    pub(super) room: &'a str,
}

/// What a bot does about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Say { who: &'static str, text: String },
    React { who: &'static str, emoji: &'static str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Hello,
    Hallo,
    How,
    Who,
    Question,
    Thanks,
    Bye,
    /// No words at all, or none but emoji.
    Wordless,
    Remark,
    /// Whatever is asked or remarked in the room of this name.
    In(&'static str),
}

#[derive(Debug)]
pub(super) struct Line {
    pub(super) kind: Kind,
    pub(super) who: &'static str,
    pub(super) text: &'static str,
    /// The message that it answered last.
    said_to: Option<Seq>,
}

/// The words that are there, and how often which guest was heard.
#[derive(Debug)]
pub(super) struct Answers {
    lines: Vec<Line>,
    guests: HashMap<UserId, u32>,
    reaction: usize,
}

impl Answers {
    pub(super) fn new() -> Self {
        let lines = parse(TEXT).expect("a test reads the answers");
        Self { lines, guests: HashMap::new(), reaction: 0 }
    }

    /// One answer in words and a reaction beside it at the most.
    pub(super) fn to(&mut self, heard: &Heard<'_>) -> Vec<Answer> {
        let (kind, named) = (kind_of(heard.body), named(heard.body));
        if self.guests.len() >= GUESTS_MAX {
            self.guests.clear();
        }
        let turn = self.guests.entry(heard.guest).or_default();
        let is_first = *turn == 0;
        // After words a reaction, then silence, then words again.
        let asks = matches!(kind, Kind::Question | Kind::How | Kind::Who);
        let words = matches!(*turn, 0 | 3) || asks || named.is_some();
        let silence = *turn == 2;
        *turn = if words { 1 } else { *turn + 1 };
        let said = if words { self.words(heard, kind, named) } else { None };
        let mut answers: Vec<Answer> = said.into_iter().collect();
        if is_first || (answers.is_empty() && !silence) {
            answers.extend(self.react(&answers));
        }
        answers
    }

    /// The words of this kind that were said longest ago, if that is long enough.
    fn words(
        &mut self,
        heard: &Heard<'_>,
        kind: Kind,
        named: Option<&'static str>,
    ) -> Option<Answer> {
        let rests = |line: &Line| {
            let distance = |at: Seq| heard.seq.as_u64().saturating_sub(at.as_u64());
            line.said_to.is_some_and(|at| distance(at) < SCREEN)
        };
        let is_of = |line: &Line, wanted: Kind| match (line.kind, wanted) {
            (Kind::In(room), Kind::Question | Kind::Remark) => room == heard.room,
            (of, wanted) => of == wanted,
        };
        let lines = self.lines.iter_mut().filter(|line| is_of(line, kind) && !rests(line));
        // First what is known in this room; of the same kind, what was said longest ago.
        let line = lines.min_by_key(|line| (!matches!(line.kind, Kind::In(_)), line.said_to))?;
        line.said_to = Some(heard.seq);
        let text = line.text.replace(NAME, &called(heard.name));
        Some(Answer::Say { who: named.unwrap_or(line.who), text })
    }

    /// A reaction by another bot than the one that speaks.
    fn react(&mut self, answers: &[Answer]) -> Option<Answer> {
        let speaks = |who: &str| {
            answers.iter().any(|answer| matches!(answer, Answer::Say { who: by, .. } if *by == who))
        };
        let begin = self.reaction;
        self.reaction += 1;
        let turns = (0..REACTIONS.len()).map(|step| REACTIONS[(begin + step) % REACTIONS.len()]);
        let (who, emoji) = turns.into_iter().find(|(who, _)| !speaks(who))?;
        Some(Answer::React { who, emoji })
    }
}

/// How a bot calls a guest: by the first of their names, of which only letters and digits are said.
/// A name may hold a mention or a link, and a bot would spread it.
pub(super) fn called(name: &str) -> String {
    let first = name.split_whitespace().next().unwrap_or_default();
    let plain: String = first.chars().filter(|letter| letter.is_alphanumeric()).collect();
    if plain.is_empty() { "stranger".to_owned() } else { plain }
}

pub(super) fn kind_of(body: &str) -> Kind {
    let body = body.to_lowercase();
    let is_any = |words: &[&str], word: &str| words.contains(&word);
    let mut words = body.split(|letter: char| !letter.is_alphanumeric()).filter(|w| !w.is_empty());
    if words.clone().any(|word| is_any(THANKS, word)) {
        return Kind::Thanks;
    }
    let spaced = format!(" {} ", words.clone().collect::<Vec<_>>().join(" "));
    let has_any = |rows: &[&str]| rows.iter().any(|row| spaced.contains(&format!(" {row} ")));
    if has_any(WHO) {
        return Kind::Who;
    }
    if has_any(HOW) {
        return Kind::How;
    }
    if body.contains(QUESTION_MARKS) {
        return Kind::Question;
    }
    match words.next() {
        None => Kind::Wordless,
        Some(word) if is_any(BYE, word) => Kind::Bye,
        Some(word) if is_any(HALLO, word) => Kind::Hallo,
        Some(word) if is_any(HELLO, word) => Kind::Hello,
        _ => Kind::Remark,
    }
}

/// The first bot whom a message names, with or without an `@`.
fn named(body: &str) -> Option<&'static str> {
    let body = body.to_lowercase();
    body.split(|letter: char| !letter.is_alphanumeric()).find_map(bot)
}

pub(super) fn parse(text: &'static str) -> Option<Vec<Line>> {
    let mut kind = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("= ") {
            kind = Some(kind_named(name)?);
            continue;
        }
        let (who, text) = line.split_once(": ")?;
        lines.push(Line { kind: kind?, who: bot(who)?, text, said_to: None });
    }
    Some(lines)
}

fn kind_named(name: &'static str) -> Option<Kind> {
    match name {
        "hello" => Some(Kind::Hello),
        "hallo" => Some(Kind::Hallo),
        "how" => Some(Kind::How),
        "who" => Some(Kind::Who),
        "question" => Some(Kind::Question),
        "thanks" => Some(Kind::Thanks),
        "bye" => Some(Kind::Bye),
        "wordless" => Some(Kind::Wordless),
        "remark" => Some(Kind::Remark),
        _ => name.strip_prefix("in ").map(Kind::In),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use folkmoot_protocol::field;

    use super::*;
    use crate::demo::script::scenes;

    const GUEST: UserId = UserId::from_u64(1);

    fn say(answers: &mut Answers, guest: UserId, seq: u64, body: &str) -> Vec<Answer> {
        say_in(answers, "Town square", guest, seq, body)
    }

    fn say_in(
        answers: &mut Answers,
        room: &str,
        guest: UserId,
        seq: u64,
        body: &str,
    ) -> Vec<Answer> {
        answers.to(&Heard { guest, name: "Ada", seq: Seq::from_u64(seq), body, room })
    }

    fn text_of(answer: &Answer) -> Option<&str> {
        match answer {
            Answer::Say { text, .. } => Some(text),
            Answer::React { .. } => None,
        }
    }

    #[test]
    fn every_line_is_read_and_keeps_the_limits_of_the_protocol() {
        let lines = parse(TEXT).unwrap();
        let kinds = [
            Kind::Hello,
            Kind::Hallo,
            Kind::How,
            Kind::Who,
            Kind::Question,
            Kind::Thanks,
            Kind::Bye,
            Kind::Wordless,
            Kind::Remark,
        ];
        let rooms = scenes().into_iter().skip(1).map(|scene| Kind::In(scene.room));
        for kind in kinds.into_iter().chain(rooms) {
            assert!(lines.iter().filter(|line| line.kind == kind).count() >= 4, "{kind:?}");
        }
        let names: HashSet<_> = scenes().iter().map(|scene| scene.room).collect();
        for line in lines {
            assert!(!matches!(line.kind, Kind::In(room) if !names.contains(room)), "{line:?}");
            field::body("body", line.text, 0).unwrap();
        }
        assert!(REACTIONS.iter().all(|(who, _)| bot(who).is_some()));
    }

    #[test]
    fn a_first_hello_is_answered_by_name_and_with_a_reaction_of_somebody_else() {
        let mut answers = Answers::new();
        let said = say(&mut answers, GUEST, 10, "hello");
        let [Answer::Say { who, text }, Answer::React { who: other, .. }] = &said[..] else {
            panic!("{said:?}")
        };
        assert!(text.contains("Ada"), "{text}");
        assert_ne!(who, other);
    }

    #[test]
    fn not_everything_is_answered_and_nothing_with_more_than_one_line() {
        let mut answers = Answers::new();
        let said: Vec<_> =
            (0..9).map(|n| say(&mut answers, GUEST, 10 + 2 * n, "the sky is blue")).collect();
        let words = said.iter().filter(|answers| answers.iter().any(|one| text_of(one).is_some()));
        assert_eq!(words.count(), 3, "{said:?}");
        assert_eq!(said.iter().filter(|answers| answers.is_empty()).count(), 3, "{said:?}");
        for each in said {
            assert!(each.iter().filter_map(text_of).count() <= 1, "{each:?}");
        }
    }

    #[test]
    fn no_words_come_again_within_a_screen_whoever_asks() {
        let mut answers = Answers::new();
        let mut said: Vec<(u64, String)> = Vec::new();
        for seq in (0..400).step_by(2) {
            let guest = UserId::from_u64(1 + seq % 7);
            for answer in say(&mut answers, guest, seq, "what time is it?") {
                let Some(text) = text_of(&answer) else { continue };
                said.push((seq, text.to_owned()));
            }
        }
        for (index, (seq, text)) in said.iter().enumerate() {
            let before = said[..index].iter().filter(|(at, _)| seq - at < SCREEN);
            assert!(before.into_iter().all(|(_, other)| other != text), "{text:?} again at {seq}");
        }
        let different: HashSet<_> = said.iter().map(|(_, text)| text).collect();
        assert!(different.len() >= 8, "{different:?}");
    }

    #[test]
    fn who_is_named_answers() {
        let mut answers = Answers::new();
        say(&mut answers, GUEST, 1, "hello");
        for (seq, body) in [(3, "@tomas is the radio fine?"), (5, "Tomas, it hums.")] {
            let said = say(&mut answers, GUEST, seq, body);
            assert!(matches!(&said[..], [Answer::Say { who: "tomas", .. }]), "{said:?}");
        }
    }

    #[test]
    fn a_room_answers_with_what_is_known_there() {
        let mut answers = Answers::new();
        let heard = ["what do I do about slugs?", "and about the beans?", "and in winter?"];
        for (seq, body) in (1..).step_by(2).zip(heard) {
            let said = say_in(&mut answers, "Garden", GUEST, seq, body);
            let text = said.iter().find_map(text_of).expect("a question is worth words");
            let of_garden =
                parse(TEXT).unwrap().into_iter().filter(|line| line.kind == Kind::In("Garden"));
            let known: Vec<_> = of_garden.map(|line| line.text.replace(NAME, "Ada")).collect();
            assert!(known.iter().any(|line| line == text), "{text:?}");
        }
    }

    #[test]
    fn a_guest_is_called_by_the_first_name_without_what_would_be_more_than_a_name() {
        for (name, by) in [
            ("Ada Lovelace", "Ada"),
            ("@everyone", "everyone"),
            ("**", "stranger"),
            ("", "stranger"),
        ] {
            assert_eq!(called(name), by);
        }
    }

    #[test]
    fn words_tell_what_is_meant() {
        for (body, kind) in [
            ("Hello!", Kind::Hello),
            ("hi, everybody", Kind::Hello),
            ("Hallo zusammen", Kind::Hallo),
            ("hello, how does this work?", Kind::Question),
            ("thanks, that helped", Kind::Thanks),
            ("History is long", Kind::Remark),
            ("How are you all?", Kind::How),
            ("Wie geht’s?", Kind::How),
            ("Are you a bot?", Kind::Who),
            ("I found a bottle.", Kind::Remark),
            ("what’s up", Kind::How),
            ("hello, is anybody here?", Kind::Who),
            ("bye for now", Kind::Bye),
            ("🎉", Kind::Wordless),
            ("", Kind::Wordless),
        ] {
            assert_eq!(kind_of(body), kind, "{body}");
        }
    }
}

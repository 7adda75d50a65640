//! Finds `@name` and `@everyone` in a message body. Knows nothing about who is a member.
//!
//! A name is what `[a-z0-9_.-]` allows, so "@anna." at the end of a sentence is ambiguous; the
//! caller's lookup decides: the longest spelling that names somebody wins.

/// Distinct people one message can mention; each costs an append to that person's stream.
pub(crate) const MENTIONS_MAX: usize = 50;

/// Spellings of one message that are looked up; what comes after them mentions nobody.
const SPELLINGS_MAX: usize = 200;

const EVERYONE: &str = "everyone";

/// Who a body addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mentions<U> {
    /// In order of first appearance, each once, at most [`MENTIONS_MAX`].
    pub(crate) users: Vec<U>,
    pub(crate) everyone: bool,
}

/// Extracts the mentions of `body`; `lookup` maps a lower-case name to a member.
pub(crate) fn extract<U: PartialEq>(
    body: &str,
    mut lookup: impl FnMut(&str) -> Option<U>,
) -> Mentions<U> {
    let mut found = Mentions { users: Vec::new(), everyone: false };
    let mut rest = body;
    let mut before: Option<char> = None;
    while let Some(at) = rest.find('@') {
        let previous = rest[..at].chars().next_back().or(before);
        let tail = &rest[at + 1..];
        let candidate_len = tail.bytes().take_while(|&byte| is_name_byte(byte)).count();
        // "mail@example.org" is an address: a mention starts a word.
        if candidate_len > 0 && !previous.is_some_and(char::is_alphanumeric) {
            resolve(&tail[..candidate_len], &mut lookup, &mut found);
        }
        before = tail[..candidate_len].chars().next_back().or(Some('@'));
        rest = &tail[candidate_len..];
    }
    found
}

/// All spellings in `body` that may be somebody's name, each once.
pub(crate) fn names(body: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    extract::<()>(body, |name| {
        if names.len() < SPELLINGS_MAX && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        None
    });
    names
}

fn resolve<U: PartialEq>(
    candidate: &str,
    lookup: &mut impl FnMut(&str) -> Option<U>,
    found: &mut Mentions<U>,
) {
    let lowered = candidate.to_ascii_lowercase();
    let mut name = lowered.as_str();
    loop {
        if name == EVERYONE {
            found.everyone = true;
            return;
        }
        if let Some(user) = lookup(name) {
            if found.users.len() < MENTIONS_MAX && !found.users.contains(&user) {
                found.users.push(user);
            }
            return;
        }
        match name.strip_suffix(['.', '-', '_']) {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => return,
        }
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Mentions<u8> {
        extract(body, |name| match name {
            "anna" => Some(1),
            "bob" => Some(2),
            "anna.k" => Some(3),
            _ => None,
        })
    }

    #[test]
    fn names_are_found_once_each_in_order() {
        assert_eq!(of("@bob and @anna, @bob!").users, [2, 1]);
        assert_eq!(of("(@Anna)").users, [1]);
    }

    #[test]
    fn the_longest_member_name_wins_and_punctuation_is_not_part_of_it() {
        assert_eq!(of("ask @anna.k.").users, [3]);
        assert_eq!(of("ask @anna...").users, [1]);
        assert_eq!(of("@annabel").users, Vec::<u8>::new());
    }

    #[test]
    fn every_spelling_that_could_be_a_name_is_looked_up_once() {
        assert_eq!(names("@Anna.k. and @anna, mail@x"), ["anna.k.", "anna.k", "anna"]);
        let body: String = (0..1_000).map(|n| format!("@u{n} ")).collect();
        assert_eq!(names(&body).len(), SPELLINGS_MAX);
    }

    #[test]
    fn an_address_is_not_a_mention() {
        assert_eq!(of("mail@anna or é@bob").users, Vec::<u8>::new());
        assert_eq!(of("@@anna").users, [1]);
        assert_eq!(of("@anna@bob").users, [1]);
    }

    #[test]
    fn everyone_is_told_apart_from_people() {
        assert_eq!(of("@everyone, @bob"), Mentions { users: vec![2], everyone: true });
        assert!(!of("everyone @everyones").everyone);
    }

    #[test]
    fn a_message_mentions_at_most_fifty_people() {
        let body: String = (0..80).map(|n| format!("@u{n} ")).collect();
        let found = extract(&body, |name| name[1..].parse::<u32>().ok());
        assert_eq!(found.users.len(), MENTIONS_MAX);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_safe_to_scan(body in ".{0,200}") {
            let _ = of(&body);
        }
    }
}

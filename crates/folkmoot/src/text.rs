//! How text is taken apart for searching: into words, and single characters of scripts that are
//! written without spaces, all without case and accents.
//!
//! The index, the query and the highlights use this one reading, so they cannot disagree. Every
//! unit remembers where in the text it stood; nothing here knows what an index is.

use unicode_normalization::char::{compose, decompose_compatible};

/// Characters of a word that count: what is longer is a key or a hash, found by its beginning.
const WORD_CHARS_MAX: usize = 64;

/// Words of a name by which it is found.
const NAME_WORDS_MAX: usize = 16;

/// One thing that can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Folded: lower case, no accents, compatibility forms replaced.
    pub(crate) text: String,
    /// Bytes of the original text: from, and to (not included).
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters and digits between things that are neither.
    Word,
    /// A character of Chinese, Japanese, Korean, Thai and their like, after something else.
    Character,
    /// The same, right after another such character.
    Continued,
}

/// The units of a text, in order.
pub(crate) fn units(text: &str) -> Vec<Unit> {
    let mut reader = Reader::default();
    for (start, original) in text.char_indices() {
        let end = start + original.len_utf8();
        decompose_compatible(original, |part| reader.take(part, start, end));
    }
    reader.units
}

/// A name or a value as it is compared: the units without what stands between them.
pub(crate) fn folded(text: &str) -> String {
    let units: Vec<String> = units(text).into_iter().map(|unit| unit.text).collect();
    units.join(" ")
}

/// Where a name is found when somebody types its beginning: all of it, and from each further word
/// on, folded. A name of more words than anybody has is found by its first ones.
pub(crate) fn beginnings(name: &str) -> Vec<String> {
    let folded = folded(name);
    let further = folded.match_indices(' ').map(|(at, _)| at + 1);
    std::iter::once(0)
        .chain(further)
        .take(NAME_WORDS_MAX)
        .map(|at| folded[at..].to_owned())
        .collect()
}

#[derive(Default)]
struct Reader {
    units: Vec<Unit>,
    /// Whether the last unit may still grow: nothing stood after it.
    is_open: bool,
    word_chars: usize,
}

impl Reader {
    fn take(&mut self, part: char, start: usize, end: usize) {
        if self.join_last(part, end) || is_accent(part) {
            return;
        }
        if is_unspaced(part) {
            let follows = self.is_open && self.last_kind().is_some_and(|kind| kind != Kind::Word);
            let kind = if follows { Kind::Continued } else { Kind::Character };
            self.units.push(Unit { text: part.to_string(), start, end, kind });
            self.is_open = true;
        } else if part.is_alphanumeric() || (is_vowel_sign(part) && self.is_in_word()) {
            self.add_to_word(part, start, end);
        } else {
            self.is_open = false;
        }
    }

    /// Puts together what decomposing took apart: Hangul syllables, kana with their voice marks.
    fn join_last(&mut self, part: char, end: usize) -> bool {
        let is_open = self.is_open;
        let Some(last) = self.units.last_mut().filter(|last| is_open && last.kind != Kind::Word)
        else {
            return false;
        };
        let joined = last.text.chars().next().and_then(|base| compose(base, part));
        let Some(joined) = joined else { return false };
        last.text = joined.to_string();
        last.end = end;
        true
    }

    fn add_to_word(&mut self, part: char, start: usize, end: usize) {
        if !self.is_in_word() {
            self.units.push(Unit { text: String::new(), start, end, kind: Kind::Word });
            self.is_open = true;
            self.word_chars = 0;
        }
        let Some(word) = self.units.last_mut() else { return };
        word.end = end;
        self.word_chars += 1;
        if self.word_chars <= WORD_CHARS_MAX {
            fold(part, &mut word.text);
        }
    }

    fn is_in_word(&self) -> bool {
        self.is_open && self.last_kind() == Some(Kind::Word)
    }

    fn last_kind(&self) -> Option<Kind> {
        self.units.last().map(|unit| unit.kind)
    }
}

/// Lower case, and the letters that Unicode does not decompose although people leave the stroke
/// out.
fn fold(part: char, into: &mut String) {
    for lower in part.to_lowercase().filter(|lower| !is_accent(*lower)) {
        match lower {
            'ß' => into.push_str("ss"),
            'æ' => into.push_str("ae"),
            'œ' => into.push_str("oe"),
            'þ' => into.push_str("th"),
            'ø' => into.push('o'),
            'đ' | 'ð' => into.push('d'),
            'ł' => into.push('l'),
            'ħ' => into.push('h'),
            'ı' => into.push('i'),
            'ς' => into.push('σ'),
            other => into.push(other),
        }
    }
}

/// Marks that may be left out: of Latin, Greek and Cyrillic letters, Hebrew points, Arabic vowels.
/// Not the vowel signs of Indic scripts, without which other words would be the same.
fn is_accent(part: char) -> bool {
    matches!(part,
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5bd}' | '\u{5bf}'..='\u{5c7}'
        | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{200c}' | '\u{200d}' | '\u{ad}')
}

/// Dependent signs within a word of an Indic script: not letters by themselves.
fn is_vowel_sign(part: char) -> bool {
    matches!(part, '\u{900}'..='\u{dff}') && unicode_normalization::char::is_combining_mark(part)
}

/// Scripts written without spaces between words, and Hangul, whose words carry their endings.
fn is_unspaced(part: char) -> bool {
    matches!(part,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{309a}' | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{312f}' | '\u{3130}'..='\u{318f}'
        | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}'
        | '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' | '\u{e80}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        units(text).into_iter().map(|unit| unit.text).collect()
    }

    #[test]
    fn case_accents_and_compatibility_forms_do_not_matter() {
        for (one, other) in [
            ("Café", "CAFE\u{301}"),
            ("Straße", "STRASSE"),
            ("Ångström", "angstrom"),
            ("łódź", "Lodz"),
            ("ＡＢＣ１２", "abc12"),
            ("ὈΔΥΣΣΕΎΣ", "οδυσσευς"),
            ("ёлка", "ЕЛКА"),
            ("ﾊﾟﾋﾟﾌﾟ", "パピプ"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("مُحَمَّد", "محمد"),
        ] {
            assert_eq!(words(one), words(other), "{one} and {other}");
        }
    }

    #[test]
    fn words_that_differ_stay_different() {
        for (one, other) in [("が", "か"), ("パ", "ハ"), ("कि", "की"), ("한", "하")] {
            assert_ne!(words(one), words(other), "{one} and {other}");
        }
    }

    #[test]
    fn unspaced_scripts_are_read_by_character_and_know_their_neighbours() {
        let kinds: Vec<_> =
            units("東京tower、京都").into_iter().map(|u| (u.text, u.kind)).collect();
        let expected = [
            ("東", Kind::Character),
            ("京", Kind::Continued),
            ("tower", Kind::Word),
            ("京", Kind::Character),
            ("都", Kind::Continued),
        ];
        assert_eq!(kinds, expected.map(|(text, kind)| (text.to_owned(), kind)));
    }

    #[test]
    fn a_unit_knows_where_it_stood() {
        let text = "Zur Straße: 한국!";
        let found: Vec<_> = units(text).iter().map(|unit| &text[unit.start..unit.end]).collect();
        assert_eq!(found, ["Zur", "Straße", "한", "국"]);
    }

    #[test]
    fn an_endless_word_counts_by_its_beginning() {
        let unit = &units(&"x".repeat(8_000))[0];
        assert_eq!((unit.text.len(), unit.end), (WORD_CHARS_MAX, 8_000));
    }

    proptest! {
        /// Whatever the text, units lie in it, in order, on its characters' borders.
        #[test]
        fn units_lie_in_the_text(text in "\\PC{0,60}") {
            let mut last = 0;
            for unit in units(&text) {
                prop_assert!(text.get(unit.start..unit.end).is_some());
                prop_assert!(unit.start >= last || unit.end >= last);
                last = unit.start;
            }
        }
    }
}

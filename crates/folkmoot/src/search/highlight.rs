//! Where a text has what a query wants, and the part of it to show. Pure, and the judge of the
//! index: what is not found here is not a hit, whatever the index says.

use std::ops::Range;

use super::query::Wanted;
use super::text::{Kind, Unit, units};

/// Characters of an excerpt: three lines of a narrow panel.
const EXCERPT_CHARS_MAX: usize = 200;
/// Characters shown before the first match.
const LEAD_CHARS_MAX: usize = 60;
/// How far a cut may move to fall between words.
const BORDER_CHARS_MAX: usize = 16;
const CUT: char = '…';

/// A part of a text with the matches in it, counted in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    pub(crate) highlights: Vec<(u32, u32)>,
}

/// The part of `text` around its first match; `None` if it lacks something that is wanted.
pub(crate) fn excerpt(text: &str, wanted: &[Wanted]) -> Option<Excerpt> {
    let matches = matches(text, wanted)?;
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let char_at = |byte: usize| chars.partition_point(|(start, _)| *start < byte);
    let first = matches.first().map_or(0, |range| char_at(range.start));
    let start = match first.saturating_sub(LEAD_CHARS_MAX) {
        0 => 0,
        _ if chars.len() <= EXCERPT_CHARS_MAX => 0,
        cut => border(&chars, cut..(cut + BORDER_CHARS_MAX).min(first)).unwrap_or(cut),
    };
    let end = (start + EXCERPT_CHARS_MAX).min(chars.len());
    let mut shown: String = if start > 0 { CUT.to_string() } else { String::new() };
    shown.extend(chars[start..end].iter().map(|(_, char)| char));
    if end < chars.len() {
        shown.push(CUT);
    }
    let shift = usize::from(start > 0);
    let place = |byte: usize| {
        let at = char_at(byte).clamp(start, end) - start + shift;
        u32::try_from(at).unwrap_or(u32::MAX)
    };
    let highlights = matches.iter().map(|range| (place(range.start), place(range.end)));
    let highlights = highlights.filter(|(from, to)| from < to).collect();
    Some(Excerpt { text: shown, highlights })
}

/// The first place after a space in a range of characters.
fn border(chars: &[(usize, char)], mut range: Range<usize>) -> Option<usize> {
    range.find(|at| chars[*at].1.is_whitespace()).map(|at| at + 1)
}

/// Byte ranges of what matches, rising and apart from each other.
fn matches(text: &str, wanted: &[Wanted]) -> Option<Vec<Range<usize>>> {
    let units = units(text);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for wanted in wanted {
        let before = ranges.len();
        match wanted {
            Wanted::Prefix(prefix) => ranges.extend(
                units
                    .iter()
                    .filter(|unit| unit.kind == Kind::Word && unit.text.starts_with(prefix))
                    .map(|unit| unit.start..unit.end),
            ),
            Wanted::Phrase(phrase) => ranges.extend(
                units
                    .windows(phrase.len())
                    .filter(|window| window.iter().zip(phrase).all(|(has, wants)| fits(has, wants)))
                    .map(|window| window[0].start..window[window.len() - 1].end),
            ),
        }
        if ranges.len() == before {
            return None;
        }
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match apart.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => apart.push(range),
        }
    }
    Some(apart)
}

/// Characters that the query has side by side must be so in the text.
fn fits(has: &Unit, wants: &Unit) -> bool {
    has.text == wants.text && (wants.kind != Kind::Continued || has.kind == Kind::Continued)
}

#[cfg(test)]
mod tests {
    use super::super::query::parse;
    use super::*;

    fn marked(text: &str, query: &str) -> Option<String> {
        let found = excerpt(text, &parse(query).unwrap().wanted)?;
        let chars: Vec<char> = found.text.chars().collect();
        let mut marked = String::new();
        let mut last = 0;
        for (from, to) in found.highlights {
            let (from, to) = (from as usize, to as usize);
            marked.extend(&chars[last..from]);
            marked.push('[');
            marked.extend(&chars[from..to]);
            marked.push(']');
            last = to;
        }
        marked.extend(&chars[last..]);
        Some(marked)
    }

    #[test]
    fn what_matches_is_marked_in_the_original_text() {
        let text = "Der Café-Besitzer, in der STRASSE, trinkt Tee.";
        assert_eq!(
            marked(text, "cafe straße te*").unwrap(),
            "Der [Café]-Besitzer, in der [STRASSE], trinkt [Tee]."
        );
        assert_eq!(marked("今日は東京タワーへ", "東京タワー").unwrap(), "今日は[東京タワー]へ");
        assert_eq!(marked("🎉🎉 tea", "tea").unwrap(), "🎉🎉 [tea]");
    }

    #[test]
    fn a_text_that_lacks_a_word_is_no_hit() {
        assert_eq!(marked("long boats", "long rope"), None);
        assert_eq!(marked("rope, long", "\"long rope\""), None);
        assert_eq!(marked("京 東", "京東"), None);
        assert_eq!(marked("東、京", "東京"), None);
        assert_eq!(marked("hafenmeister", "hafen"), None);
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_match() {
        let text = format!("{}the needle lies here {}", "hay ".repeat(200), "straw ".repeat(200));
        let shown = marked(&text, "needle").unwrap();
        assert!(shown.starts_with("…hay hay") && shown.ends_with('…'), "{shown}");
        assert!(shown.contains("the [needle] lies"), "{shown}");
        assert!(shown.chars().count() <= EXCERPT_CHARS_MAX + 4);
    }

    #[test]
    fn overlapping_matches_become_one() {
        assert_eq!(marked("ababa ab", "ab*").unwrap(), "[ababa] [ab]");
        assert_eq!(marked("東京京都", "東京 京都").unwrap(), "[東京京都]");
    }
}

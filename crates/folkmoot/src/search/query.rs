//! What a query means: words, phrases, beginnings of words, and filters. Pure; names of people and
//! rooms are looked up by whoever runs it.
//!
//! ```text
//! hafen "long rope" boat* from:anna in:"Tea room" after:2026-11-01 before:2026-12-01
//! ```
//! All words must be there. What stands together without a space (`don't`, `a/b`, 東京) has to be
//! found together.

use super::text::{Kind, Unit, units};

/// Letters a beginning of a word needs: fewer would match half of what was ever said.
const PREFIX_CHARS_MIN: usize = 2;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Something that a message's text must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// These units, one right after the other; one unit for a word.
    Phrase(Vec<Unit>),
    /// A word that begins so.
    Prefix(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) wanted: Vec<Wanted>,
    /// Account names, any of which may be the author; none: everybody.
    pub(crate) from: Vec<String>,
    /// Names or ids of rooms, any of which it may be in; none: all.
    pub(crate) rooms: Vec<String>,
    /// Milliseconds since 1970: sent then or later.
    pub(crate) after: Option<u64>,
    /// Sent earlier than that.
    pub(crate) before: Option<u64>,
}

/// Why a query cannot be run; the text is for the person who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QueryError {
    #[error("a quotation mark is not closed")]
    OpenQuote,
    #[error("there is nothing to search for: give a word of letters or digits, or a filter")]
    Nothing,
    #[error("`{0}:` needs a value right after it")]
    NoValue(&'static str),
    #[error("`{field}:` needs a day such as 2026-11-30, not `{value}`")]
    NotADay { field: &'static str, value: String },
    #[error("`*` stands at the end of one word of at least {PREFIX_CHARS_MIN} letters")]
    BadPrefix,
}

/// Reads a query.
pub(crate) fn parse(text: &str) -> Result<Query, QueryError> {
    let mut query = Query::default();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (filter, after_name) = filter_name(rest);
        let (value, is_quoted, next) = chunk(after_name)?;
        match filter {
            Some(_) if value.is_empty() => return Err(QueryError::NoValue(filter.unwrap_or(""))),
            Some("from") => query.from.push(value.trim_start_matches('@').to_lowercase()),
            Some("in") => query.rooms.push(value.trim_start_matches(['#', '@']).to_owned()),
            Some("after") => query.after = query.after.max(Some(day("after", value)?)),
            Some("before") => {
                let day = day("before", value)?;
                query.before = Some(query.before.map_or(day, |known| known.min(day)));
            }
            // Once is enough: every one is looked for in each text that is shown.
            _ => query
                .wanted
                .extend(wanted(value, is_quoted)?.filter(|wanted| !query.wanted.contains(wanted))),
        }
        rest = next.trim_start();
    }
    let has_filter = !query.from.is_empty() || !query.rooms.is_empty();
    match query.wanted.is_empty() && !has_filter && query.after.or(query.before).is_none() {
        true => Err(QueryError::Nothing),
        false => Ok(query),
    }
}

/// The filter that `text` begins with, and what stands after its colon.
fn filter_name(text: &str) -> (Option<&'static str>, &str) {
    for name in ["from", "in", "after", "before"] {
        let rest = text.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name));
        if let Some(value) = rest.and_then(|_| text[name.len()..].strip_prefix(':')) {
            return (Some(name), value);
        }
    }
    (None, text)
}

/// Cuts off what stands before the next space, or between quotation marks.
fn chunk(text: &str) -> Result<(&str, bool, &str), QueryError> {
    let quoted = text.strip_prefix(['"', '“', '„', '”', '«', '»']);
    if let Some(inner) = quoted {
        let end = inner.find(['"', '“', '”', '«', '»']).ok_or(QueryError::OpenQuote)?;
        let width = inner[end..].chars().next().map_or(0, char::len_utf8);
        return Ok((&inner[..end], true, &inner[end + width..]));
    }
    let end = text.find(|char: char| char.is_whitespace() || char == '"').unwrap_or(text.len());
    Ok((&text[..end], false, &text[end..]))
}

/// Only marks (`!!`) want nothing.
fn wanted(text: &str, is_quoted: bool) -> Result<Option<Wanted>, QueryError> {
    let mut units = units(text);
    if is_quoted || !text.ends_with('*') || units.is_empty() {
        return Ok((!units.is_empty()).then_some(Wanted::Phrase(units)));
    }
    let unit = units.swap_remove(0);
    // Beginnings of what is read by character are found anyway.
    let is_word = units.is_empty() && unit.kind == Kind::Word;
    match is_word && unit.text.chars().count() >= PREFIX_CHARS_MIN {
        true => Ok(Some(Wanted::Prefix(unit.text))),
        false => Err(QueryError::BadPrefix),
    }
}

/// The first millisecond of a day, in UTC.
fn day(field: &'static str, value: &str) -> Result<u64, QueryError> {
    let wrong = || QueryError::NotADay { field, value: value.to_owned() };
    let is_shaped = value.len() == 10
        && value.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_shaped {
        return Err(wrong());
    }
    let number = |range: std::ops::Range<usize>| value[range].parse::<u64>().map_err(|_| wrong());
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    if year < 1970 || !(1..=days_of_month).contains(&day) {
        return Err(wrong());
    }
    Ok(days_since_1970(year, month, day) * DAY_MS)
}

/// Counts years from March, so that the leap day is a year's last (Hinnant, `days_from_civil`).
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(query: &Query) -> Vec<String> {
        let text = |wanted: &Wanted| match wanted {
            Wanted::Phrase(units) => {
                units.iter().map(|unit| unit.text.as_str()).collect::<Vec<_>>().join("+")
            }
            Wanted::Prefix(prefix) => format!("{prefix}*"),
        };
        query.wanted.iter().map(text).collect()
    }

    #[test]
    fn words_phrases_beginnings_and_filters_are_told_apart() {
        let text = "Hafen \"long Rope\" boat* don't from:@Anna in:\"Tea room\" IN:pub 東京 10:30";
        let query = parse(text).unwrap();
        assert_eq!(texts(&query), ["hafen", "long+rope", "boat*", "don+t", "東+京", "10+30"]);
        assert_eq!(query.from, ["anna"]);
        assert_eq!(query.rooms, ["Tea room", "pub"]);
        assert_eq!(texts(&parse("“smart quotes” „auch so“").unwrap()), ["smart+quotes", "auch+so"]);
    }

    #[test]
    fn what_is_wanted_twice_is_looked_for_once() {
        let query = parse("boat BOAT \"boat\" boat* boat* \"a boat\" boat").unwrap();
        assert_eq!(texts(&query), ["boat", "boat*", "a+boat"]);
    }

    #[test]
    fn days_are_read_in_utc_and_narrow_each_other() {
        let query = parse("x after:1970-01-02 after:2024-02-29 before:2026-11-21").unwrap();
        assert_eq!(query.after, Some(1_709_164_800_000));
        assert_eq!(query.before, Some(1_795_219_200_000));
        assert_eq!(parse("before:1970-01-01").unwrap().before, Some(0));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_reason() {
        assert_eq!(parse("say \"hello"), Err(QueryError::OpenQuote));
        assert_eq!(parse("  !!  "), Err(QueryError::Nothing));
        assert_eq!(parse("tea from:"), Err(QueryError::NoValue("from")));
        assert_eq!(parse("in: tea"), Err(QueryError::NoValue("in")));
        for prefix in ["a*", "a-b*", "東京*"] {
            assert_eq!(parse(prefix), Err(QueryError::BadPrefix), "{prefix}");
        }
        for day in ["2026-02-29", "2026-13-01", "2026-1-1", "1969-12-31", "yesterday", "2026-00-10"]
        {
            let error = parse(&format!("x before:{day}")).unwrap_err();
            assert!(error.to_string().contains(day), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_the_reader(text in "\\PC{0,40}", marks in "[\"*:“” a-z東0-9-]{0,40}") {
            let _ = parse(&text);
            let _ = parse(&marks);
        }
    }
}

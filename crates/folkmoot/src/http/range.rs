//! The one range of bytes that a request may ask for (RFC 9110, section 14). Several at once are
//! answered as none.

use std::ops::Range;

/// What of a file to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    All,
    Part(Range<u64>),
    /// It begins after the end.
    Unsatisfiable,
}

/// Reads a `Range` header for a file of `size` bytes.
pub(crate) fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(range) = header.and_then(|text| text.strip_prefix("bytes=")) else {
        return Wanted::All;
    };
    let Some((first, last)) = range.split_once('-').filter(|_| !range.contains(',')) else {
        return Wanted::All;
    };
    let part = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..size.min(last.saturating_add(1)),
        (Ok(first), Err(_)) if last.is_empty() => first..size,
        // The last so many bytes.
        (Err(_), Ok(count)) if first.is_empty() => size.saturating_sub(count)..size,
        _ => return Wanted::All,
    };
    match part.start < part.end {
        true => Wanted::Part(part),
        false => Wanted::Unsatisfiable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_to_the_file() {
        for (header, expected) in [
            (None, Wanted::All),
            (Some("bytes=0-9"), Wanted::Part(0..10)),
            (Some("bytes=90-"), Wanted::Part(90..100)),
            (Some("bytes=90-900"), Wanted::Part(90..100)),
            (Some("bytes=-10"), Wanted::Part(90..100)),
            (Some("bytes=-1000"), Wanted::Part(0..100)),
            (Some("bytes=100-"), Wanted::Unsatisfiable),
            (Some("bytes=-0"), Wanted::Unsatisfiable),
            (Some("bytes=5-2"), Wanted::All),
            (Some("bytes=0-1,5-6"), Wanted::All),
            (Some("bytes=x-y"), Wanted::All),
            (Some("lines=0-1"), Wanted::All),
        ] {
            assert_eq!(wanted(header, 100), expected, "{header:?}");
        }
    }
}

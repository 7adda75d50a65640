//! One value out of a query string.

use std::borrow::Cow;

/// The value of `name`, percent-decoded; `None` if it is not there or is not UTF-8.
pub(crate) fn value<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, raw) = pairs.into_iter().find(|(key, _)| *key == name)?;
    if !raw.contains(['%', '+']) {
        return Some(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let (hex, after) = rest.split_at_checked(2)?;
                rest = after;
                bytes.push(u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?);
            }
            b'+' => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_found_and_decoded() {
        assert_eq!(value(Some("id=0055/01216"), "id").as_deref(), Some("0055/01216"));
        assert_eq!(value(Some("a=1&id=0055%2f01216&b"), "id").as_deref(), Some("0055/01216"));
        assert_eq!(value(Some("id=a+b"), "id").as_deref(), Some("a b"));
        for bad in [None, Some(""), Some("idx=1"), Some("id=%f"), Some("id=%ff"), Some("id=%g0")] {
            assert_eq!(value(bad, "id"), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_queries_never_panic(query in ".*") {
            let _ = value(Some(&query), "id");
        }
    }
}

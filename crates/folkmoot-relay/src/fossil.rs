//! Deltas in Fossil's format: how one value becomes the next, as pieces copied from the old one and
//! pieces that are new. A value: bytes in, bytes out.
//!
//! Format: <https://fossil-scm.org/home/doc/tip/www/delta_format.wiki>. Where the new value is text,
//! pieces begin and end between two characters of UTF-8: a delta of text is text, which JSON carries.

use std::collections::HashMap;

/// Bytes that must be the same for a piece to be found in the middle.
const BLOCK: usize = 16;
/// A copy costs about as much, so shorter ones gain nothing.
const COPY_LEN_MIN: usize = 10;
/// Values above this are sent whole: both are held in memory while the delta is made.
pub(crate) const VALUE_BYTES_MAX: usize = 1 << 20;

const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";

/// How `old` becomes `new`.
pub(crate) fn delta(old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut delta = Vec::with_capacity(64);
    put_number(&mut delta, new.len() as u64);
    delta.push(b'\n');
    let known = Known { old, blocks: blocks(old), is_text: std::str::from_utf8(new).is_ok() };
    // Up to where `new` is written.
    let mut done = 0;
    let mut at = 0;
    while at < new.len() {
        let found = known.find(new, at, done).filter(|copy| copy.len >= COPY_LEN_MIN);
        let Some(Copy { from, to, len }) = found else {
            at += 1;
            continue;
        };
        insert(&mut delta, &new[done..to]);
        put_number(&mut delta, len as u64);
        delta.push(b'@');
        put_number(&mut delta, from as u64);
        delta.push(b',');
        (done, at) = (to + len, to + len);
    }
    insert(&mut delta, &new[done..]);
    put_number(&mut delta, checksum(new).into());
    delta.push(b';');
    delta
}

/// A piece of the old value that is in the new one too.
struct Copy {
    from: usize,
    to: usize,
    len: usize,
}

/// The old value.
struct Known<'old> {
    old: &'old [u8],
    blocks: HashMap<&'old [u8], usize>,
    /// Whether the new one is text. In other bytes there may be no place between two characters for
    /// as long as a value is, and each would be looked for there again and again.
    is_text: bool,
}

/// Where each block of the old value is; of equal ones the first.
fn blocks(old: &[u8]) -> HashMap<&[u8], usize> {
    let mut blocks = HashMap::with_capacity(old.len() / BLOCK);
    for (number, block) in old.chunks_exact(BLOCK).enumerate() {
        blocks.entry(block).or_insert(number * BLOCK);
    }
    blocks
}

impl Known<'_> {
    /// The longest piece around the block at `at` that does not reach before `done`.
    fn find(&self, new: &[u8], at: usize, done: usize) -> Option<Copy> {
        let old = self.old;
        // What stands at the same place, as most of a document does, need not be a whole block.
        let straight = (at == done && at < old.len()).then_some(at);
        let block = new.get(at..at + BLOCK).and_then(|block| self.blocks.get(block).copied());
        let from = block.or(straight)?;
        let back = (0..at - done)
            .take_while(|back| from > *back && old[from - back - 1] == new[at - back - 1]);
        let back = back.count();
        let same = old[from..].iter().zip(&new[at..]).take_while(|(one, two)| one == two).count();
        let (mut to, mut end) = (at - back, at + same);
        while self.is_text && to < end && !is_boundary(new, to) {
            to += 1;
        }
        while self.is_text && end > to && !is_boundary(new, end) {
            end -= 1;
        }
        Some(Copy { from: from - back + (to - (at - back)), to, len: end - to })
    }
}

/// Whether no character of UTF-8 goes on here.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_none_or(|byte| byte & 0xc0 != 0x80)
}

fn insert(delta: &mut Vec<u8>, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_number(delta, bytes.len() as u64);
        delta.push(b':');
        delta.extend_from_slice(bytes);
    }
}

/// A number in base 64, the highest digit first.
fn put_number(delta: &mut Vec<u8>, number: u64) {
    let digits = (64 - number.leading_zeros()).div_ceil(6).max(1);
    for digit in (0..digits).rev() {
        delta.push(DIGITS[(number >> (6 * digit)) as usize & 63]);
    }
}

/// The sum of the value's numbers of four bytes, the last one filled up with zeros.
fn checksum(value: &[u8]) -> u32 {
    value.chunks(4).fold(0_u32, |sum, chunk| {
        let mut bytes = [0; 4];
        bytes[..chunk.len()].copy_from_slice(chunk);
        sum.wrapping_add(u32::from_be_bytes(bytes))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a client makes of it, written from the format's description.
    pub(crate) fn apply(old: &[u8], delta: &[u8]) -> Vec<u8> {
        let mut rest = delta;
        let number = |rest: &mut &[u8]| {
            let mut value = 0_u64;
            while let Some(digit) = DIGITS.iter().position(|digit| *digit == rest[0]) {
                value = value << 6 | digit as u64;
                *rest = &rest[1..];
            }
            let operator = rest[0];
            *rest = &rest[1..];
            (usize::try_from(value).unwrap(), operator)
        };
        let (len, end) = number(&mut rest);
        assert_eq!(end, b'\n');
        let mut new = Vec::new();
        loop {
            match number(&mut rest) {
                (count, b'@') => {
                    let (from, end) = number(&mut rest);
                    assert_eq!(end, b',');
                    new.extend_from_slice(&old[from..from + count]);
                }
                (count, b':') => {
                    new.extend_from_slice(&rest[..count]);
                    rest = &rest[count..];
                }
                (sum, b';') => {
                    assert_eq!((new.len(), sum), (len, checksum(&new) as usize));
                    return new;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn check(old: &[u8], new: &[u8]) -> usize {
        let delta = delta(old, new);
        assert_eq!(apply(old, &delta), new, "{:?}", String::from_utf8_lossy(&delta));
        delta.len()
    }

    /// Numbers that look random, the same each time.
    fn random(state: &mut u64) -> usize {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize
    }

    #[test]
    fn a_document_of_two_kilobytes_that_changes_in_one_field_is_saved_to_nine_tenths() {
        let document = |score: u32| {
            let field = |number: usize| format!("\"field {number}\":\"value {}\"", number * 7_919);
            let fields: Vec<_> = (0..80).map(field).collect();
            format!("{{\"score\":{score},{}}}", fields.join(","))
        };
        let (old, new) = (document(9), document(10));
        assert!(new.len() > 2_000, "{}", new.len());
        let len = check(old.as_bytes(), new.as_bytes());
        assert!(len * 10 <= new.len(), "{len} of {}", new.len());
    }

    #[test]
    fn every_change_is_made_again_and_text_stays_text() {
        let mut state = 7;
        let letters: Vec<char> = "ab{}\":,ĀбÑ漢🙂".chars().collect();
        for round in 0..2_000 {
            let len = random(&mut state) % 300;
            let old: Vec<char> =
                (0..len).map(|_| letters[random(&mut state) % letters.len()]).collect();
            let mut new = old.clone();
            for _ in 0..random(&mut state) % 4 {
                let at = random(&mut state) % (new.len() + 1);
                let end = (at + random(&mut state) % 40).min(new.len());
                let moved: Vec<char> = new.drain(at..end).collect();
                if round % 2 == 0 {
                    let at = random(&mut state) % (new.len() + 1);
                    new.splice(at..at, moved);
                } else {
                    new.insert(at, letters[random(&mut state) % letters.len()]);
                }
            }
            let (old, new): (String, String) =
                (old.into_iter().collect(), new.into_iter().collect());
            check(old.as_bytes(), new.as_bytes());
            assert!(String::from_utf8(delta(old.as_bytes(), new.as_bytes())).is_ok());
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_looked_for_once_and_copied() {
        // Between none of them is a place between two characters.
        let bytes: Vec<u8> =
            (0..4_000_u32).map(|number| 0x80 | (number * number % 61) as u8).collect();
        let mut other = bytes.clone();
        other[2_000] = 0xff;
        for new in [&bytes, &other] {
            assert!(check(&bytes, new) < 40);
        }
    }

    #[test]
    fn empty_values_equal_values_and_any_bytes_have_deltas() {
        let bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
        for (old, new) in [(&b""[..], &b""[..]), (b"", b"new"), (b"old", b""), (&bytes, &bytes)] {
            check(old, new);
        }
        check(&bytes, &bytes[100..4_000]);
        assert!(check(&bytes, &bytes) < 32);
    }
}

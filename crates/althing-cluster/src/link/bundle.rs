//! Many tells in one frame: what most of the traffic is, with nothing in it that was said before.
//!
//! A bundle is the third variant of `Forth`, a protobuf message: `first` (1) is the number of its
//! first tell, and the others follow without gaps; `view` (2) is the record that the sender knew;
//! `tells` (3) are bytes, in which each tell is the number of its route (see `Item::Route`), the
//! length of its body, both as varints, and the body.
//!
//! The two lengths in front are written as varints of five bytes, whatever they are: they are known
//! only when a bundle is full or is about to be written, and by then its tells are in place.

use std::ops::Range;

use althing::WireError;
use althing::wire::{Depth, Fields, WireField};

use crate::protocol::Broken;

/// Bytes of tells from which on the next one begins another bundle: enough that the bytes around
/// them do not count, few enough that every node reads the frame.
const TELLS_LEN_MAX: usize = 16 << 10;

/// The key of `tells` in `Forth`, by which a bundle is told from other frames.
const KEY: u8 = 3 << 3 | 2;

/// Bytes before the tells, at most: the frame's length, two keys with five bytes of length each, and
/// two keys with ten bytes of number each.
const HEAD_LEN_MAX: usize = 4 + 6 + 6 + 11 + 11;

/// A bundle that is being written at the end of some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    start: usize,
    tells: usize,
    view: u64,
}

impl Open {
    /// Begins a bundle.
    pub(super) fn begin(first: u64, view: u64, out: &mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend([0, 0, 0, 0, KEY, 0, 0, 0, 0, 0, 1 << 3]);
        put_varint(first, out);
        out.push(2 << 3);
        put_varint(view, out);
        out.extend([KEY, 0, 0, 0, 0, 0]);
        Self { start, tells: out.len(), view }
    }

    /// Whether the next tell may go into it.
    pub(super) fn takes(&self, view: u64, out: &[u8]) -> bool {
        self.view == view && out.len() - self.tells < TELLS_LEN_MAX
    }

    /// Writes the lengths.
    pub(super) fn end(self, out: &mut [u8]) {
        let len = |from: usize| u32::try_from(out.len() - from).unwrap_or(u32::MAX);
        let (frame, inner, tells) = (len(self.start + 4), len(self.start + 10), len(self.tells));
        out[self.start..self.start + 4].copy_from_slice(&frame.to_be_bytes());
        out[self.start + 5..self.start + 10].copy_from_slice(&five_bytes(inner));
        out[self.tells - 5..self.tells].copy_from_slice(&five_bytes(tells));
    }
}

/// Whether a bundle that has a tell of that length already, or begins with it, is no longer than a
/// frame may be.
pub(super) fn fits(body_len: usize, len_max: usize) -> bool {
    TELLS_LEN_MAX + HEAD_LEN_MAX + 15 + body_len <= len_max
}

/// Appends a tell to the bundle at the end.
#[inline]
pub(super) fn put_tell(route: u32, body: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(route), out);
    put_varint(body.len() as u64, out);
    out.extend_from_slice(body);
}

#[inline]
fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn five_bytes(len: u32) -> [u8; 5] {
    let bits = |n: u32| (u64::from(len) >> (7 * n)).to_le_bytes()[0];
    [bits(0) | 0x80, bits(1) | 0x80, bits(2) | 0x80, bits(3) | 0x80, bits(4) & 0x0f]
}

/// A bundle that has come: where its tells stand in the bytes of its frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bundle {
    pub(super) first: u64,
    pub(super) view: u64,
    pub(super) tells: Range<usize>,
}

/// Reads the head of a bundle; `None` of any other frame.
///
/// # Errors
/// It cannot be read.
pub(super) fn read(frame: &[u8]) -> Result<Option<Bundle>, WireError> {
    if frame.first() != Some(&KEY) {
        return Ok(None);
    }
    let mut outer = Fields::new(frame, Depth::OUTERMOST);
    let (mut first, mut view, mut tells) = (0, 0, 0..0);
    while let Some(value) = outer.next_field()? {
        if value.number() != 3 {
            return Err(WireError::new("a bundle and something else in one frame"));
        }
        let (inner, depth) = value.nested()?;
        let mut fields = Fields::new(inner, depth);
        while let Some(value) = fields.next_field()? {
            match value.number() {
                1 => first = u64::decode_single(value)?,
                2 => view = u64::decode_single(value)?,
                3 => {
                    let bytes = value.bytes()?;
                    let start = bytes.as_ptr() as usize - frame.as_ptr() as usize;
                    tells = start..start + bytes.len();
                }
                _ => {}
            }
        }
    }
    Ok(Some(Bundle { first, view, tells }))
}

/// The tells that are written one behind the other, each with its route.
#[derive(Clone, Debug)]
pub(crate) struct Tells<'a> {
    rest: &'a [u8],
}

impl<'a> Tells<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes that were not read.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Goes over the next tells that have one route, at most `count_max`: that route, and how many they
    /// are; `None` at the end.
    ///
    /// # Errors
    /// The bytes end within one of them.
    pub(super) fn next_run(&mut self, count_max: u64) -> Result<Option<(u32, u64)>, Broken> {
        let Some((route, _)) = self.next_tell()? else { return Ok(None) };
        let mut count = 1;
        while count < count_max {
            let mut ahead = self.clone();
            match ahead.next_tell()? {
                Some((other, _)) if other == route => *self = ahead,
                _ => break,
            }
            count += 1;
        }
        Ok(Some((route, count)))
    }

    /// Those behind so many.
    pub(super) fn skip_tells(mut self, count: u64) -> Self {
        (0..count).for_each(|_| _ = self.next());
        self
    }

    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// The bytes end within it.
    #[inline]
    pub(super) fn next_tell(&mut self) -> Result<Option<(u32, &'a [u8])>, Broken> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut rest = self.rest;
        let route = take_varint(&mut rest).ok_or_else(cut_off)?;
        let len = take_varint(&mut rest).ok_or_else(cut_off)?;
        let (body, rest) = rest.split_at_checked(len as usize).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(Some((route, body)))
    }
}

/// The bodies, of tells that were looked at before.
impl<'a> Iterator for Tells<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.next_tell().ok().flatten().map(|(_, body)| body)
    }
}

/// A number of at most 32 bits.
#[inline]
fn take_varint(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u64;
    for shift in (0..35).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return u32::try_from(value).ok();
        }
    }
    None
}

fn cut_off() -> Broken {
    Broken::Unreadable(WireError::new("a bundle ends within a tell"))
}

#[cfg(test)]
mod tests {
    use althing::Wire;

    use super::{Bundle, Open, Tells, put_tell, read};
    use crate::protocol::Forth;

    /// A frame with these tells.
    fn bundle(tells: &[(u32, &[u8])]) -> Vec<u8> {
        let mut out = vec![0xee];
        let open = Open::begin(300, 7, &mut out);
        tells.iter().for_each(|(route, body)| put_tell(*route, body, &mut out));
        open.end(&mut out);
        assert_eq!(out.remove(0), 0xee, "what stands before it stays");
        out
    }

    #[test]
    fn a_bundle_is_read_as_it_was_written_and_is_protobuf() {
        let long = [9; 400];
        let sent: [(u32, &[u8]); 4] = [(0, &[8, 1]), (0, &[]), (1_023, &long), (5, &[1])];
        let frame = bundle(&sent);
        let (len, body) = frame.split_first_chunk::<4>().expect("it has a length");
        assert_eq!(u32::from_be_bytes(*len) as usize, body.len());
        let Bundle { first, view, tells } = read(body).expect("it is one").expect("a bundle");
        assert_eq!((first, view), (300, 7));
        let mut read = Tells::new(&body[tells.clone()]);
        let mut heard = Vec::new();
        while let Some(tell) = read.next_tell().expect("it is whole") {
            heard.push(tell);
        }
        assert_eq!(heard, sent);
        let generic = Forth::decode(body).expect("it is a message");
        let Forth::Tells { first: 300, view: 7, tells: bytes } = generic else {
            panic!("{generic:?}");
        };
        assert_eq!(bytes, body[tells]);
    }

    #[test]
    fn tells_of_one_route_are_a_run_and_no_more_than_asked_for() {
        let mut bytes = Vec::new();
        for route in [4, 4, 4, 2, 4] {
            put_tell(route, &[route.to_le_bytes()[0]], &mut bytes);
        }
        let mut tells = Tells::new(&bytes);
        let mut runs = Vec::new();
        while let Some(run) = tells.next_run(2).expect("they are whole") {
            runs.push(run);
        }
        assert_eq!(runs, [(4, 2), (4, 1), (2, 1), (4, 1)]);
        let rest: Vec<_> = Tells::new(&bytes).skip_tells(3).collect();
        assert_eq!(rest, [[2], [4]]);
    }

    #[test]
    fn a_bundle_that_ends_too_early_is_refused_wherever_that_is() {
        let frame = bundle(&[(3, &[8, 1]), (700, &[8, 1])]);
        let body = &frame[4..];
        for end in 1..body.len() {
            assert!(read(&body[..end]).is_err(), "cut at {end}");
        }
        let Bundle { tells, .. } = read(body).expect("it is one").expect("a bundle");
        let tells = &body[tells];
        for end in 0..tells.len() {
            let mut cut = Tells::new(&tells[..end]);
            let mut whole = 0;
            let ended = loop {
                match cut.next_tell() {
                    Ok(Some(_)) => whole += 1,
                    ended => break ended,
                }
            };
            // The first one has four bytes, the other one, with its longer number, five.
            let is_whole = [0, 4].contains(&end);
            assert_eq!((ended.is_ok(), whole), (is_whole, u32::from(end >= 4)), "cut at {end}");
        }
        let too_long = [1, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(Tells::new(&too_long).next_tell().is_err(), "a length of more than 32 bits");
    }
}

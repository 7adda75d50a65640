//! The bytes of a log segment, and what a damaged one means. Bytes in, verdict out; they are read
//! from front to back, a bounded part of them at a time.
//!
//! ```text
//! segment  magic 8 | number u64 | first lsn u64 | zero u32 | crc32c u32      then records, then zeros
//! record   length u32 | crc32c u32 | lsn u64 | durable u64 | payload          all little endian
//! ```
//! `durable` is the last lsn known to be synced when the record was written. It is what tells a
//! torn tail from damage: after a power cut any part of the last, unacknowledged write may be
//! missing, even with valid records behind the hole; but a valid record that says "the missing one
//! was durable" proves that an acknowledged record is lost. The first is cut off, the second is an
//! error.

use std::io::{self, Read};

use super::pieces::Pieces;
use crate::storage::ids::Lsn;

/// Bytes before the first record of a segment.
pub const SEGMENT_HEADER_LEN: usize = 32;
/// Bytes before a record's payload.
pub const RECORD_HEADER_LEN: usize = 24;
/// The largest payload. A message's body is at most 32 KiB; the rest is room for what comes later,
/// while a damaged length still cannot ask for gigabytes.
pub const PAYLOAD_LEN_MAX: usize = 1 << 20;
/// The largest record.
pub(super) const FRAME_LEN_MAX: usize = RECORD_HEADER_LEN + PAYLOAD_LEN_MAX;

/// No log comes to this; from here on counting could overflow.
const LSN_MAX: u64 = 1 << 62;
const MAGIC: [u8; 8] = *b"FMLOG\0\0\x01";

/// What the first bytes of a segment say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The segment's number, as in its file name.
    pub number: u64,
    /// The lsn of its first record; records of older segments from here on are superseded.
    pub first_lsn: Lsn,
}

impl SegmentHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(self) -> [u8; SEGMENT_HEADER_LEN] {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header; `None` for bytes that are none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..SEGMENT_HEADER_LEN)?;
        let intact = bytes[..8] == MAGIC && crc32c::crc32c(&bytes[..28]) == u32_at(bytes, 28);
        let first_lsn = Lsn(u64_at(bytes, 16));
        // The reserved bytes mean something to a newer program, if they are not zero.
        let known = u32_at(bytes, 24) == 0 && (1..=LSN_MAX).contains(&first_lsn.0);
        (intact && known).then(|| Self { number: u64_at(bytes, 8), first_lsn })
    }
}

/// One intact record, borrowed from a segment's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its number.
    pub lsn: Lsn,
    /// The last record known to be durable when this one was written.
    pub durable: Lsn,
    /// The encoded record.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// Bytes it takes in the segment.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a frame has a header and is never empty")]
    pub fn len(&self) -> usize {
        RECORD_HEADER_LEN + self.payload.len()
    }
}

/// Appends a record's bytes to `out`.
pub fn encode_frame(out: &mut Vec<u8>, lsn: Lsn, durable: Lsn, payload: &[u8]) {
    debug_assert!(!payload.is_empty() && payload.len() <= PAYLOAD_LEN_MAX);
    let length = u32::try_from(payload.len()).expect("the queue refuses payloads over the limit");
    let start = out.len();
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&lsn.0.to_le_bytes());
    out.extend_from_slice(&durable.0.to_le_bytes());
    out.extend_from_slice(payload);
    let crc = frame_crc(&out[start..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

/// Reads the record at the start of `bytes`; `None` unless it is whole and intact.
#[must_use]
pub fn decode_frame(bytes: &[u8]) -> Option<Frame<'_>> {
    let length = frame_len(bytes)?;
    let bytes = bytes.get(..length)?;
    (frame_crc(bytes) == u32_at(bytes, 4)).then(|| Frame {
        lsn: Lsn(u64_at(bytes, 8)),
        durable: Lsn(u64_at(bytes, 16)),
        payload: &bytes[RECORD_HEADER_LEN..],
    })
}

/// The length a record at the start of `bytes` claims, header included; `None` for an impossible
/// claim.
#[must_use]
pub fn frame_len(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < RECORD_HEADER_LEN {
        return None;
    }
    let length = u32_at(bytes, 0) as usize;
    (1..=PAYLOAD_LEN_MAX).contains(&length).then_some(RECORD_HEADER_LEN + length)
}

/// How the records of a segment end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing but zeros, or the file's end, follows.
    Clean,
    /// An unfinished write follows, none of it acknowledged.
    Torn,
    /// An acknowledged record is damaged.
    Corrupt(String),
}

/// What a scan of a segment found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The segment's header.
    pub header: SegmentHeader,
    /// The last intact record, or the one before the segment's first.
    pub last_lsn: Lsn,
    /// Where the intact records end.
    pub valid_len: usize,
    /// What follows them.
    pub end: End,
}

/// Walks the records of a whole segment, handing each to `visit`, up to the first that is not
/// intact.
///
/// `until` is the first lsn of the following segment, which supersedes what this one holds from
/// there on. Returns `None` if the header itself is not intact.
///
/// # Errors
/// Only those of `source`.
pub fn scan(
    source: impl Read,
    until: Option<Lsn>,
    mut visit: impl FnMut(Frame<'_>),
) -> io::Result<Option<Scan>> {
    let mut pieces = Pieces::new(source);
    let Some(header) = SegmentHeader::decode(pieces.ahead(SEGMENT_HEADER_LEN)?) else {
        return Ok(None);
    };
    pieces.pass(SEGMENT_HEADER_LEN);
    let mut last_lsn = Lsn(header.first_lsn.0 - 1);
    let mut valid_len = SEGMENT_HEADER_LEN;
    loop {
        let expected = last_lsn.next();
        if until.is_some_and(|until| expected >= until) {
            return Ok(Some(Scan { header, last_lsn, valid_len, end: End::Clean }));
        }
        let len = frame_len(pieces.ahead(RECORD_HEADER_LEN)?).unwrap_or(RECORD_HEADER_LEN);
        match decode_frame(pieces.ahead(len)?) {
            Some(frame) if frame.lsn == expected => {
                visit(frame);
                last_lsn = expected;
                valid_len += len;
                pieces.pass(len);
            }
            _ => {
                let end = judge_end(&mut pieces, expected, until)?;
                return Ok(Some(Scan { header, last_lsn, valid_len, end }));
            }
        }
    }
}

/// Says what it means that no intact record with lsn `missing` starts here.
fn judge_end(rest: &mut Pieces<impl Read>, missing: Lsn, until: Option<Lsn>) -> io::Result<End> {
    if let Some(until) = until {
        return Ok(End::Corrupt(format!(
            "record {missing} is damaged or missing, the next segment begins at record {until}"
        )));
    }
    let Some(zeros) = pass_zeros(rest)? else { return Ok(End::Clean) };
    Ok(match witness_of_loss(rest, zeros, missing)? {
        None => End::Torn,
        Some(witness) => End::Corrupt(format!(
            "record {missing} is damaged, but record {witness} behind it says it was acknowledged"
        )),
    })
}

/// Passes over zeros, but those with which a record can begin; `None` if there is nothing else.
fn pass_zeros(rest: &mut Pieces<impl Read>) -> io::Result<Option<u64>> {
    /// A length has four bytes, of which one is not zero.
    const MAY_BEGIN: usize = 3;
    let mut passed = 0;
    loop {
        let bytes = rest.ahead(FRAME_LEN_MAX)?;
        let (zeros, len) = (leading_zeros(bytes), bytes.len());
        if zeros == len && len < FRAME_LEN_MAX {
            return Ok(None);
        }
        let passable = zeros.saturating_sub(MAY_BEGIN);
        rest.pass(passable);
        passed += passable as u64;
        if zeros < len {
            return Ok(Some(passed));
        }
    }
}

/// How many zeros the bytes begin with: a block at a time, because a new segment is all zeros.
fn leading_zeros(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let blocks = bytes.chunks_exact(ZEROS.len()).take_while(|block| **block == ZEROS);
    let whole = blocks.count() * ZEROS.len();
    let rest = &bytes[whole..];
    whole + rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len())
}

/// Looks for an intact record written after `missing` was durable. `at`: how far behind the place
/// of that one `rest` begins.
fn witness_of_loss(
    rest: &mut Pieces<impl Read>,
    mut at: u64,
    missing: Lsn,
) -> io::Result<Option<Lsn>> {
    if at == 0 {
        // Where the missing one should be.
        let first = rest.ahead(1)?.len().min(1);
        rest.pass(first);
        at = 1;
    }
    loop {
        let bytes = rest.ahead(FRAME_LEN_MAX)?;
        let is_last = bytes.len() < FRAME_LEN_MAX;
        // Each of these is all there, if it is a record.
        let places = match is_last {
            true => bytes.len().saturating_sub(RECORD_HEADER_LEN),
            false => bytes.len() - FRAME_LEN_MAX + 1,
        };
        let found =
            (0..places).find_map(|place| witness(&bytes[place..], at + place as u64, missing));
        if found.is_some() || is_last {
            return Ok(found);
        }
        rest.pass(places);
        at += places as u64;
    }
}

/// A record that was written after `missing` was durable, so many bytes behind the place of that.
fn witness(bytes: &[u8], at: u64, missing: Lsn) -> Option<Lsn> {
    // Cheap tests first: a checksum at every byte of 64 MiB would take minutes. Records between the
    // two take a byte at least.
    let (lsn, durable) = (u64_at(bytes, 8), u64_at(bytes, 16));
    let plausible = durable >= missing.0 && durable < lsn && lsn - missing.0 <= at;
    if !plausible {
        return None;
    }
    decode_frame(bytes).map(|frame| frame.lsn)
}

fn frame_crc(frame: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&frame[..4]), &frame[8..])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes were sliced"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes were sliced"))
}

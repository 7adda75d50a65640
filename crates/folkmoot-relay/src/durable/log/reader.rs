//! Reads segments frame by frame, and tells a torn tail from damage.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::{FORMAT, FRAME_HEAD_BYTES, HEADER_BYTES, MAGIC, SUFFIX, Segment};

/// What is looked through for frames behind one that is not whole. Nothing that was written at once
/// is longer.
const LOOKED_THROUGH_BYTES_MAX: u64 = 256 << 20;

/// What gets the bodies of frames; false: it cannot read this one.
pub(in crate::durable) type Take<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::durable) enum Wrong {
    #[error("it is used by another process")]
    InUse,
    #[error("segment {0} has format {1}, and {FORMAT} is the last known")]
    Later(u64, u32),
    #[error("segment {0} is damaged at byte {1}: something that was acknowledged is gone")]
    Damaged(u64, u64),
    #[error("segment {0} is missing")]
    Missing(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Finds the segments of a directory and reads them.
pub(super) fn read_segments(directory: &Path, take: Take<'_>) -> Result<Vec<Segment>, Wrong> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.strip_suffix('.'));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    if let Some(gap) = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1) {
        return Err(Wrong::Missing(gap[0] + 1));
    }
    // How much of each counts, as later ones say.
    let mut ends = HashMap::new();
    let mut is_begun = Vec::new();
    for number in &numbers {
        let header = read_header(directory, *number)?;
        is_begun.push(header.is_some());
        if let Some(Segment { number, synced }) = header {
            ends.insert(number, synced);
        }
    }
    let mut segments = Vec::new();
    for (number, is_begun) in numbers.into_iter().zip(is_begun) {
        let end = ends.get(&number).copied();
        let synced = match (is_begun, end) {
            (true, end) => read_frames(directory, number, end, take)?,
            // It was being begun when the process ended: nothing was ever in it.
            (false, None | Some(0)) => 0,
            (false, Some(_)) => return Err(Wrong::Damaged(number, 0)),
        };
        segments.push(Segment { number, synced });
    }
    Ok(segments)
}

/// Reads what is known to be there.
pub(super) fn read(directory: &Path, segments: &[Segment], take: Take<'_>) -> Result<(), Wrong> {
    for Segment { number, synced } in segments.iter().filter(|segment| segment.synced > 0) {
        read_frames(directory, *number, Some(*synced), take)?;
    }
    Ok(())
}

/// Which segment came before this one, and how much of it counts; `None`: it is not whole.
fn read_header(directory: &Path, number: u64) -> Result<Option<Segment>, Wrong> {
    let mut bytes = [0; HEADER_BYTES];
    match File::open(super::path(directory, number))?.read_exact(&mut bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    if bytes[..8] != *MAGIC || super::header_crc(&bytes) != half(&bytes, 12) {
        return Ok(None);
    }
    match half(&bytes, 8) {
        FORMAT => Ok(Some(Segment { number: word(&bytes, 16), synced: word(&bytes, 24) })),
        later => Err(Wrong::Later(number, later)),
    }
}

/// Reads the frames up to `end`, or to the first that is not whole; says where that is.
fn read_frames(
    directory: &Path,
    number: u64,
    end: Option<u64>,
    take: Take<'_>,
) -> Result<u64, Wrong> {
    let file = File::open(super::path(directory, number))?;
    let len = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut at = HEADER_BYTES as u64;
    file.seek(SeekFrom::Start(at))?;
    let mut body = Vec::new();
    while end.is_none_or(|end| at < end) && read_frame(&mut file, len - at, &mut body)? {
        if !take(&body) {
            return Err(Wrong::Damaged(number, at));
        }
        at += (FRAME_HEAD_BYTES + body.len()) as u64;
    }
    match end {
        Some(end) if at != end => return Err(Wrong::Damaged(number, at)),
        Some(_) => {}
        None if at < len => {
            file.seek(SeekFrom::Start(at))?;
            let mut rest = Vec::new();
            file.take(LOOKED_THROUGH_BYTES_MAX).read_to_end(&mut rest)?;
            if is_witnessed(&rest, at) {
                return Err(Wrong::Damaged(number, at));
            }
            if rest.iter().any(|byte| *byte != 0) {
                tracing::info!(number, at, "a write to the log of histories had not ended");
            }
        }
        None => {}
    }
    Ok(at)
}

/// Reads the next frame's body, if it is whole.
fn read_frame(file: &mut impl Read, left: u64, body: &mut Vec<u8>) -> io::Result<bool> {
    if left < FRAME_HEAD_BYTES as u64 {
        return Ok(false);
    }
    let mut head = [0; FRAME_HEAD_BYTES];
    file.read_exact(&mut head)?;
    let len = half(&head, 0);
    if len == 0 || u64::from(len) > left - FRAME_HEAD_BYTES as u64 {
        return Ok(false);
    }
    body.resize(len as usize, 0);
    file.read_exact(body)?;
    Ok(super::frame_crc(&head, body) == half(&head, 4))
}

/// Whether some frame in what begins at `at` says that `at` was synced before it was written.
fn is_witnessed(rest: &[u8], at: u64) -> bool {
    rest.windows(FRAME_HEAD_BYTES).enumerate().skip(1).any(|(place, window)| {
        let mut head = [0; FRAME_HEAD_BYTES];
        head.copy_from_slice(window);
        let (synced, here) = (word(&head, 8), at + place as u64);
        if synced <= at || synced > here {
            return false;
        }
        let body = &rest[place + FRAME_HEAD_BYTES..];
        let body = body.get(..half(&head, 0) as usize);
        body.is_some_and(|body| super::frame_crc(&head, body) == half(&head, 4))
    })
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

//! The bytes of a backup: files one after the other, in blocks that each have a checksum.
//!
//! ```text
//! backup   magic 8 | format u32 | crc32c u32        then blocks, the last of which is the end mark
//! block    kind u8 | length u32 | crc32c u32 | payload                      all little endian
//! kinds    1 a file begins: its length u64, its path    2 bytes of it    3 the end mark: files u64
//! ```
//! A block's checksum covers its place in the order too, so that one that is lost, doubled or moved
//! is noticed like a flipped bit. Without its end mark a backup was cut off.

use std::io::{self, Read, Write};

/// The format that this program reads and writes.
pub const ARCHIVE_FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"FMBACKUP";
/// Bytes of a file in one block: what a damaged length can ask for at most.
const BLOCK_BYTES_MAX: usize = 1 << 20;
const BLOCK_HEADER_LEN: usize = 9;

const FILE: u8 = 1;
const BYTES: u8 = 2;
const END: u8 = 3;

/// Why a backup cannot be read. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Something else, or damaged at its very beginning.
    #[error("it is not a Folkmoot backup")]
    NotABackup,
    /// Written by a newer program.
    #[error("it has format {0}, this program reads format {ARCHIVE_FORMAT}; use a newer folkmoot")]
    OtherFormat(u32),
    /// Bytes are not as they were written.
    #[error("it is damaged at byte {at}: {reason}")]
    Damaged {
        /// Where the damaged block begins.
        at: u64,
        /// What is wrong there.
        reason: String,
    },
    /// It was not written or copied to its end.
    #[error("it was cut off: it ends at byte {at}, before its end mark")]
    CutOff {
        /// How long it is.
        at: u64,
    },
    /// The file system refused.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Writes a backup.
#[derive(Debug)]
pub(super) struct ArchiveWriter<W> {
    out: W,
    blocks: u64,
    files: u64,
}

impl<W: Write> ArchiveWriter<W> {
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&ARCHIVE_FORMAT.to_le_bytes());
        head.extend_from_slice(&crc32c::crc32c(&head).to_le_bytes());
        out.write_all(&head)?;
        Ok(Self { out, blocks: 0, files: 0 })
    }

    /// Adds a file of `len` bytes; one that turns out shorter is an error, of a longer one the rest
    /// is left out.
    pub(super) fn file(
        &mut self,
        path: &str,
        len: u64,
        from: impl Read,
        mut on_bytes: impl FnMut(u64),
    ) -> io::Result<()> {
        let begin = [&len.to_le_bytes(), path.as_bytes()].concat();
        self.block(FILE, &begin)?;
        self.files += 1;
        let mut from = from.take(len);
        let mut left = len;
        let mut buffer = Vec::with_capacity(BLOCK_BYTES_MAX);
        while left > 0 {
            buffer.clear();
            (&mut from).take(BLOCK_BYTES_MAX as u64).read_to_end(&mut buffer)?;
            if buffer.is_empty() {
                let text = format!("{path} ends {left} bytes early");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            self.block(BYTES, &buffer)?;
            left -= buffer.len() as u64;
            on_bytes(buffer.len() as u64);
        }
        Ok(())
    }

    /// Writes the end mark.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let files = self.files.to_le_bytes();
        self.block(END, &files)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn block(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        self.out.write_all(&[kind])?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&checksum(self.blocks, kind, payload).to_le_bytes())?;
        self.out.write_all(payload)?;
        self.blocks += 1;
        Ok(())
    }
}

/// What a backup holds, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A file begins.
    File { path: &'a str, len: u64 },
    /// The next bytes of the file that began last.
    Bytes(&'a [u8]),
}

/// Reads a backup from its beginning to its end mark, and hands each piece to `visit` once its
/// checksum is known to be right.
pub(super) fn read<E: From<ArchiveError>>(
    from: impl Read,
    mut visit: impl FnMut(Piece<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut blocks = Blocks::begin(from)?;
    let (mut files, mut left) = (0_u64, 0_u64);
    loop {
        let (at, kind, payload) = blocks.next()?;
        match kind {
            FILE if left == 0 => {
                let (path, len) = file_of(&payload).ok_or_else(|| strange(at))?;
                (files, left) = (files + 1, len);
                visit(Piece::File { path, len })?;
            }
            BYTES if !payload.is_empty() && payload.len() as u64 <= left => {
                left -= payload.len() as u64;
                visit(Piece::Bytes(&payload))?;
            }
            END if left == 0 && payload == files.to_le_bytes() => {
                blocks.ends(at)?;
                return Ok(());
            }
            _ => return Err(strange(at).into()),
        }
    }
}

struct Blocks<R> {
    from: R,
    at: u64,
    number: u64,
}

impl<R: Read> Blocks<R> {
    fn begin(from: R) -> Result<Self, ArchiveError> {
        let mut blocks = Self { from, at: 0, number: 0 };
        let head = blocks.take(16)?;
        let (text, crc) = head.split_at_checked(12).ok_or(ArchiveError::NotABackup)?;
        if text[..8] != MAGIC || crc != crc32c::crc32c(text).to_le_bytes() {
            return Err(ArchiveError::NotABackup);
        }
        match u32_of(&text[8..]) {
            ARCHIVE_FORMAT => Ok(blocks),
            other => Err(ArchiveError::OtherFormat(other)),
        }
    }

    /// The next block: where it begins, its kind, its payload.
    fn next(&mut self) -> Result<(u64, u8, Vec<u8>), ArchiveError> {
        let at = self.at;
        let head = self.take(BLOCK_HEADER_LEN)?;
        if head.len() < BLOCK_HEADER_LEN {
            return Err(ArchiveError::CutOff { at: self.at });
        }
        let (kind, length, crc) = (head[0], u32_of(&head[1..]) as usize, u32_of(&head[5..]));
        if length > BLOCK_BYTES_MAX {
            return Err(wrong_checksum(at));
        }
        let payload = self.take(length)?;
        if payload.len() < length {
            return Err(ArchiveError::CutOff { at: self.at });
        }
        if crc != checksum(self.number, kind, &payload) {
            return Err(wrong_checksum(at));
        }
        self.number += 1;
        Ok((at, kind, payload))
    }

    /// Nothing follows the end mark.
    fn ends(&mut self, at: u64) -> Result<(), ArchiveError> {
        if self.take(1)?.is_empty() {
            return Ok(());
        }
        Err(ArchiveError::Damaged { at, reason: "something follows its end mark".to_owned() })
    }

    /// Up to `len` bytes; fewer at the end.
    fn take(&mut self, len: usize) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::with_capacity(len);
        (&mut self.from).take(len as u64).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes)
    }
}

fn file_of(payload: &[u8]) -> Option<(&str, u64)> {
    let (len, path) = payload.split_at_checked(8)?;
    Some((std::str::from_utf8(path).ok()?, u64::from_le_bytes(len.try_into().ok()?)))
}

fn checksum(number: u64, kind: u8, payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &[kind]);
    crc32c::crc32c_append(crc, payload)
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("the header has four bytes here"))
}

fn wrong_checksum(at: u64) -> ArchiveError {
    ArchiveError::Damaged { at, reason: "the checksum is another".to_owned() }
}

/// A block that is whole, in a place where it means nothing.
fn strange(at: u64) -> ArchiveError {
    ArchiveError::Damaged { at, reason: "a part is missing or out of place".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut writer = ArchiveWriter::begin(Vec::new()).unwrap();
        writer.file("log/00000001.wal", 5, &b"hello"[..], |_| {}).unwrap();
        writer.file("empty", 0, &b""[..], |_| {}).unwrap();
        let large = vec![7; BLOCK_BYTES_MAX + 3];
        writer.file("large", large.len() as u64, &large[..], |_| {}).unwrap();
        writer.finish().unwrap()
    }

    fn files(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, ArchiveError> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        read(bytes, |piece| {
            match piece {
                Piece::File { path, .. } => files.push((path.to_owned(), Vec::new())),
                Piece::Bytes(bytes) => files.last_mut().unwrap().1.extend_from_slice(bytes),
            }
            Ok::<(), ArchiveError>(())
        })?;
        Ok(files)
    }

    #[test]
    fn files_come_back_as_they_were() {
        let found = files(&archive()).unwrap();
        let expected = [
            ("log/00000001.wal".to_owned(), b"hello".to_vec()),
            ("empty".to_owned(), Vec::new()),
            ("large".to_owned(), vec![7; BLOCK_BYTES_MAX + 3]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_flipped_bit_is_found_wherever_it_is() {
        let whole = archive();
        // Every byte of the small files and of all headers; a sample of the large file.
        let places = (0..200).chain((200..whole.len()).step_by(4_099)).chain([whole.len() - 1]);
        for place in places {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            assert!(files(&damaged).is_err(), "byte {place}");
        }
    }

    #[test]
    fn a_backup_that_was_cut_off_is_found() {
        let whole = archive();
        for len in (0..200).chain([whole.len() - 1, whole.len() - 17, BLOCK_BYTES_MAX]) {
            let error = files(&whole[..len]).unwrap_err();
            let is_told = matches!(error, ArchiveError::CutOff { .. } | ArchiveError::NotABackup);
            assert!(is_told, "{len} bytes: {error}");
        }
    }

    #[test]
    fn a_block_that_is_lost_doubled_or_moved_is_found() {
        let mut writer = ArchiveWriter::begin(Vec::new()).unwrap();
        writer.file("one", 2, &b"ab"[..], |_| {}).unwrap();
        writer.file("two", 2, &b"cd"[..], |_| {}).unwrap();
        let whole = writer.finish().unwrap();
        let (head, rest) = whole.split_at(16);
        let file_len = 9 + 11 + 9 + 2;
        let (one, rest) = rest.split_at(file_len);
        let (two, end) = rest.split_at(file_len);
        assert!(files(&[head, one, two, end].concat()).is_ok());
        for parts in [vec![one, end], vec![one, two, two, end], vec![two, one, end]] {
            let bytes = [head, &parts.concat()].concat();
            assert!(files(&bytes).is_err());
        }
        assert!(files(&[&whole[..], b"more"].concat()).is_err());
    }

    #[test]
    fn a_file_that_ends_early_is_an_error_and_of_a_longer_one_the_rest_is_left_out() {
        let mut writer = ArchiveWriter::begin(Vec::new()).unwrap();
        assert!(writer.file("short", 9, &b"hello"[..], |_| {}).is_err());
        let mut writer = ArchiveWriter::begin(Vec::new()).unwrap();
        writer.file("long", 2, &b"hello"[..], |_| {}).unwrap();
        let found = files(&writer.finish().unwrap()).unwrap();
        assert_eq!(found, [("long".to_owned(), b"he".to_vec())]);
    }
}

//! Records as bytes: `length u32 | crc32c u32 | body`, little endian, after a file header with the
//! seed.
//!
//! Decoding meets arbitrary bytes (a torn write, a damaged disk) and never panics.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use super::Offset;
use crate::place::{ActSeq, Place, PlayerId, REGION_TILES, RegionId};
use crate::rules::{CARRY_MAX, Carry, Clue, Deed, Event, RegionImage};

const MAGIC: &[u8; 8] = b"HUNTLOG1";
/// Bytes before the first record: the magic and the seed.
pub const FILE_HEADER_LEN: u64 = 16;
/// Bytes before a record's body.
const FRAME_LEN: usize = 8;
/// A snapshot of a region whose every tile holds 16 clues stays below it; larger lengths are
/// damage.
const BODY_LEN_MAX: u32 = 512 * 1_024;
/// Bytes of a snapshot's body without clues, and of each clue on the ground.
const SNAPSHOT_LEN_MIN: usize = 1 + 2 + 2 + 8 + REGION_TILES / 8;
const GROUND_LEN: usize = 6;
const SNAPSHOT: u8 = 100;
const NO_CLUE: u32 = u32::MAX;
/// Enough for any event: most reads take one call.
const READ_AHEAD: usize = 96;

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Something happened; with a birth if it is a join.
    Event(Event, Option<Birth>),
    /// What lasts of a region, after all events before.
    Snapshot(RegionId, Box<RegionImage>),
}

/// What is known of a player besides its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Secret that lets its client come back.
    pub token: u64,
    /// Name on the leader board.
    pub name: Box<str>,
}

/// Writes the file header if the file is empty, else checks it.
pub(super) fn begin_file(file: &File, seed: u64) -> io::Result<()> {
    if file.metadata()?.len() == 0 {
        let mut header = MAGIC.to_vec();
        header.extend(seed.to_le_bytes());
        file.write_all_at(&header, 0)?;
        return file.sync_all();
    }
    let found = read_file_header(file)?;
    if found != seed {
        return Err(invalid(format!("the log is of the world with seed {found}, not {seed}")));
    }
    Ok(())
}

/// The seed of the world that a log belongs to.
///
/// # Errors
/// The file cannot be read or is no log.
pub fn read_file_header(file: &File) -> io::Result<u64> {
    let mut header = [0; FILE_HEADER_LEN as usize];
    file.read_exact_at(&mut header, 0)?;
    let (magic, seed) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(invalid("not an event log of treasure-hunt".to_owned()));
    }
    Ok(u64::from_le_bytes(seed.try_into().expect("eight bytes are left")))
}

/// Appends a record to `out`.
pub(super) fn encode(out: &mut Vec<u8>, write_body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; FRAME_LEN]);
    write_body(out);
    let body = &out[start + FRAME_LEN..];
    let length = u32::try_from(body.len()).expect("bodies are below BODY_LEN_MAX");
    let crc = crc32c::crc32c(body);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

/// Appends an event.
pub(crate) fn write_event(out: &mut Vec<u8>, event: &Event, birth: Option<&Birth>) {
    out.push(event.deed as u8);
    out.extend(event.player.0.to_le_bytes());
    out.extend(event.seq.0.to_le_bytes());
    for place in [event.from, event.to] {
        out.extend(place.x().to_le_bytes());
        out.extend(place.y().to_le_bytes());
    }
    write_clue(out, event.clue);
    out.extend(event.gain.to_le_bytes());
    out.extend(event.score.to_le_bytes());
    for clue in event.carry.slots() {
        write_clue(out, clue);
    }
    if let Some(birth) = birth {
        out.extend(birth.token.to_le_bytes());
        out.extend(birth.name.as_bytes());
    }
}

/// Whether a snapshot of it would be read again: a longer one would be taken for damage, and the
/// log for torn where it begins.
pub(super) fn fits(image: &RegionImage) -> bool {
    SNAPSHOT_LEN_MIN + image.ground.len() * GROUND_LEN <= BODY_LEN_MAX as usize
}

/// Appends what lasts of a region.
pub(crate) fn write_snapshot(out: &mut Vec<u8>, region: RegionId, image: &RegionImage) {
    out.push(SNAPSHOT);
    out.extend(region.number().to_le_bytes());
    out.extend(image.tide.to_le_bytes());
    out.extend(image.score.to_le_bytes());
    out.extend(image.dug.iter());
    for (number, clue) in &image.ground {
        out.extend(number.to_le_bytes());
        write_clue(out, Some(*clue));
    }
}

fn write_clue(out: &mut Vec<u8>, clue: Option<Clue>) {
    out.extend(clue.map_or(NO_CLUE, |clue| clue.0).to_le_bytes());
}

/// Reads the record at an offset.
pub(super) fn read_at(file: &File, offset: Offset) -> io::Result<Record> {
    let mut ahead = [0; READ_AHEAD];
    let read = file.read_at(&mut ahead, offset.0)?;
    if read < FRAME_LEN {
        return Err(invalid(format!("no record at {}", offset.0)));
    }
    let (length, crc) = frame(&ahead[..FRAME_LEN]);
    if length > BODY_LEN_MAX {
        return Err(invalid(format!("a record of {length} bytes at {}", offset.0)));
    }
    let length = length as usize;
    if FRAME_LEN + length <= read {
        return checked(&ahead[FRAME_LEN..FRAME_LEN + length], crc, offset);
    }
    let mut body = vec![0; length];
    file.read_exact_at(&mut body, offset.0 + FRAME_LEN as u64)?;
    checked(&body, crc, offset)
}

fn frame(bytes: &[u8]) -> (u32, u32) {
    let word = |at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a frame has two words"))
    };
    (word(0), word(4))
}

fn checked(body: &[u8], crc: u32, offset: Offset) -> io::Result<Record> {
    if crc32c::crc32c(body) != crc {
        return Err(invalid(format!("the record at {} is damaged", offset.0)));
    }
    decode(body).ok_or_else(|| invalid(format!("the record at {} makes no sense", offset.0)))
}

/// Reads all records from the start until the end or the first damage.
#[derive(Debug)]
pub struct Records {
    file: BufReader<File>,
    offset: u64,
}

impl Records {
    /// The records of a file, its header skipped.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(file: &File) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(1 << 20, file.try_clone()?);
        file.seek(SeekFrom::Start(FILE_HEADER_LEN))?;
        Ok(Self { file, offset: FILE_HEADER_LEN })
    }

    /// Where the next record begins, or the good part ends.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn read(&mut self) -> io::Result<Record> {
        let mut head = [0; FRAME_LEN];
        self.file.read_exact(&mut head)?;
        let (length, crc) = frame(&head);
        if length == 0 || length > BODY_LEN_MAX {
            return Err(invalid(format!("a record of {length} bytes at {}", self.offset)));
        }
        let mut body = vec![0; length as usize];
        self.file.read_exact(&mut body)?;
        let record = checked(&body, crc, Offset(self.offset))?;
        self.offset += (FRAME_LEN + body.len()) as u64;
        Ok(record)
    }
}

impl Iterator for Records {
    /// A record with the offset it begins at.
    type Item = (Offset, Record);

    fn next(&mut self) -> Option<Self::Item> {
        let offset = Offset(self.offset);
        self.read().ok().map(|record| (offset, record))
    }
}

/// Takes fields off the front of a body.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn place(&mut self) -> Option<Place> {
        Place::new(self.u16()?, self.u16()?)
    }

    fn clue(&mut self) -> Option<Option<Clue>> {
        self.u32().map(|number| (number != NO_CLUE).then_some(Clue(number)))
    }
}

fn decode(body: &[u8]) -> Option<Record> {
    let mut fields = Fields(body);
    let [kind] = fields.take()?;
    if kind == SNAPSHOT { decode_snapshot(&mut fields) } else { decode_event(kind, &mut fields) }
}

fn decode_event(kind: u8, fields: &mut Fields<'_>) -> Option<Record> {
    let event = decode_what(kind, fields)?;
    let birth = match event.deed {
        Deed::Join => {
            Some(Birth { token: fields.u64()?, name: std::str::from_utf8(fields.0).ok()?.into() })
        }
        _ if fields.0.is_empty() => None,
        _ => return None,
    };
    Some(Record::Event(event, birth))
}

fn decode_what(kind: u8, fields: &mut Fields<'_>) -> Option<Event> {
    Some(Event {
        deed: Deed::from_number(kind)?,
        player: PlayerId(fields.u32()?),
        seq: ActSeq(fields.u32()?),
        from: fields.place()?,
        to: fields.place()?,
        clue: fields.clue()?,
        gain: fields.u16()?,
        score: fields.u32()?,
        carry: {
            let mut slots = [None; CARRY_MAX];
            for slot in &mut slots {
                *slot = fields.clue()?;
            }
            Carry::from_slots(slots)
        },
    })
}

/// An event as `write_event` writes it without a birth, and nothing else.
pub(crate) fn read_event(body: &[u8]) -> Option<Event> {
    let mut fields = Fields(body);
    let [kind] = fields.take()?;
    let event = decode_what(kind, &mut fields)?;
    fields.0.is_empty().then_some(event)
}

/// What `write_snapshot` has written.
pub(crate) fn read_snapshot(body: &[u8]) -> Option<RegionImage> {
    match decode(body)? {
        Record::Snapshot(_, image) => Some(*image),
        Record::Event(..) => None,
    }
}

fn decode_snapshot(fields: &mut Fields<'_>) -> Option<Record> {
    let region = RegionId::new(fields.u16()?)?;
    let (tide, score) = (fields.u16()?, fields.u64()?);
    let dug = Box::new(fields.take::<{ REGION_TILES / 8 }>()?);
    let mut ground = Vec::new();
    while !fields.0.is_empty() {
        let number = fields.u16().filter(|number| usize::from(*number) < REGION_TILES)?;
        ground.push((number, fields.clue()??));
    }
    Some(Record::Snapshot(region, Box::new(RegionImage { tide, score, dug, ground })))
}

fn invalid(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(body: Vec<u8>) {
            decode(&body);
        }

        #[test]
        fn an_event_survives_the_way_to_bytes_and_back(
            number in 0_u8..7, player: u32, seq: u32, (x, y) in (0_u16..1024, 0_u16..1024),
            clue in proptest::option::of(0_u32..1 << 20), gain: u16, score: u32, name in "\\PC{0,16}",
        ) {
            let place = Place::new(x, y).unwrap();
            let clue = clue.map(Clue);
            let event = Event {
                deed: Deed::from_number(number).unwrap(), player: PlayerId(player), seq: ActSeq(seq),
                from: place, to: place, clue, gain, score, carry: Carry::from_slots([clue, clue, None]),
            };
            let birth = (event.deed == Deed::Join).then(|| Birth { token: 9, name: name.into() });
            let mut body = Vec::new();
            write_event(&mut body, &event, birth.as_ref());
            prop_assert_eq!(decode(&body), Some(Record::Event(event, birth)));
        }
    }
}

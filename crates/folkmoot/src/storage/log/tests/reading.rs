//! Bytes that are damaged, cut or invented.

use proptest::prelude::*;

use super::super::pieces::PIECE_LEN;
use super::super::segment::{
    self, End, PAYLOAD_LEN_MAX, RECORD_HEADER_LEN, SegmentHeader, encode_frame, scan,
};
use super::*;

/// A segment of several batches of two records.
fn segment_bytes(batches: u64) -> Vec<u8> {
    let mut bytes = SegmentHeader { number: 1, first_lsn: Lsn(1) }.encode().to_vec();
    for batch in 0..batches {
        let durable = Lsn(batch * 2);
        for number in [durable.0 + 1, durable.0 + 2] {
            encode_frame(&mut bytes, Lsn(number), durable, &record(number).encode());
        }
    }
    bytes
}

fn numbers(bytes: &[u8], until: Option<Lsn>) -> (Vec<u64>, Option<End>) {
    let mut found = Vec::new();
    let scan = scan(bytes, until, |frame| {
        assert_eq!(Record::decode(frame.payload), Ok(record(frame.lsn.0)));
        found.push(frame.lsn.0);
    });
    (found, scan.unwrap().map(|scan| scan.end))
}

#[test]
fn damage_to_an_acknowledged_record_is_an_error_and_to_the_last_batch_a_torn_tail() {
    let intact = segment_bytes(3);
    let record_len = (intact.len() - segment::SEGMENT_HEADER_LEN) / 6;
    for index in segment::SEGMENT_HEADER_LEN..intact.len() {
        let mut bytes = intact.clone();
        bytes[index] ^= 0x40;
        let damaged = (index - segment::SEGMENT_HEADER_LEN) / record_len;
        let (found, end) = numbers(&bytes, None);
        assert_eq!(found, (1..=damaged as u64).collect::<Vec<_>>());
        // Records 1 to 4 are vouched for by the batches after them; 5 and 6 were the last.
        if damaged < 4 {
            assert!(matches!(end, Some(End::Corrupt(_))), "byte {index}: {end:?}");
        } else {
            assert_eq!(end, Some(End::Torn), "byte {index}");
        }
    }
}

#[test]
fn zeros_after_the_last_record_are_no_damage() {
    let mut bytes = segment_bytes(2);
    bytes.resize(bytes.len() + 500, 0);
    assert_eq!(numbers(&bytes, None), (vec![1, 2, 3, 4], Some(End::Clean)));
}

#[test]
fn the_next_segment_supersedes_what_lies_beyond_its_beginning() {
    let mut bytes = segment_bytes(2);
    assert_eq!(numbers(&bytes, Some(Lsn(3))), (vec![1, 2], Some(End::Clean)));
    bytes.truncate(segment::SEGMENT_HEADER_LEN + 10);
    let (found, end) = numbers(&bytes, Some(Lsn(3)));
    assert_eq!(found, [0; 0]);
    assert!(matches!(end, Some(End::Corrupt(_))));
}

/// A segment whose records end at just that byte, and the last of them, each of which knows the ones
/// before it to be durable.
fn segment_to(end: usize) -> (Vec<u8>, u64) {
    let mut bytes = SegmentHeader { number: 1, first_lsn: Lsn(1) }.encode().to_vec();
    let mut last = 0;
    while bytes.len() < end {
        last += 1;
        // What is left after it has to be room for another one, or nothing.
        let room = end - bytes.len() - RECORD_HEADER_LEN;
        let len = if room <= PAYLOAD_LEN_MAX { room } else { (room / 2).min(PAYLOAD_LEN_MAX) };
        encode_frame(&mut bytes, Lsn(last), Lsn(last - 1), &vec![last as u8; len]);
    }
    assert_eq!(bytes.len(), end);
    (bytes, last)
}

/// How many records there are, each as it was written; where they end, and what follows.
fn walked(bytes: &[u8]) -> (u64, usize, End) {
    let mut count = 0;
    let scan = scan(bytes, None, |frame| {
        count += 1;
        assert_eq!(frame.lsn, Lsn(count));
        assert!(frame.payload.iter().all(|byte| *byte == count as u8), "record {count}");
    });
    let scan = scan.unwrap().unwrap();
    (count, scan.valid_len, scan.end)
}

#[test]
fn records_that_lie_across_pieces_are_read_as_they_were_written() {
    for before in [0, 1, 4, 8, RECORD_HEADER_LEN - 1, RECORD_HEADER_LEN, RECORD_HEADER_LEN + 1, 999]
    {
        let (mut bytes, mut last) = segment_to(PIECE_LEN - before);
        for len in [PAYLOAD_LEN_MAX, 1, 2_000, PAYLOAD_LEN_MAX, PAYLOAD_LEN_MAX] {
            last += 1;
            encode_frame(&mut bytes, Lsn(last), Lsn(last - 1), &vec![last as u8; len]);
        }
        let end = bytes.len();
        bytes.resize(end + 3 * PIECE_LEN, 0);
        assert_eq!(walked(&bytes), (last, end, End::Clean), "{before} bytes before the next piece");
    }
}

#[test]
fn a_torn_tail_is_known_wherever_pieces_end() {
    for before in [0, 1, RECORD_HEADER_LEN, 500] {
        let (intact, last) = segment_to(PIECE_LEN - before);
        let mut torn = intact.clone();
        encode_frame(&mut torn, Lsn(last + 1), Lsn(last), &[7; 3_000]);
        for len in [1, 4, RECORD_HEADER_LEN, RECORD_HEADER_LEN + 1, 600, 2_999] {
            let mut bytes = torn[..intact.len() + len].to_vec();
            let expected = (last, intact.len(), End::Torn);
            assert_eq!(walked(&bytes), expected, "{len} bytes are there, {before}");
            bytes.resize(bytes.len() + PIECE_LEN, 0);
            assert_eq!(walked(&bytes), expected, "{len} bytes and zeros are there, {before}");
        }
    }
}

#[test]
fn a_record_that_is_lost_is_missed_however_far_behind_it_the_witness_is() {
    for hole in [30, PIECE_LEN / 2 + 1, PIECE_LEN, 2 * PIECE_LEN + 5] {
        for (begun, filled) in [(0, 0), (5, 0), (5, 9)] {
            let (mut bytes, last) = segment_to(PIECE_LEN - 10);
            let end = bytes.len();
            bytes.extend(vec![9; begun]);
            bytes.resize(end + hole, filled);
            // It was written once the one that is missing was on the disk.
            encode_frame(&mut bytes, Lsn(last + 2), Lsn(last + 1), &[1; 40]);
            let (count, valid_len, found) = walked(&bytes);
            assert_eq!((count, valid_len), (last, end));
            assert!(matches!(found, End::Corrupt(_)), "{hole} {begun} {filled}: {found:?}");
        }
    }
}

#[test]
fn damage_names_the_segment_and_the_position() {
    let directory = TestDirectory::new("damage");
    let path = directory.0.join("00000001.wal");
    let mut bytes = segment_bytes(3);
    bytes[segment::SEGMENT_HEADER_LEN + 5] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = recover(&directory.0).unwrap_err();
    let OpenError::Corrupt { segment, position, .. } = error else { panic!("{error}") };
    assert_eq!((segment, position), (path.clone(), segment::SEGMENT_HEADER_LEN as u64));
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "a refused log is left as it was");
}

#[test]
fn a_torn_tail_is_cut_off_once() {
    let directory = TestDirectory::new("torn");
    let path = directory.0.join("00000001.wal");
    let bytes = segment_bytes(3);
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    assert_eq!(recover(&directory.0).unwrap(), [1, 2, 3, 4, 5]);
    let cut = std::fs::metadata(&path).unwrap().len();
    assert!(cut < bytes.len() as u64 - 3);
    assert_eq!(recover(&directory.0).unwrap(), [1, 2, 3, 4, 5]);
}

#[test]
fn records_that_are_in_no_segment_are_missed() {
    let directory = TestDirectory::new("missing");
    let header = SegmentHeader { number: 4, first_lsn: Lsn(9) };
    std::fs::write(directory.0.join("00000004.wal"), header.encode()).unwrap();
    let error = recover(&directory.0).unwrap_err();
    assert!(matches!(error, OpenError::MissingRecords { applied: Lsn(0), found: Lsn(9) }));
}

/// The same property that the fuzz target checks.
#[test]
fn seeds_of_the_fuzz_target_are_read_byte_for_byte() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/log_reader");
    let mut count = 0;
    for entry in std::fs::read_dir(seeds).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let mut records = Vec::new();
        let found = scan(&*bytes, None, |frame| {
            encode_frame(&mut records, frame.lsn, frame.durable, frame.payload);
        });
        if let Some(found) = found.unwrap() {
            let expected = [&found.header.encode()[..], &records].concat();
            assert_eq!(bytes[..found.valid_len], expected);
        }
        count += 1;
    }
    assert!(count >= 7, "only {count} seeds found");
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        scan(&*bytes, None, |_| {}).unwrap();
        let mut behind_header = segment_bytes(0);
        behind_header.extend_from_slice(&bytes);
        prop_assert_eq!(numbers(&behind_header, None).0, Vec::<u64>::new());
    }

    #[test]
    fn mutated_bytes_yield_a_prefix_of_what_was_written(
        batches in 1_u64..6,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        moved in any::<prop::sample::Index>(),
    ) {
        let mut bytes = segment_bytes(batches);
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        // Old bytes in a new place must not pass for records either.
        let from = moved.index(bytes.len());
        let copied = bytes[from..].to_vec();
        bytes.truncate(cut.index(bytes.len()));
        bytes.extend_from_slice(&copied);
        let (found, _) = numbers(&bytes, None);
        prop_assert_eq!(&found, &(1..=found.len() as u64).collect::<Vec<_>>());
    }
}

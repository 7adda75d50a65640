use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom};

use super::*;

/// The bodies of all frames, and the log as it goes on.
fn opened(directory: &Path) -> Result<(Log, Vec<Vec<u8>>), Wrong> {
    let mut bodies = Vec::new();
    let log = Log::open(directory, &mut |body| {
        bodies.push(body.to_vec());
        true
    })?;
    Ok((log, bodies))
}

/// A log of these frames, each synced by itself.
fn written(directory: &Path, bodies: &[&[u8]]) {
    let (mut log, _) = opened(directory).unwrap();
    for body in bodies {
        log.write(body).unwrap();
        log.sync().unwrap();
    }
}

/// Changes one byte of a segment, counted from its header's end.
fn damage(directory: &Path, number: u64, at: u64) {
    let mut file = OpenOptions::new().read(true).write(true).open(path(directory, number)).unwrap();
    file.seek(SeekFrom::Start(HEADER_BYTES as u64 + at)).unwrap();
    file.write_all(&[0xff]).unwrap();
}

#[test]
fn frames_come_back_in_their_order_across_segments() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, found) = opened(directory.path()).unwrap();
    assert!(found.is_empty());
    log.write(b"one").unwrap();
    log.write(b"two").unwrap();
    log.sync().unwrap();
    log.begin().unwrap();
    log.write(b"three").unwrap();
    log.sync().unwrap();
    let mut read = Vec::new();
    log.read(&mut |body| {
        read.push(body.to_vec());
        true
    })
    .unwrap();
    drop(log);
    let (_log, found) = opened(directory.path()).unwrap();
    assert_eq!(found, [&b"one"[..], b"two", b"three"]);
    assert_eq!(read, found);
}

#[test]
fn a_torn_tail_is_cut_off_and_the_log_goes_on_behind_it() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[b"one", b"two"]);
    let second = FRAME_HEAD_BYTES as u64 + 3;
    damage(directory.path(), 1, second + FRAME_HEAD_BYTES as u64);
    let (mut log, found) = opened(directory.path()).unwrap();
    assert_eq!(found, [b"one"]);
    log.write(b"three").unwrap();
    log.sync().unwrap();
    drop(log);
    let (_log, found) = opened(directory.path()).unwrap();
    assert_eq!(found, [&b"one"[..], b"three"]);
}

#[test]
fn parts_of_one_write_that_are_missing_are_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = opened(directory.path()).unwrap();
    log.write(b"one").unwrap();
    log.write(b"two").unwrap();
    drop(log);
    damage(directory.path(), 1, FRAME_HEAD_BYTES as u64);
    assert_eq!(opened(directory.path()).unwrap().1, Vec::<Vec<u8>>::new());
}

#[test]
fn what_was_synced_and_is_damaged_is_an_error_that_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[b"one", b"two"]);
    damage(directory.path(), 1, FRAME_HEAD_BYTES as u64);
    for _ in 0..2 {
        let wrong = opened(directory.path()).err().unwrap();
        assert!(matches!(wrong, Wrong::Damaged(1, 32)), "{wrong}");
    }
    // The last frame of a segment that another one follows.
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[b"one"]);
    drop(opened(directory.path()).unwrap());
    damage(directory.path(), 1, FRAME_HEAD_BYTES as u64);
    let wrong = opened(directory.path()).err().unwrap();
    assert!(matches!(wrong, Wrong::Damaged(1, 32)), "{wrong}");
}

#[test]
fn a_segment_that_is_missing_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for body in [b"one", b"two", b"six"] {
        written(directory.path(), &[body]);
    }
    std::fs::remove_file(path(directory.path(), 2)).unwrap();
    let wrong = opened(directory.path()).err().unwrap();
    assert!(matches!(wrong, Wrong::Missing(2)), "{wrong}");
}

#[test]
fn what_a_failed_write_has_left_does_not_count_once_another_segment_is_begun() {
    let directory = tempfile::tempdir().unwrap();
    let (mut log, _) = opened(directory.path()).unwrap();
    log.write(b"one").unwrap();
    log.sync().unwrap();
    log.write(b"refused").unwrap();
    log.begin().unwrap();
    log.write(b"two").unwrap();
    log.sync().unwrap();
    drop(log);
    let (_log, found) = opened(directory.path()).unwrap();
    assert_eq!(found, [b"one", b"two"]);
}

#[test]
fn a_segment_that_was_being_begun_when_the_process_ended_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[b"one"]);
    std::fs::write(path(directory.path(), 2), b"fm-re").unwrap();
    written(directory.path(), &[b"two"]);
    let (_log, found) = opened(directory.path()).unwrap();
    assert_eq!(found, [b"one", b"two"]);
}

#[test]
fn a_segment_that_was_being_begun_keeps_none_before_it_from_being_synced() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[b"one"]);
    written(directory.path(), &[b"two"]);
    for number in [3, 4] {
        std::fs::write(path(directory.path(), number), b"fm-re").unwrap();
    }
    let segments = read_segments(directory.path(), &mut |_| true).unwrap();
    let numbers: Vec<_> = last_begun(&segments).iter().map(|segment| segment.number).collect();
    assert_eq!(numbers, [2, 3, 4]);
    assert_eq!(last_begun(&[]), []);
}

#[test]
fn old_segments_go_and_the_rest_is_read() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[b"one"]);
    let (mut log, _) = opened(directory.path()).unwrap();
    let before = log.len();
    log.write(b"two").unwrap();
    log.sync().unwrap();
    log.remove_before(2).unwrap();
    assert!(log.len() < before + 20 && log.segments() == 1);
    drop(log);
    assert_eq!(opened(directory.path()).unwrap().1, [b"two"]);
}

#[test]
fn zeros_are_ahead_of_what_is_written_and_go_with_the_next_segment() {
    let directory = tempfile::tempdir().unwrap();
    let len = |number| std::fs::metadata(path(directory.path(), number)).unwrap().len();
    let (mut log, _) = opened(directory.path()).unwrap();
    log.write(b"one").unwrap();
    log.sync().unwrap();
    let grown = len(1);
    assert!(grown > AHEAD.len() as u64);
    log.write(b"two").unwrap();
    log.sync().unwrap();
    assert_eq!(len(1), grown, "the second sync has to write where the file is");
    let large = vec![7; 2 * AHEAD.len()];
    log.write(&large).unwrap();
    log.sync().unwrap();
    assert!(len(1) > 3 * AHEAD.len() as u64);
    log.begin().unwrap();
    assert_eq!(len(1), log.segments[0].synced);
    drop(log);
    let (_log, found) = opened(directory.path()).unwrap();
    assert_eq!(found, [&b"one"[..], b"two", &large]);
}

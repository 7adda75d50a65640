//! The index alone: it finds what the judge of texts finds, keeps its mark, and starts over when it
//! is not usable.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::highlight;
use super::super::query::parse;
use super::*;
use crate::storage::UnixMillis;

const HEAP_BYTES: usize = 16 << 20;
const HALL: RoomId = RoomId::from_u64(7);

/// A directory of its own that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("folkmoot-index-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self) -> Index {
        Index::open(&self.0, "epoch", Lsn(u64::MAX), HEAP_BYTES).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn change(seq: u64, text: Option<&str>, is_new: bool) -> ChangedMessage {
    ChangedMessage {
        room: HALL,
        seq: Seq::from_u64(seq),
        user: UserId::from_u64(1),
        at: UnixMillis::from_u64(1_000 + seq),
        text: text.map(str::to_owned),
        is_new,
    }
}

fn found(index: &Index, query: &str) -> Vec<u64> {
    let query = parse(query).unwrap();
    let bounds = Bounds {
        rooms: HashSet::from([HALL]),
        after: None,
        before: None,
        cursor: None,
        limit: 100,
    };
    let lookup = Lookup { wanted: query.wanted, authors: None, bounds };
    index.search(lookup).unwrap().iter().map(|place| place.seq.as_u64()).collect()
}

#[test]
fn changes_replace_and_deletions_remove() {
    let scratch = Scratch::new("changes");
    let index = scratch.open();
    index.add(&[change(1, Some("red boat"), true), change(2, Some("Boote, rot"), true)]).unwrap();
    assert_eq!(found(&index, "boat"), [0; 0]);
    index.commit(Lsn(2)).unwrap();
    assert_eq!(found(&index, "boat"), [1]);
    index.add(&[change(1, Some("blue boat"), false), change(2, None, false)]).unwrap();
    index.commit(Lsn(4)).unwrap();
    assert_eq!((found(&index, "red"), found(&index, "blue")), (vec![], vec![1]));
    assert_eq!(found(&index, "boot*"), [0; 0]);
}

#[test]
fn an_index_of_which_the_disk_has_spoilt_a_file_is_made_anew() {
    let scratch = Scratch::new("spoilt");
    let build = || {
        let index = scratch.open();
        let text = |seq: u64| format!("word{seq} of many");
        for seq in 1..=50 {
            index.add(&[change(seq, Some(&text(seq)), true)]).unwrap();
        }
        index.commit(Lsn(50)).unwrap();
    };
    for kind in ["fast", "term", "idx", "pos", "store", "json"] {
        let _ = std::fs::remove_dir_all(&scratch.0);
        build();
        let files = std::fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|it| it == kind)) {
            let mut bytes = std::fs::read(&file).unwrap();
            let whole = bytes.len();
            // Not the footer, which the library checks.
            for byte in bytes[..whole.saturating_sub(120)].iter_mut().skip(20).step_by(3) {
                *byte ^= 0x5a;
            }
            std::fs::write(&file, bytes).unwrap();
        }
        let index = scratch.open();
        if index.mark() > Lsn(0) {
            // A start does not read all of it. Who does sees that, whatever is written meanwhile.
            assert!(!index.is_checked(), "{kind}");
            let _ = index.add(&[change(51, Some("merged"), true)]);
            assert!(index.check().is_err(), "{kind}");
            index.clear().unwrap();
        }
        assert_eq!((index.mark(), index.is_checked()), (Lsn(0), true), "{kind}");
        assert_eq!(found(&index, "word7"), [0; 0], "{kind}");
        index.add(&[change(7, Some("word7"), true)]).unwrap();
        index.commit(Lsn(7)).unwrap();
        assert_eq!(found(&index, "word7"), [7], "{kind}");
        drop(index);
        let index = scratch.open();
        index.check().unwrap();
        assert_eq!((index.mark(), found(&index, "word7")), (Lsn(7), vec![7]), "{kind}");
    }
}

#[test]
fn an_index_is_merged_once_it_is_checked_and_stays_whole_while_it_is_written_to() {
    let scratch = Scratch::new("checked");
    let fill = |index: &Index, seqs: Range<u64>| {
        for seq in seqs {
            index.add(&[change(seq, Some("word"), true)]).unwrap();
            index.commit(Lsn(seq)).unwrap();
        }
    };
    let segments = |index: &Index| index.index.searchable_segment_ids().unwrap().len();
    fill(&scratch.open(), 1..3);
    let index = scratch.open();
    fill(&index, 3..16);
    assert!(segments(&index) > 12, "it was merged before it was checked");
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| (0..10).try_for_each(|_| index.check()));
        for seq in 1..16 {
            // Each leaves a segment of which nothing is left.
            index.add(&[change(seq, Some("another"), false)]).unwrap();
            index.commit(Lsn(16 + seq)).unwrap();
        }
        checks.join().unwrap().unwrap();
    });
    index.trust();
    fill(&index, 100..110);
    drop(index.writer.lock().take().map(IndexWriter::wait_merging_threads));
    assert!(segments(&index) < 12, "it is not merged");
    assert_eq!(found(&index, "another").len(), 15);
}

#[test]
fn an_index_goes_on_where_it_was_committed_and_forgets_the_rest() {
    let scratch = Scratch::new("goes-on");
    let index = scratch.open();
    index.add(&[change(1, Some("kept"), true)]).unwrap();
    index.commit(Lsn(1)).unwrap();
    index.add(&[change(2, Some("lost"), true)]).unwrap();
    drop(index);
    let index = scratch.open();
    assert_eq!(index.mark(), Lsn(1));
    assert_eq!((found(&index, "kept"), found(&index, "lost")), (vec![1], vec![]));
    index.add(&[change(2, Some("lost"), true)]).unwrap();
    assert_eq!(index.roll_back(), Lsn(1));
    index.add(&[change(2, Some("found"), true)]).unwrap();
    index.commit(Lsn(2)).unwrap();
    assert_eq!((found(&index, "lost"), found(&index, "found")), (vec![], vec![2]));
}

#[test]
fn an_index_that_is_damaged_foreign_or_ahead_is_made_anew() {
    let scratch = Scratch::new("anew");
    let fill = || {
        let index = scratch.open();
        index.add(&[change(1, Some("words"), true)]).unwrap();
        index.commit(Lsn(9)).unwrap();
    };
    let begins_again = |epoch: &str, applied: u64| {
        let index = Index::open(&scratch.0, epoch, Lsn(applied), HEAP_BYTES).unwrap();
        (index.mark(), found(&index, "words")) == (Lsn(0), vec![])
    };
    fill();
    assert!(!begins_again("epoch", 9));
    assert!(begins_again("epoch", 8), "a database older than the index");
    fill();
    assert!(begins_again("other", 9), "another data directory");
    fill();
    damage(&scratch.0.join("meta.json"));
    assert!(begins_again("epoch", 9), "a damaged index");
}

#[test]
fn messages_that_are_forgotten_are_found_no_more() {
    let scratch = Scratch::new("forgotten");
    let index = scratch.open();
    let changes: Vec<_> = (1..=5).map(|seq| change(seq, Some("words"), true)).collect();
    index.add(&changes).unwrap();
    index.commit(Lsn(5)).unwrap();
    index.forget_messages(HALL, 2..4).unwrap();
    index.forget_messages(RoomId::from_u64(8), 1..6).unwrap();
    index.commit(Lsn(5)).unwrap();
    assert_eq!(found(&index, "words"), [5, 4, 1]);
}

fn damage(file: &Path) {
    std::fs::write(file, "{").unwrap();
}

/// Texts that have something in common, of several scripts.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "tea",
        "Tee",
        "Café",
        "cafe",
        "rope",
        "東京",
        "京都",
        "東",
        "京",
        "カフェ",
        "한국",
        "국",
        "-",
        "can't",
    ]);
    let space = prop::sample::select(vec![" ", "", "、"]);
    prop::collection::vec((word, space), 1..8)
        .prop_map(|parts| parts.into_iter().map(|(word, space)| format!("{word}{space}")).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Whatever was written and is asked for, the index gives exactly the messages in which the
    /// judge of texts finds it too.
    #[test]
    fn the_index_finds_what_the_texts_have(
        texts in prop::collection::vec(text(), 1..20),
        queries in prop::collection::vec((text(), any::<bool>()), 1..10),
        case in any::<u64>(),
    ) {
        let scratch = Scratch::new(&format!("judge-{case}"));
        let index = scratch.open();
        let changes: Vec<_> =
            (1..).zip(&texts).map(|(seq, text)| change(seq, Some(text), true)).collect();
        index.add(&changes).unwrap();
        index.commit(Lsn(texts.len() as u64)).unwrap();
        for (text, is_phrase) in queries {
            let text = if is_phrase { format!("\"{text}\"") } else { text };
            let Ok(query) = parse(&text) else { continue };
            let has = |text: &str| highlight::excerpt(text, &query.wanted).is_some();
            let judged = (1..).zip(&texts).filter(|(_, text)| has(text));
            let mut judged: Vec<u64> = judged.map(|(seq, _)| seq).collect();
            judged.reverse();
            prop_assert_eq!(found(&index, &text), judged, "{}", text);
        }
    }
}

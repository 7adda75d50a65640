//! Promises of the log: what it answered for is there after a crash, and torn ends are cut.

use std::io::Write;

use super::*;
use crate::place::Place;
use crate::rules::{Carry, Clue};

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hunt-journal-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn place(x: u16) -> Place {
    Place::new(x, 10).unwrap()
}

fn event(deed: Deed, seq: u32, from: u16, to: u16) -> Event {
    Event {
        deed,
        player: PlayerId(1),
        seq: ActSeq(seq),
        from: place(from),
        to: place(to),
        clue: None,
        gain: 0,
        score: 0,
        carry: Carry::default(),
    }
}

fn birth() -> Option<Box<Birth>> {
    Some(Box::new(Birth { token: 5, name: "ann".into() }))
}

#[tokio::test]
async fn a_new_life_finds_what_was_appended_before_it_asked() {
    let directory = Directory::new("new-life");
    let (journal, left) = Journal::open(&directory.0, 1).unwrap();
    assert!(left.players.is_empty());
    journal.append(event(Deed::Join, 1, 63, 63), birth(), None).unwrap();
    journal.append(event(Deed::Move, 2, 63, 64), None, None).unwrap();
    let trail = journal.find_player(PlayerId(1)).await.unwrap().unwrap();
    let (last, _) = journal.reader().read_event(trail.last).unwrap();
    assert_eq!((last.seq, last.to), (ActSeq(2), place(64)));
    let (_, born) = journal.reader().read_event(trail.birth).unwrap();
    assert_eq!(born.map(Box::new), birth());
    assert_eq!(journal.find_region(place(63).region()).await.unwrap(), RegionTrail::default());
    assert_eq!(journal.find_region(place(64).region()).await.unwrap().residents, [trail.last]);
}

#[tokio::test]
async fn an_event_out_of_its_players_order_is_fenced_off() {
    let directory = Directory::new("fence");
    let (journal, _) = Journal::open(&directory.0, 1).unwrap();
    assert!(journal.append(event(Deed::Move, 1, 1, 2), None, None).is_err());
    journal.append(event(Deed::Join, 1, 1, 1), birth(), None).unwrap();
    assert!(journal.append(event(Deed::Join, 1, 1, 1), birth(), None).is_err());
    journal.append(event(Deed::Move, 2, 1, 2), None, None).unwrap();
    assert!(journal.append(event(Deed::Move, 2, 1, 2), None, None).is_err());
    assert!(journal.append(event(Deed::Move, 4, 2, 3), None, None).is_err());
    journal.append(event(Deed::Leave, 3, 2, 2), None, None).unwrap();
    assert!(journal.append(event(Deed::Move, 4, 2, 3), None, None).is_err());
    assert_eq!(journal.find_player(PlayerId(1)).await.unwrap(), None);
}

#[tokio::test]
async fn a_torn_record_is_cut_off_and_the_rest_is_read_again() {
    let directory = Directory::new("torn");
    let (journal, _) = Journal::open(&directory.0, 1).unwrap();
    journal.append(event(Deed::Join, 1, 1, 1), birth(), None).unwrap();
    let ticket = journal.append(event(Deed::Dig, 2, 1, 1), None, None).unwrap();
    let before = journal.find_region(place(1).region()).await.unwrap();
    assert!(journal.durable() >= ticket);
    let path = journal.path().to_owned();
    drop(journal);
    let good = std::fs::metadata(&path).unwrap().len();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(&[39, 0, 0, 0, 1, 2]).unwrap();
    let (journal, left) = Journal::open(&directory.0, 1).unwrap();
    assert_eq!((left.players.as_slice(), left.player_max), ([PlayerId(1)].as_slice(), 1));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), good);
    assert_eq!(journal.find_region(place(1).region()).await.unwrap(), before);
    journal.append(event(Deed::Move, 3, 1, 2), None, None).unwrap();
    assert_eq!(journal.usage().events, 2);
    journal.find_player(PlayerId(1)).await.unwrap();
    assert_eq!(journal.usage().events, 3);
}

#[tokio::test]
async fn a_snapshot_replaces_the_ground_events_before_it() {
    let directory = Directory::new("snapshot");
    let (journal, _) = Journal::open(&directory.0, 1).unwrap();
    let region = place(1).region();
    journal.append(event(Deed::Join, 1, 1, 1), birth(), None).unwrap();
    journal.append(event(Deed::Dig, 2, 1, 1), None, None).unwrap();
    let image = Box::new(RegionImage { score: 77, ..RegionImage::default() });
    journal.snapshot(region, image.clone());
    journal.append(event(Deed::Dig, 3, 1, 1), None, None).unwrap();
    let trail = journal.find_region(region).await.unwrap();
    assert_eq!(trail.since.len(), 1);
    let snapshot = journal.reader().read(trail.snapshot.unwrap()).unwrap();
    assert_eq!(snapshot, Record::Snapshot(region, image));
}

#[tokio::test]
async fn a_region_with_more_clues_than_a_snapshot_holds_tears_no_log() {
    /// As many as fit beside the 525 bytes of all else.
    const CLUES_MAX: usize = 87_293;
    let directory = Directory::new("clues");
    let (journal, _) = Journal::open(&directory.0, 1).unwrap();
    let region = place(1).region();
    journal.append(event(Deed::Join, 1, 1, 1), birth(), None).unwrap();
    for clues in [CLUES_MAX, CLUES_MAX + 1] {
        let ground = vec![(1, Clue(1)); clues];
        journal.snapshot(region, Box::new(RegionImage { ground, ..RegionImage::default() }));
    }
    journal.append(event(Deed::Move, 2, 1, 2), None, None).unwrap();
    drop(journal);
    let (journal, left) = Journal::open(&directory.0, 1).unwrap();
    assert_eq!((journal.usage().events, left.players.len()), (2, 1));
    let trail = journal.find_region(region).await.unwrap();
    match journal.reader().read(trail.snapshot.unwrap()).unwrap() {
        Record::Snapshot(_, image) => assert_eq!(image.ground.len(), CLUES_MAX),
        other => panic!("a snapshot is read as {other:?}"),
    }
}

#[test]
fn a_log_belongs_to_one_world_and_one_server() {
    let directory = Directory::new("owner");
    let (journal, _) = Journal::open(&directory.0, 1).unwrap();
    let second = Journal::open(&directory.0, 1).unwrap_err();
    assert!(second.to_string().contains("in use"), "{second}");
    drop(journal);
    let other = Journal::open(&directory.0, 2).unwrap_err();
    assert!(other.to_string().contains("seed 1, not 2"), "{other}");
}

//! What is read when, and what of that and of what turns leave meanwhile is taken.

use althing::remote::Letter;

use super::*;

fn id(key: &str) -> ActorId {
    ActorId::named("test", key)
}

fn left(name: &str, due: u64) -> Delivery {
    let letter = Letter { to: id("a"), message: "m".to_owned(), body: vec![] };
    let (owner, name) = (id("owner"), name.to_owned());
    Delivery { owner, name, due: Timestamp(due), cron: None, letter }
}

fn post(reading: &mut Reading, name: &str, due: u64) -> bool {
    reading.posted(id("owner"), Posting::Put(left(name, due))).is_some()
}

fn names(taken: &[Delivery]) -> Vec<&str> {
    taken.iter().map(|delivery| delivery.name.as_str()).collect()
}

fn page(reading: &mut Reading, found: Vec<Delivery>) -> Vec<Delivery> {
    reading.page_came(found, |_| false)
}

/// A reading that gets two deliveries a page, and has asked for its first one.
fn reading() -> Reading {
    let mut reading = Reading::new(2);
    let wanted = reading.next_page(Timestamp(0), 0).expect("nothing was read so far");
    assert_eq!(wanted, PageWanted { until: Timestamp(90_000), after: None, limit: 2 });
    reading
}

#[test]
fn what_is_left_before_the_edge_is_taken_at_once_and_what_is_behind_it_with_its_page() {
    let mut reading = reading();
    assert_eq!(names(&page(&mut reading, vec![left("a", 1), left("b", 20)])), ["a", "b"]);
    assert!(post(&mut reading, "soon", 19), "no page will bring it any more");
    assert!(!post(&mut reading, "later", 21));
    let wanted = reading.next_page(Timestamp(5), 0).expect("there is room");
    assert_eq!(wanted.after, Some(left("b", 20).mark()));
    assert!(post(&mut reading, "soon again", 18), "also while a page is on its way");
    assert_eq!(names(&page(&mut reading, vec![left("later", 21)])), ["later"]);
    assert!(post(&mut reading, "much later", 90_000));
    assert!(!post(&mut reading, "beyond", 90_001));
}

#[test]
fn what_is_left_for_the_part_that_is_being_read_is_taken_once_with_the_page() {
    let mut reading = reading();
    for (name, due) in [("b", 2), ("z", 500)] {
        assert!(!post(&mut reading, name, due));
    }
    // The page was read before `b` was replaced.
    let taken = page(&mut reading, vec![left("b", 1), left("c", 3)]);
    assert_eq!(names(&taken), ["c", "b"]);
    assert_eq!(taken[1].due, Timestamp(2));
    reading.next_page(Timestamp(5), 0).expect("there is room");
    assert_eq!(names(&page(&mut reading, vec![left("z", 500)])), ["z"]);
}

#[test]
fn what_was_cancelled_or_taken_while_a_page_was_read_is_not_taken_from_it() {
    let mut reading = reading();
    assert_eq!(reading.posted(id("owner"), Posting::Cancel("b".to_owned())), None);
    let found = vec![left("a", 1), left("b", 2)];
    assert_eq!(reading.page_came(found, |delivery| delivery.name == "a"), []);
}

#[test]
fn the_store_is_read_on_when_half_of_memory_is_free_and_looked_at_again_in_time() {
    let mut reading = reading();
    page(&mut reading, vec![left("a", 1), left("b", 2)]);
    assert_eq!(reading.read_on(2), None);
    assert_eq!(reading.next_page(Timestamp(80_000), 2), None, "memory is full");
    assert!(reading.next_page(Timestamp(80_000), 1).is_some());
    page(&mut reading, vec![]);
    // What is due after the first look's end was not read by it, however long it took.
    assert_eq!(reading.next_look(), Some(Timestamp(30_000)));
    let wanted = reading.next_page(Timestamp(80_000), 1).expect("it is time");
    assert_eq!((wanted.after, wanted.until), (None, Timestamp(170_000)));
    assert!(post(&mut reading, "known part", 90_000), "read before");
}

#[test]
fn after_something_was_missed_all_is_read_again_and_nothing_overtakes_it() {
    let mut reading = reading();
    page(&mut reading, vec![]);
    reading.missed();
    assert!(!post(&mut reading, "behind the missed one", 1));
    assert!(reading.next_page(Timestamp(5), 0).is_some(), "before its time");
    let both = vec![left("missed", 1), left("behind the missed one", 1)];
    assert_eq!(page(&mut reading, both).len(), 2);
    // And if it happens while a page is on its way, that page may hold what is old.
    reading.next_page(Timestamp(5), 0).expect("that page was full");
    reading.missed();
    assert_eq!(page(&mut reading, vec![left("old", 7)]), []);
    assert_eq!(reading.read_on(0), None);
    assert_eq!(reading.next_page(Timestamp(5), 0).expect("again").after, None);
}

#[test]
fn a_page_during_which_too_much_is_left_is_read_once_more() {
    let mut reading = reading();
    for n in 0..=MEANWHILE_MAX {
        reading.posted(id("owner"), Posting::Cancel(n.to_string()));
    }
    assert_eq!(page(&mut reading, vec![left("a", 1), left("b", 2)]), []);
    let wanted = reading.next_page(Timestamp(5), 0).expect("there is room");
    assert_eq!(wanted.after, None);
    assert_eq!(page(&mut reading, vec![left("a", 1), left("b", 2)]).len(), 2);
}

#[test]
fn pages_grow_while_there_is_more_and_begin_small_again() {
    let mut reading = Reading::new(100_000);
    let mut limits = Vec::new();
    let mut wanted = reading.next_page(Timestamp(0), 0);
    while let Some(PageWanted { limit, .. }) = wanted.take() {
        limits.push(limit);
        let is_last = limits.len() == 7;
        let found = if is_last { 1 } else { limit };
        page(&mut reading, vec![left("a", 1); found]);
        wanted = if is_last { None } else { reading.read_on(0) };
    }
    assert_eq!(limits, [1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000]);
    let wanted = reading.next_page(Timestamp(40_000), 0).expect("it is time");
    assert_eq!(wanted.limit, 1_000);
}

#[test]
fn after_the_store_has_failed_all_is_read_again_after_a_pause() {
    let mut reading = reading();
    assert!(!post(&mut reading, "a", 1));
    reading.page_failed(Timestamp(10));
    assert_eq!(reading.next_page(Timestamp(1_009), 0), None);
    assert!(reading.next_page(Timestamp(1_010), 0).is_some());
    assert_eq!(names(&page(&mut reading, vec![left("a", 1)])), ["a"]);
}

//! Two and three real processes on loopback: what one reaches on another, and what happens when
//! one is killed, stopped, cut off from the authority, or leaves.

mod support;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use althing_cluster::LEASE_DEFAULT;
use rustix::process::Signal;
use support::{
    LEASE, Process, assert_one_life_at_a_time, assert_ordered, assert_whole, scene, scene_of,
};

/// From the death of a node to an answer of its actor elsewhere, with the default lease.
const TAKE_OVER_MAX: Duration = Duration::from_secs(8);

#[test]
fn an_address_leads_to_the_one_actor_in_another_process() {
    let scene = scene();
    let (mut one, mut two) = (scene.node("one"), scene.node("two"));
    two.ask_until("who", "", "one:2");
    let account = scene.account_on(&mut two, 0);
    let answer = one.ask("add", &format!("{account} 5"));
    assert!(answer.starts_with("5 two "), "{answer}");
    let answer = two.ask("add", &format!("{account} 2"));
    assert!(answer.starts_with("7 two "), "it is the same actor: {answer}");
    // A delayed reply crosses when it is given.
    let later = one.begin("later", &account);
    one.ask_until("answer", &format!("{account} 9"), "Ok(1)");
    assert_eq!(one.hear(&later, ""), "Ok(9)");
    // Here, there and back here.
    let cycle = one.ask("cycle", &account);
    assert!(cycle.starts_with("a cycle of "), "{cycle}");
    let watch = one.begin("watch", &account);
    assert_eq!(one.hear(&watch, ""), "Ok(())");
    two.ask("add", &format!("{account} 0"));
    one.ask("stop", &account);
    assert_eq!(one.hear(&watch, "ended"), "ended Requested");
    assert_one_life_at_a_time(&scene.book(&account));
}

#[test]
fn a_killed_nodes_actors_live_on_others_and_nobody_waits_for_them() {
    let scene = scene();
    let (mut one, mut two) = (scene.node("one"), scene.node("two"));
    two.ask_until("who", "", "one:2");
    let account = scene.account_on(&mut two, 0);
    let load = one.begin("load", &format!("{account} loader 2000"));
    let watch = one.begin("watch", &account);
    assert_eq!(one.hear(&watch, ""), "Ok(())");
    let asked = one.begin("later", &account);
    // By then the ask has arrived, which was sent before these.
    for _ in 0..3 {
        one.ask("add", &format!("{account} 0"));
    }
    two.kill();
    let lost = one.hear(&asked, "");
    assert!(lost.starts_with("Err(NodeLost("), "{lost}");
    assert_eq!(one.hear(&watch, "ended"), "ended NodeLost");
    let answer = one.ask_until("add", &format!("{account} 1"), " one ");
    assert_eq!(one.hear(&load, ""), "told 2000");
    assert!(!answer.contains("fenced"));
    // The node comes back under its name, and gets its buckets again.
    let mut again = scene.node("two");
    again.ask_until("add", &format!("{account} 1"), " two ");
    let book = scene.book(&account);
    assert_one_life_at_a_time(&book);
    assert_ordered(&book, "loader");
}

#[test]
fn a_killed_nodes_actor_answers_elsewhere_within_eight_seconds() {
    let scene = scene_of(LEASE_DEFAULT);
    let (mut one, mut two) = (scene.node("one"), scene.node("two"));
    two.ask_until("who", "", "one:2");
    let account = scene.account_on(&mut two, 0);
    one.ask("add", &format!("{account} 1"));
    two.kill();
    let killed = Instant::now();
    let answer = one.ask_until("add", &format!("{account} 1"), " one ");
    let took = killed.elapsed();
    println!("the take-over took {} ms", took.as_millis());
    assert!(took <= TAKE_OVER_MAX, "{took:?}");
    assert!(answer.starts_with("2 "), "what was added before is there: {answer}");
    assert_one_life_at_a_time(&scene.book(&account));
}

#[test]
fn a_node_that_was_stopped_for_longer_than_its_lease_says_nothing_when_it_goes_on() {
    let scene = scene();
    let (mut one, mut two) = (scene.node("one"), scene.node("two"));
    two.ask_until("who", "", "one:2");
    let account = scene.account_on(&mut two, 0);
    let load = two.begin("load", &format!("{account} there 3000"));
    two.ask("add", &format!("{account} 0"));
    two.signal(Signal::STOP);
    let answer = one.ask_until("add", &format!("{account} 1"), " one ");
    let epoch: u64 = answer.split(' ').nth(2).and_then(|word| word.parse().ok()).expect("a number");
    two.signal(Signal::CONT);
    two.hear("-", "Evicted");
    for _ in 0..50 {
        let answer = one.ask("add", &format!("{account} 1"));
        assert!(answer.ends_with(&format!(" one {epoch}")), "{answer}");
    }
    let book = scene.book(&account);
    assert_one_life_at_a_time(&book);
    assert_ordered(&book, "there");
    drop(load);
}

#[test]
fn without_the_authority_nodes_freeze_and_with_it_they_go_on_as_they_were() {
    let mut scene = scene();
    let (mut one, mut two) = (scene.node("one"), scene.node("two"));
    two.ask_until("who", "", "one:2");
    let account = scene.account_on(&mut two, 0);
    let before = one.ask("add", &format!("{account} 1"));
    scene.stop_authority();
    one.hear("-", "Frozen");
    two.hear("-", "Frozen");
    let waits = one.begin("load", &format!("{account} frozen 50"));
    scene.restart_authority();
    one.hear("-", "Serving");
    two.hear("-", "Serving");
    assert_eq!(one.hear(&waits, ""), "told 50");
    let after = one.ask("add", &format!("{account} 1"));
    let epoch = |answer: &str| answer.split(' ').nth(2).map(str::to_owned);
    assert_eq!(epoch(&before), epoch(&after), "the same owner in the same epoch");
    let book = scene.book(&account);
    assert_whole(&book, "frozen", 50);
    assert_eq!(book.iter().filter(|line| line.is_open).count(), 1, "it was one life");
}

#[test]
fn nothing_is_lost_while_nodes_join_and_leave_under_load() {
    let scene = scene();
    let mut one = scene.node("one");
    let accounts: Vec<String> = (0..6).map(|n| format!("busy-{n}")).collect();
    let mut loads = Vec::new();
    for account in &accounts {
        loads.push(one.begin("load", &format!("{account} one 2500")));
    }
    let mut two = scene.node("two");
    let mut others = Vec::new();
    for account in &accounts {
        others.push(two.begin("load", &format!("{account} two 2000")));
    }
    let mut three = scene.node("three");
    three.ask_until("who", "", "one:1");
    let left = three.begin("leave", "");
    assert_eq!(three.hear(&left, ""), "left, 0 killed");
    three.ended();
    for load in loads {
        assert_eq!(one.hear(&load, ""), "told 2500");
    }
    for load in others {
        assert_eq!(two.hear(&load, ""), "told 2000");
    }
    let mut nodes = BTreeSet::new();
    for account in &accounts {
        // Behind everything that was told from here.
        one.ask("add", &format!("{account} 0"));
        two.ask("add", &format!("{account} 0"));
        let book = scene.book(account);
        assert_one_life_at_a_time(&book);
        assert_whole(&book, "one", 2_500);
        assert_whole(&book, "two", 2_000);
        nodes.extend(book.into_iter().map(|line| line.node));
    }
    assert!(nodes.len() >= 2, "some of them moved: {nodes:?}");
}

/// The number that an event says was before it, and its own.
fn numbers(event: &str) -> (u64, u64) {
    let mut words = event.split(' ').map(|word| word.parse().expect("a number"));
    (words.next().expect("two"), words.next().expect("two"))
}

/// Hears what an account publishes, up to a number. What is missing is told.
fn follow_up_to(follower: &mut Process, word: &str, last: u64) -> u64 {
    let (mut heard, mut missed) = (None, 0);
    while heard < Some(last) {
        let event = follower.hear(word, "");
        if event == "Ok(())" {
            continue;
        }
        let (previous, number) = numbers(event.split(" sum ").next().expect("it has a sum"));
        let expected = heard.map_or(number, |heard| heard + 1);
        assert!(number >= expected, "{event} after {heard:?}");
        assert!(number == expected || previous + 1 > expected, "{event} hides a gap: {heard:?}");
        missed += number - expected;
        heard = Some(number);
    }
    missed
}

#[test]
fn subscribers_hear_the_next_owner_of_a_topic_when_the_first_is_killed() {
    let scene = scene();
    let (mut one, mut two) = (scene.node("one"), scene.node("two"));
    two.ask_until("who", "", "one:2");
    let account = scene.account_on(&mut two, 0);
    let following = one.begin("follow", &account);
    assert_eq!(one.hear(&following, "Ok"), "Ok(())");
    let load = two.begin("load", &format!("{account} two 100000"));
    let before = follow_up_to(&mut one, &following, 200);
    assert_eq!(before, 0, "nothing is missing while all live");
    two.kill();
    one.ask_until("add", &format!("{account} 1"), " one ");
    one.ask("add", &format!("{account} 1"));
    let book = scene.book(&account);
    let count = book.iter().filter(|line| !line.is_open).count() as u64;
    follow_up_to(&mut one, &following, count);
    drop(load);
}

#[test]
fn subscribers_miss_nothing_while_the_owner_of_a_topic_moves() {
    let scene = scene();
    let (mut one, mut ear) = (scene.node("one"), scene.node("ear"));
    ear.ask_until("who", "", "one:2");
    let accounts: Vec<String> = (0..8).map(|skip| scene.account_on(&mut one, skip)).collect();
    let follow = |account: &String| ear.begin("follow", account);
    let following: Vec<String> = accounts.iter().map(follow).collect();
    for word in &following {
        assert_eq!(ear.hear(word, "Ok"), "Ok(())");
    }
    let mut load = |account: &String| one.begin("load", &format!("{account} one 1000"));
    let loads: Vec<String> = accounts.iter().map(&mut load).collect();
    // Some of them go there and come back.
    let mut two = scene.node("two");
    let until = Instant::now() + TAKE_OVER_MAX;
    let mut is_there = |account: &String| one.ask("add", &format!("{account} 0")).contains(" two ");
    while !accounts.iter().any(&mut is_there) {
        assert!(Instant::now() < until, "none of them moves");
    }
    let left = two.begin("leave", "");
    assert_eq!(two.hear(&left, ""), "left, 0 killed");
    for load in loads {
        assert_eq!(one.hear(&load, ""), "told 1000");
    }
    for (account, word) in accounts.iter().zip(&following) {
        one.ask("add", &format!("{account} 0"));
        let book = scene.book(account);
        let count = book.iter().filter(|line| !line.is_open).count() as u64;
        assert_eq!(follow_up_to(&mut ear, word, count), 0, "of {account}");
    }
}

/// Its name is taken until the lease of its former life is over; nobody else has its accounts
/// before that either.
#[test]
fn a_node_that_is_killed_and_started_again_at_once_comes_back_when_its_lease_is_over() {
    let scene = scene();
    let (mut one, mut two) = (scene.node("one"), scene.node("two"));
    two.ask_until("who", "", "one:2");
    let account = scene.account_on(&mut two, 0);
    let load = one.begin("load", &format!("{account} loader 1000"));
    one.ask("add", &format!("{account} 0"));
    two.kill();
    let killed = Instant::now();
    let mut again = scene.node("two");
    assert!(killed.elapsed() >= LEASE / 2, "the former life may still believe in its lease");
    again.ask_until("add", &format!("{account} 1"), " two ");
    assert_eq!(one.hear(&load, ""), "told 1000");
    let book = scene.book(&account);
    assert_one_life_at_a_time(&book);
    assert_ordered(&book, "loader");
    let epochs: BTreeSet<u64> = book.iter().map(|line| line.epoch).collect();
    assert!(epochs.len() >= 2, "its second life is another one: {epochs:?}");
}

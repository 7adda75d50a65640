//! Two and three real processes on loopback: what one reaches on another, and what happens when
//! one is killed, stopped, cut off from the authority, or leaves.

mod support;

use std::time::{Duration, Instant};

use althing_cluster::LEASE_DEFAULT;
use rustix::process::Signal;
use support::{assert_one_life_at_a_time, assert_ordered, assert_whole, scene, scene_of};

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
    let mut nodes = std::collections::BTreeSet::new();
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

//! A node that is told to stop at the wrong moment: beside another one, while the one that its rooms
//! go to dies, or without a database.

use crate::cluster::Cluster;
use crate::{history, in_one_room};

/// What somebody says while it happens.
fn texts() -> Vec<String> {
    (0..20).map(|number| format!("meanwhile {number}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_nodes_that_stop_at_once_refuse_nothing_and_lose_nothing() {
    let mut cluster = Cluster::start("two", 3).await;
    let (room, mut people) = in_one_room(&cluster).await;
    people[0].say(room, "before").await;
    let home = cluster.home_of_the_room().await;
    let (other, stays) = ((home + 1) % 3, (home + 2) % 3);
    cluster.signal(home, "TERM").await;
    cluster.signal(other, "TERM").await;
    people[stays].say_at_once(room, &texts()).await;
    cluster.stopped(home).await;
    cluster.stopped(other).await;
    people[stays].say(room, "after").await;
    let all = [vec!["before".to_owned()], texts(), vec!["after".to_owned()]].concat();
    assert_eq!(people[stays].hear(all.len()).await, all);
    assert_eq!(history(&mut people[stays], room).await, all);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_when_a_node_dies_while_another_hands_its_rooms_over() {
    let mut cluster = Cluster::start("amid", 3).await;
    let (room, mut people) = in_one_room(&cluster).await;
    people[0].say(room, "before").await;
    let home = cluster.home_of_the_room().await;
    let (dies, stays) = ((home + 1) % 3, (home + 2) % 3);
    cluster.signal(home, "TERM").await;
    let texts = texts();
    let said = people[stays].say_at_once(room, &texts);
    let (_, ()) = tokio::join!(said, cluster.kill(dies));
    cluster.stopped(home).await;
    let all = [vec!["before".to_owned()], texts].concat();
    assert_eq!(people[stays].hear(all.len()).await, all);
    assert_eq!(history(&mut people[stays], room).await, all);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_told_to_stop_without_a_database_stops_and_what_it_acknowledged_stays() {
    let mut cluster = Cluster::start("away", 2).await;
    let (room, mut people) = in_one_room(&cluster).await;
    people[0].say(room, "before").await;
    let home = cluster.home_of_the_room().await;
    let stays = 1 - home;
    cluster.kill_postgres();
    people[stays].begin_to_say(room, "without a database").await;
    cluster.signal(home, "TERM").await;
    cluster.stopped(home).await;
    cluster.start_postgres_again();
    let was_done = people[stays].is_acknowledged().await;
    people[stays].say(room, "after").await;
    let said = history(&mut people[stays], room).await;
    let is_there = said.iter().filter(|text| *text == "without a database").count();
    assert!(is_there == 1 || is_there == 0 && !was_done, "{said:?}");
    assert_eq!((&*said[0], &*said[said.len() - 1]), ("before", "after"));
    assert_eq!(said.len(), 2 + is_there, "{said:?}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_has_read_when_it_stops_is_answered_before_it_says_goodbye() {
    let mut cluster = Cluster::start("answers", 2).await;
    let (room, mut people) = in_one_room(&cluster).await;
    people[0].say(room, "before").await;
    let home = cluster.home_of_the_room().await;
    let stops = 1 - home;
    // It takes what it is sent, and answers nothing for a moment.
    cluster.signal(home, "STOP").await;
    let commands = cluster.commands(stops).await;
    people[stops].begin_to_say(room, "under way").await;
    cluster.reads_more_commands(stops, commands).await;
    cluster.signal(stops, "TERM").await;
    cluster.takes_no_connections(stops).await;
    cluster.signal(home, "CONT").await;
    assert!(people[stops].is_acknowledged().await, "it said goodbye before it answered");
    people[stops].is_hung_up().await;
    cluster.stopped(stops).await;
    assert_eq!(history(&mut people[home], room).await, ["before", "under way"]);
    cluster.end().await;
}

//! Nodes that are told to stop while many sockets are in use: `rolling-restart` of the bench in
//! small.

use folkmoot_protocol::rpc::RoomsList;
use serde_json::Value;

use crate::cluster::{Cluster, PATIENCE};
use crate::person::Person;

/// Longer than three restarts take.
const SECONDS: &str = "30";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_doubled_or_out_of_order_while_each_node_restarts() {
    let seed = ["--users", "90", "--room", "15x6"];
    let mut cluster = Cluster::start_seeded("rolling", &["both"; 3], &seed).await;
    let flags = ["--sockets", "90", "--senders", "12", "--rate", "60", "--seconds", SECONDS];
    let load = cluster.load(&[&flags[..], &["--resume", "--json"]].concat());
    // Nobody speaks before all are in.
    while cluster.messages().await == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for node in 0..3 {
        cluster.restart(node).await;
    }
    let ended = tokio::time::timeout(PATIENCE, load.wait_with_output()).await.expect("in time");
    let ended = ended.expect("it is our child");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said} {}", String::from_utf8_lossy(&ended.stderr));
    let report: Value = serde_json::from_str(&said).expect("it says JSON");
    assert_eq!(report["said"]["refused"], 0, "{said}");
    assert!(report["said"]["delivered"].as_u64() > Some(5_000), "{said}");
    assert!(report["resumed"]["connections"].as_u64() >= Some(60), "{said}");
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_tells_its_clients_one_after_the_other_and_serves_those_that_stay() {
    let seed = ["--users", "600", "--room", "600x1"];
    let mut cluster = Cluster::start_seeded("waves", &["both"; 2], &seed).await;
    let mut people = Vec::new();
    for token in cluster.tokens() {
        people.push(Person::connect(cluster.port(0), &token).await);
    }
    // The second of them is told among the first, and this one among the last.
    let mut late = people.swap_remove(127);
    let room = late.prepare(&RoomsList::default()).await.rooms[0].id;
    late.subscribe(room).await;
    cluster.signal(0, "TERM").await;
    people[1].is_hung_up().await;
    late.say(room, "still here").await;
    assert_eq!(late.hear(1).await, ["still here"]);
    for person in &mut people {
        person.is_hung_up().await;
    }
    late.is_hung_up().await;
    cluster.stopped(0).await;
    cluster.end().await;
}

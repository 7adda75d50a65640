//! Several nodes of one server, as real processes with a real PostgreSQL: people on different nodes
//! talk in one room, and go on when the node that has it is killed, stopped or paused.

#[path = "../kill/account.rs"]
mod account;
mod cluster;
#[path = "../kill/connection.rs"]
mod connection;
mod person;

use folkmoot_protocol::RoomId;
use folkmoot_protocol::rpc::{HistoryGet, InviteAccept, InviteCreate, RoomCreate};

use account::Account;
use cluster::Cluster;
use person::Person;

/// A person on each node, all in one room and listening.
async fn in_one_room(cluster: &Cluster) -> (RoomId, Vec<Person>) {
    let mut people = Vec::new();
    for (index, node) in cluster.nodes.iter().enumerate() {
        let account = Account::sign_up(node.port, &format!("person{index}")).await;
        people.push(Person::connect(node.port, &account.token).await);
    }
    let room = people[0].call(&RoomCreate { name: "all".to_owned(), topic: None }).await.id;
    let invite = InviteCreate { room, expires_in_s: None, uses_max: None };
    let code = people[0].call(&invite).await.code;
    for person in &mut people[1..] {
        person.call(&InviteAccept { code: code.clone() }).await;
    }
    for person in &mut people {
        person.subscribe(room).await;
    }
    (room, people)
}

async fn history(person: &mut Person, room: RoomId) -> Vec<String> {
    let page = HistoryGet { room, before: None, after: None, around: None, limit: Some(100) };
    let page = person.call(&page).await;
    page.messages.into_iter().map(|message| message.body).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn people_on_two_nodes_talk_in_one_room_and_its_node_may_be_killed() {
    let mut cluster = Cluster::start("kill", 3).await;
    let (room, mut people) = in_one_room(&cluster).await;
    let mut said = Vec::new();
    for number in 0..10 {
        let text = format!("before {number}");
        people[number % 3].say(room, &text).await;
        said.push(text);
    }
    for person in &mut people {
        assert_eq!(person.hear(10).await, said);
        assert_eq!(history(person, room).await, said);
    }

    let home = cluster.home_of_the_room().await;
    cluster.kill(home).await;
    let lost = people.remove(home);
    for number in 0..10 {
        let text = format!("after {number}");
        people[number % 2].say(room, &text).await;
        said.push(text);
    }
    // Who stayed where they were hear all of it, and so does who comes from the node that is gone.
    let other = if home == 0 { 1 } else { 0 };
    people.push(lost.move_to(cluster.port(other), room).await);
    for person in &mut people {
        assert_eq!(person.hear(10).await, said[10..]);
        assert_eq!(history(person, room).await, said);
    }

    // The node comes back, takes its part again, and is heard.
    cluster.start_again(home).await;
    let returned = people.pop().expect("three of them");
    people.push(returned.move_to(cluster.port(home), room).await);
    for (number, person) in people.iter_mut().enumerate() {
        person.say(room, &format!("again {number}")).await;
    }
    for person in &mut people {
        assert_eq!(person.hear(3).await, ["again 0", "again 1", "again 2"]);
    }
    cluster.end().await;
}

//! Several nodes of one server, as real processes with a real PostgreSQL: people on different nodes
//! talk in one room, and go on when the node that has it is killed, stopped or paused.

#[path = "../kill/account.rs"]
mod account;
mod cluster;
#[path = "../kill/connection.rs"]
mod connection;
mod moments;
mod opening;
mod person;
mod rolling;
mod stopping;
mod untold;

use folkmoot_protocol::RoomId;
use folkmoot_protocol::chat::{Attachment, UploadProgress};
use folkmoot_protocol::rpc::{
    HistoryGet, InviteAccept, InviteCreate, MessageSend, RoomCreate, Search,
};

use account::Account;
use cluster::{Cluster, handshake, request};
use person::Person;

/// A person on each node, all in one room and listening.
async fn in_one_room(cluster: &Cluster) -> (RoomId, Vec<Person>) {
    let mut people = Vec::new();
    for (index, node) in cluster.nodes.iter().enumerate() {
        let account = Account::sign_up(node.port, &format!("person{index}")).await;
        people.push(Person::connect(node.port, &account.token).await);
    }
    let room = people[0].prepare(&RoomCreate { name: "all".to_owned(), topic: None }).await.id;
    let invite = InviteCreate { room, expires_in_s: None, uses_max: None };
    let code = people[0].prepare(&invite).await.code;
    for person in &mut people[1..] {
        person.prepare(&InviteAccept { code: code.clone() }).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_its_way_to_a_room_whose_node_dies_is_taken_once_and_in_order() {
    let mut cluster = Cluster::start("way", 3).await;
    let (room, mut people) = in_one_room(&cluster).await;
    people[0].say(room, "before").await;
    let home = cluster.home_of_the_room().await;
    // It takes what it is sent, and answers nothing.
    cluster.signal(home, "STOP").await;
    let (sender, other) = ((home + 1) % 3, (home + 2) % 3);
    let texts: Vec<String> = (0..20).map(|number| format!("on its way {number}")).collect();
    let said = people[sender].say_at_once(room, &texts);
    let (_, ()) = tokio::join!(said, cluster.kill(home));
    let all = [vec!["before".to_owned()], texts].concat();
    for person in [sender, other] {
        assert_eq!(people[person].hear(all.len()).await, all);
        assert_eq!(history(&mut people[person], room).await, all);
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_node_gives_up_and_what_it_was_asked_meanwhile_is_done_once_or_not_at_all() {
    let mut cluster = Cluster::start("pause", 3).await;
    let (room, mut people) = in_one_room(&cluster).await;
    for (number, person) in people.iter_mut().enumerate() {
        person.say(room, &format!("before {number}")).await;
    }
    let home = cluster.home_of_the_room().await;
    cluster.signal(home, "STOP").await;
    // It lies in the socket, for when the node wakes up.
    let mut asleep = people.remove(home);
    asleep.begin_to_say(room, "asked of the paused node").await;
    for (number, person) in people.iter_mut().enumerate() {
        person.say(room, &format!("meanwhile {number}")).await;
    }
    cluster.signal(home, "CONT").await;
    let was_done = asleep.is_acknowledged().await;
    cluster.ended(home).await;
    for (number, person) in people.iter_mut().enumerate() {
        person.say(room, &format!("after {number}")).await;
    }
    let mut said = history(&mut people[0], room).await;
    assert_eq!(history(&mut people[1], room).await, said);
    let before = said.len();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), before, "something is there twice: {said:?}");
    let is_there = said.iter().any(|text| text == "asked of the paused node");
    assert!(is_there || !was_done, "it was acknowledged and is gone: {said:?}");
    assert_eq!(before - usize::from(is_there), 7, "{said:?}");
    for person in &mut people {
        let mut heard = person.hear(before).await;
        heard.sort();
        assert_eq!(heard, said);
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_hands_its_rooms_over_and_nobody_elsewhere_notices() {
    let mut cluster = Cluster::start("stop", 2).await;
    let (room, mut people) = in_one_room(&cluster).await;
    people[0].say(room, "one").await;
    people[1].say(room, "two").await;
    let home = cluster.home_of_the_room().await;
    let mut stays = people.remove(1 - home);
    cluster.stop(home).await;
    stays.say(room, "three").await;
    assert_eq!(stays.hear(3).await, ["one", "two", "three"]);
    cluster.start_again(home).await;
    let mut returned = people.remove(0).move_to(cluster.port(home), room).await;
    returned.say(room, "four").await;
    assert_eq!(returned.hear(4).await, ["one", "two", "three", "four"]);
    assert_eq!(stays.hear(1).await, ["four"]);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_have_the_connections_and_others_the_rooms_and_either_may_be_lost() {
    let mut cluster = Cluster::start_as("roles", &["gateway", "gateway", "state", "state"]).await;
    let mut people = Vec::new();
    for (gateway, name) in ["ada", "bea"].into_iter().enumerate() {
        let account = Account::sign_up(cluster.port(gateway), name).await;
        people.push(Person::connect(cluster.port(gateway), &account.token).await);
    }
    let room = people[0].prepare(&RoomCreate { name: "all".to_owned(), topic: None }).await.id;
    let invite = InviteCreate { room, expires_in_s: None, uses_max: None };
    let code = people[0].prepare(&invite).await.code;
    people[1].prepare(&InviteAccept { code }).await;
    for person in &mut people {
        person.subscribe(room).await;
    }
    for person in &mut people {
        person.say(room, "here").await;
    }
    let home = cluster.home_of_the_room().await;
    assert!(home >= 2, "the room lives on a gateway");
    for gateway in &cluster.nodes[..2] {
        let live = (gateway.live("folkmoot.room").await, gateway.live("folkmoot.user").await);
        assert_eq!(live, (0, 0), "{} has rooms or users", gateway.name);
    }
    // Clients are told to go elsewhere.
    let answer = handshake(cluster.port(2)).await;
    assert!(answer.starts_with("HTTP/1.1 501") && answer.contains("--role state"), "{answer}");

    // A gateway that is lost takes connections along and nothing else.
    cluster.kill(0).await;
    people[1].say(room, "meanwhile").await;
    let lost = people.remove(0);
    people.push(lost.move_to(cluster.port(1), room).await);
    // The room's node is lost, and both gateways' people go on over the same connections.
    cluster.kill(home).await;
    let [bea, ada] = &mut people[..] else { panic!("there are two") };
    // Who does not read meanwhile answers no ping.
    let (heard, ()) = tokio::join!(bea.hear(4), ada.say(room, "after"));
    assert_eq!(heard, ["here", "here", "meanwhile", "after"]);
    assert_eq!(ada.hear(4).await, heard);
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_ready_without_its_lease_and_is_again_with_it() {
    let mut cluster = Cluster::start("ready", 1).await;
    cluster.answers_readyz(0, "200").await;
    cluster.kill_postgres();
    cluster.answers_readyz(0, "503").await;
    cluster.start_postgres_again();
    cluster.answers_readyz(0, "200").await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_search_and_signing_out_count_on_every_node() {
    let cluster = Cluster::start("reach", 2).await;
    let (room, mut people) = in_one_room(&cluster).await;
    let path = format!("/api/v1/rooms/{room}/attachments?name=notes.txt");
    let (head, body) =
        request(cluster.port(0), "POST", &path, &people[0].token, "what we decided").await;
    assert!(head.starts_with("HTTP/1.1 201"), "{head}: {body}");
    let file: Attachment = serde_json::from_str(&body).expect("as documented");
    let message = MessageSend {
        room,
        key: "with a file".to_owned(),
        body: "the notes of our meeting about heliotrope".to_owned(),
        reply_to: None,
        attachments: vec![file.id],
    };
    people[0].call(&message).await;
    let path = format!("/api/v1/attachments/{}", file.id);
    let (head, body) = request(cluster.port(1), "GET", &path, &people[1].token, "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, "what we decided");
    for person in &mut people {
        let search =
            Search { query: "heliotrope".to_owned(), room: None, cursor: None, limit: None };
        let found = person.call(&search).await;
        assert_eq!(found.hits.len(), 1, "{found:?}");
    }

    // The device signs out at the node where it has no connection.
    let mut person = people.remove(0);
    let path = "/api/v1/sessions/current";
    let (head, _) = request(cluster.port(1), "DELETE", path, &person.token, "").await;
    assert!(head.starts_with("HTTP/1.1 204"), "{head}");
    person.is_hung_up().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_of_a_file_may_each_come_to_another_node() {
    let cluster = Cluster::start("pieces", 3).await;
    let (room, people) = in_one_room(&cluster).await;
    let text: String = (0..9_000).map(|number| format!("line {number}\n")).collect();
    for person in &people {
        let begin = format!("/api/v1/rooms/{room}/uploads?name=notes.txt&size={}", text.len());
        let (head, body) = request(cluster.port(0), "POST", &begin, &person.token, "").await;
        assert!(head.starts_with("HTTP/1.1 201"), "{head}: {body}");
        let begun: UploadProgress = serde_json::from_str(&body).expect("as documented");
        let path = format!("/api/v1/uploads/{}", begun.id);
        let mut last = begun;
        for (number, piece) in text.as_bytes().chunks(10_000).enumerate() {
            let piece = std::str::from_utf8(piece).expect("ASCII");
            let at = format!("{path}?offset={}", last.offset);
            let port = cluster.port(number % 3);
            let (head, body) = request(port, "PATCH", &at, &person.token, piece).await;
            assert!(head.starts_with("HTTP/1.1 200"), "piece {number}: {head}: {body}");
            last = serde_json::from_str(&body).expect("as documented");
            let port = cluster.port((number + 1) % 3);
            let (_, body) = request(port, "GET", &path, &person.token, "").await;
            assert_eq!(serde_json::from_str::<UploadProgress>(&body).expect("as documented"), last);
        }
        assert_eq!(last.attachment.expect("all of it is there").size, text.len() as u64);
        let file = format!("/api/v1/attachments/{}", last.id);
        let (_, body) = request(cluster.port(2), "GET", &file, &person.token, "").await;
        assert!(body == text, "{} bytes came back", body.len());
    }
    cluster.end().await;
}

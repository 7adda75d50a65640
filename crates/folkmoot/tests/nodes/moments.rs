//! People on different nodes who do the same at one moment, or what the other one forbids.

use std::time::Duration;

use folkmoot_protocol::chat::{MemberView, SignedIn};
use folkmoot_protocol::rpc::{
    DirectOpen, InviteAccept, InviteCreate, RoomBan, RoomCreate, RoomMembers,
};
use folkmoot_protocol::{RoomId, UserId};
use tokio::time::{sleep, timeout};

use crate::cluster::{Cluster, PATIENCE, request};
use crate::person::Person;

async fn sign_up(cluster: &Cluster, node: usize, name: &str) -> Option<SignedIn> {
    let body = format!(r#"{{"name":"{name}","password":"{name}'s password"}}"#);
    let (head, body) = request(cluster.port(node), "POST", "/api/v1/accounts", "", &body).await;
    head.starts_with("HTTP/1.1 201").then(|| serde_json::from_str(&body).expect("as documented"))
}

/// Somebody new who is connected to that node.
async fn newcomer(cluster: &Cluster, node: usize, name: &str) -> (UserId, Person) {
    let account = sign_up(cluster, node, name).await.expect("nobody is called so");
    (account.user.id, Person::connect(cluster.port(node), &account.token).await)
}

async fn is_let_in(person: &mut Person, code: &str) -> bool {
    let invite = InviteAccept { code: code.to_owned() };
    person.ask(&invite).await.expect("the connection lasts").is_ok()
}

async fn members(person: &mut Person, room: RoomId) -> Vec<MemberView> {
    let page = RoomMembers { room, after: None, prefix: None, limit: None };
    person.call(&page).await.members
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_want_one_thing_on_two_nodes_at_once_one_gets_it() {
    let cluster = Cluster::start("moments", 2).await;
    for number in 0..5 {
        let name = format!("wanted{number}");
        let both = tokio::join!(sign_up(&cluster, 0, &name), sign_up(&cluster, 1, &name));
        assert!(both.0.is_some() != both.1.is_some(), "both or nobody are called {name}");
    }
    let (ada, mut on_one) = newcomer(&cluster, 0, "ada").await;
    let (bea, mut on_two) = newcomer(&cluster, 1, "bea").await;
    let (from, to) = (DirectOpen { user: bea }, DirectOpen { user: ada });
    let both = tokio::join!(on_one.call(&from), on_two.call(&to));
    assert_eq!(both.0.id, both.1.id, "two conversations of one pair");

    for number in 0..5 {
        let create = RoomCreate { name: format!("room {number}"), topic: None };
        let room = on_one.call(&create).await.id;
        let invite = InviteCreate { room, expires_in_s: None, uses_max: Some(1) };
        let code = on_one.call(&invite).await.code;
        let (_, mut eve) = newcomer(&cluster, 0, &format!("eve{number}")).await;
        let (left, right) = tokio::join!(is_let_in(&mut eve, &code), is_let_in(&mut on_two, &code));
        assert!(left != right, "an invite for one has let in both or nobody");
        assert_eq!(members(&mut on_one, room).await.len(), 2);
    }
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_banned_on_one_node_is_out_on_all_and_who_was_on_a_lost_one_is_seen_no_more() {
    let mut cluster = Cluster::start("banned", 3).await;
    let (_, mut ada) = newcomer(&cluster, 0, "ada").await;
    let create = RoomCreate { name: "all".to_owned(), topic: None };
    let room = ada.call(&create).await.id;
    let invite = InviteCreate { room, expires_in_s: None, uses_max: None };
    let code = ada.call(&invite).await.code;
    ada.subscribe(room).await;
    let mut others = Vec::new();
    for (node, name) in [(1, "bea"), (2, "cleo"), (2, "eve")] {
        let (id, mut person) = newcomer(&cluster, node, name).await;
        assert!(is_let_in(&mut person, &code).await);
        person.subscribe(room).await;
        others.push((id, person));
    }
    let home = cluster.home_of_the_room().await;
    let (banned, mut eve) = others.pop().expect("three");
    let (_, mut cleo) = others.pop().expect("three");
    let (_, mut bea) = others.pop().expect("three");
    ada.say(room, "before").await;
    assert_eq!(eve.hear(1).await, ["before"]);
    ada.call(&RoomBan { room, user: banned, on: true }).await;
    // By whichever node: reading, coming back, and being let in again.
    for node in 0..3 {
        let mut again = Person::connect(cluster.port(node), &eve.token).await;
        assert!(!is_let_in(&mut again, &code).await, "by node {node}");
        let page = RoomMembers { room, after: None, prefix: None, limit: None };
        assert!(again.ask(&page).await.expect("the connection lasts").is_err());
    }
    bea.say(room, "after").await;
    assert_eq!(cleo.hear(2).await, ["before", "after"]);
    assert_eq!(eve.has_heard().await, [] as [String; 0], "on the same node");

    // Who was connected to a node that is lost is online no more; not to that of the room.
    let lost = (home + 1) % 3;
    let (_, mut away) = newcomer(&cluster, lost, "away").await;
    assert!(is_let_in(&mut away, &code).await);
    away.subscribe(room).await;
    let looks = if lost == 0 { &mut bea } else { &mut ada };
    let is_online = |members: &[MemberView]| {
        members.iter().any(|member| member.name == "away" && member.online)
    };
    assert!(is_online(&members(looks, room).await));
    cluster.kill(lost).await;
    let gone = async {
        while is_online(&members(looks, room).await) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE / 2, gone).await.expect("it is seen no more");
    cluster.end().await;
}

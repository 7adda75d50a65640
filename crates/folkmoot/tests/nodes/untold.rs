//! A node dies between what it has stored and the news of it to those whom that concerns, on whichever
//! node they live.

use std::time::Duration;

use folkmoot_protocol::RoomId;
use folkmoot_protocol::chat::SignedIn;
use folkmoot_protocol::rpc::{DirectOpen, MessageSend};
use tokio::time::{sleep, timeout};

use crate::account::Account;
use crate::cluster::{Cluster, PATIENCE, request};
use crate::person::Person;

/// People connected to the first node, until some of them live on each of two.
async fn living_on_both(cluster: &Cluster) -> Vec<Person> {
    let mut people = Vec::new();
    while cluster.nodes[0].live("folkmoot.user").await == 0
        || cluster.nodes[1].live("folkmoot.user").await == 0
    {
        assert!(people.len() < 60, "one node has nobody");
        let name = format!("person{}", people.len());
        let account = Account::sign_up(cluster.port(0), &name).await;
        people.push(Person::connect(cluster.port(0), &account.token).await);
    }
    people
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_signed_out_by_a_node_that_died_is_hung_up_wherever_they_live() {
    let mut cluster = Cluster::start("signed-out", 2).await;
    let mut people = living_on_both(&cluster).await;
    cluster.store("DELETE FROM folkmoot.devices").await;
    cluster.kill(1).await;
    for person in &mut people {
        person.is_hung_up().await;
    }
    cluster.end().await;
}

/// Whether somebody may write to the other one of a direct conversation.
async fn may_write(person: &mut Person, room: RoomId, key: String) -> bool {
    let body = "are you there?".to_owned();
    let message = MessageSend { room, key, body, reply_to: None, attachments: Vec::new() };
    loop {
        match person.ask(&message).await.expect("the connection lasts") {
            Ok(_) => return true,
            Err(error) if error.temporary => sleep(Duration::from_millis(50)).await,
            Err(_) => return false,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_by_a_node_that_died_counts_wherever_the_conversation_lives() {
    let mut cluster = Cluster::start("blocked", 2).await;
    let ada = Account::sign_up(cluster.port(0), "ada").await;
    let mut ada = Person::connect(cluster.port(0), &ada.token).await;
    let mut rooms = Vec::new();
    while cluster.nodes[0].live("folkmoot.room").await == 0 {
        assert!(rooms.len() < 60, "no conversation lives on the first node");
        let name = format!("person{}", rooms.len());
        let other = sign_up(&cluster, &name).await;
        let room = ada.prepare(&DirectOpen { user: other.user.id }).await.id;
        assert!(may_write(&mut ada, room, "before".to_owned()).await);
        rooms.push(room);
    }
    let room = *rooms.last().expect("there is one");
    cluster
        .store(
            "INSERT INTO folkmoot.blocks SELECT u.id, a.id, 0 FROM folkmoot.users u, folkmoot.users a \
             WHERE a.name = 'ada' AND u.name <> 'ada'",
        )
        .await;
    cluster.kill(1).await;
    let mut tries = 0;
    let is_kept_out = async {
        while may_write(&mut ada, room, format!("after {tries}")).await {
            tries += 1;
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE / 2, is_kept_out).await.expect("the block counts");
    cluster.end().await;
}

async fn sign_up(cluster: &Cluster, name: &str) -> SignedIn {
    let body = format!(r#"{{"name":"{name}","password":"{name}'s password"}}"#);
    let (head, body) = request(cluster.port(0), "POST", "/api/v1/accounts", "", &body).await;
    assert!(head.starts_with("HTTP/1.1 201"), "{head}: {body}");
    serde_json::from_str(&body).expect("as documented")
}

/// An administrator who heard no answer does it again.
#[tokio::test(flavor = "multi_thread")]
async fn who_was_disabled_and_not_told_is_hung_up_when_that_is_done_again() {
    let cluster = Cluster::start("disabled", 1).await;
    let admin = sign_up(&cluster, "admin").await;
    let eve = sign_up(&cluster, "eve").await;
    let mut person = Person::connect(cluster.port(0), &eve.token).await;
    cluster
        .store(
            "UPDATE folkmoot.users SET is_admin = TRUE WHERE name = 'admin'; \
             UPDATE folkmoot.users SET disabled_at = 1 WHERE name = 'eve'; \
             DELETE FROM folkmoot.devices d USING folkmoot.users u WHERE u.id = d.\"user\" AND u.name = 'eve'",
        )
        .await;
    let path = format!("/api/v1/admin/users/{}", eve.user.id);
    let (head, body) =
        request(cluster.port(0), "PATCH", &path, &admin.token, r#"{"disabled":true}"#).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}: {body}");
    person.is_hung_up().await;
    cluster.end().await;
}

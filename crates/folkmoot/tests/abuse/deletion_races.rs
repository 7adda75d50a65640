//! Accounts that are deleted while others, and they themselves, do everything with them: nothing of
//! their names is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{Account, Client, PATIENT, Server};

const GOING: usize = 8;
/// The beginning of the names that go.
const NAME: &str = "Zebrahead";

async fn server() -> Server {
    let zero = ["accounts", "profile_changes", "changes", "questions", "invites", "rooms"];
    let zero: String = zero.iter().map(|what| format!("{what}_per_minute = 0\n")).collect();
    Server::with(&format!("[limits]\nmessages_per_second = 0\n{zero}{PATIENT}")).await
}

async fn somebody(server: &Server, n: usize) -> (Account, Client) {
    let account = server.sign_up(&format!("goes{n}")).await;
    let mut client = server.connect(&account).await;
    client.call("profile.update", json!({"display_name": format!("{NAME} {n}")})).await;
    (account, client)
}

async fn delete(server: &Server, account: &Account) {
    let wish = json!({"password": "correct horse", "messages": "keep", "rooms": "hand_over"});
    let line = "POST /api/v1/me/deletion";
    let gone = server.http(line, Some(&account.token), &wish.to_string()).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    server.erased().await;
}

/// Repeats requests until it is told to end, whatever the answers; gives the client back.
fn insist(
    mut client: Client,
    requests: Vec<(&'static str, Value)>,
    is_over: &Arc<AtomicBool>,
) -> JoinHandle<Client> {
    let is_over = is_over.clone();
    tokio::spawn(async move {
        let mut n = 0;
        while !is_over.load(Ordering::Relaxed) {
            for (method, request) in &requests {
                let mut request = request.clone();
                if *method == "message.send" {
                    request["key"] = json!(format!("{n}"));
                }
                n += 1;
                let _ = client.rpc(method, request).await;
            }
        }
        client
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_name_stands_in_no_answer_to_an_old_message_that_is_given_meanwhile() {
    let mut server = server().await;
    let mut owner = server.join("owner").await;
    let room = owner.create_room("Tea").await;
    let mut accounts = Vec::new();
    for n in 0..GOING {
        let (account, mut client) = somebody(&server, n).await;
        owner.invite(&room, &mut client).await;
        client.say(&room, "1", "hello").await;
        accounts.push(account);
    }
    // Those are no longer in memory.
    for n in 0..600 {
        owner.say(&room, &format!("old{n}"), "hello").await;
    }
    let mut clients = Vec::new();
    for n in 0..6 {
        let mut client = server.join(&format!("guest{n}")).await;
        owner.invite(&room, &mut client).await;
        clients.push(client);
    }
    for (seq, account) in (1..).zip(&accounts) {
        let is_over = Arc::new(AtomicBool::new(false));
        let answers = clients.drain(..).enumerate().map(|(n, client)| {
            let body = format!("to {seq} by {n}");
            let answer = json!({"room": room, "body": body, "reply_to": seq});
            insist(client, vec![("message.send", answer)], &is_over)
        });
        let answers: Vec<_> = answers.collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        delete(&server, account).await;
        is_over.store(true, Ordering::Relaxed);
        for answer in answers {
            clients.push(answer.await.expect("it ends"));
        }
    }
    drop((owner, clients));
    server.restart().await;
    server.stop().await;
    assert!(!server.keeps(NAME));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_let_in_and_does_everything_while_they_are_deleted_is_gone_after_that() {
    let mut server = server().await;
    let account = server.sign_up("owner").await;
    let mut owner = server.connect(&account).await;
    let room = owner.create_room("Tea").await;
    for n in 0..GOING {
        let (going, mut client) = somebody(&server, n).await;
        owner.invite(&room, &mut client).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let add = json!({"room": room, "user": going.id});
        let direct = json!({"user": going.id});
        let lets_in = vec![
            ("room.add", add.clone()),
            ("direct.open", direct),
            ("message.send", json!({"room": room, "body": format!("@goes{n}")})),
            ("room.kick", add),
        ];
        let letting = insist(server.connect(&account).await, lets_in, &is_over);
        let name = json!({"display_name": format!("{NAME} {n} again")});
        let does = vec![
            ("room.create", json!({"name": "Own"})),
            ("message.send", json!({"room": room, "body": "hello"})),
            ("profile.update", name),
            ("status.set", json!({"emoji": "x", "text": NAME})),
            ("message.save", json!({"room": room, "seq": 1, "on": true})),
            ("read.set", json!({"room": room, "seq": 1})),
        ];
        let doing = insist(client, does, &is_over);
        tokio::time::sleep(Duration::from_millis(50)).await;
        delete(&server, &going).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        is_over.store(true, Ordering::Relaxed);
        letting.await.expect("it ends");
        // Its connection has ended.
        doing.abort();
        let members = owner.call("room.members", json!({"room": room})).await;
        assert_eq!(members["members"].as_array().map(Vec::len), Some(1), "{members}");
    }
    drop(owner);
    server.restart().await;
    server.stop().await;
    assert!(!server.keeps(NAME));
}

//! The first administrator: by the printed link, once, whatever comes at the same time.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Account, Server};

fn request(token: &str, name: &str) -> String {
    json!({"token": token, "name": name, "password": "correct horse"}).to_string()
}

async fn is_needed(server: &Server) -> Value {
    server.http("GET /api/v1/setup", None, "").await.json()["needed"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_link_makes_the_one_first_administrator() {
    let mut server = Server::start().await;
    assert_eq!(is_needed(&server).await, true);
    let token = server.setup_token().expect("nobody administers a new server");
    let anna = Account::of(&server.set_up("anna").await);
    let client = server.connect(&anna).await;
    assert_eq!(client.hello["data"]["administrator"], json!(true));
    assert_eq!(is_needed(&server).await, false);
    let second = server.http("POST /api/v1/setup", None, &request(&token, "bob")).await;
    assert_eq!(second.status, 403);
    assert!(second.json()["detail"].as_str().unwrap().contains("administrator already"));
    server.restart().await;
    assert_eq!((is_needed(&server).await, server.setup_token()), (json!(false), None));
    let client = server.connect(&anna).await;
    assert_eq!(client.hello["data"]["administrator"], json!(true));
    let late = server.http("POST /api/v1/setup", None, &request(&token, "bob")).await;
    assert_eq!(late.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_token_nobody_becomes_administrator() {
    let mut server = Server::start().await;
    let early = server.sign_up("early").await;
    let client = server.connect(&early).await;
    assert_eq!(client.hello["data"]["administrator"], json!(false));
    assert_eq!(is_needed(&server).await, true);
    let first = server.setup_token().expect("still needed");
    let guess = format!("fm_{}", "A".repeat(43));
    for token in ["", "fm_", guess.as_str()] {
        let refused = server.http("POST /api/v1/setup", None, &request(token, "eve")).await;
        assert_eq!(refused.status, 401, "{token}");
    }
    // A new start, a new token.
    server.restart().await;
    let stale = server.http("POST /api/v1/setup", None, &request(&first, "eve")).await;
    assert_eq!(stale.status, 401);
    let taken = server.set_up("early").await;
    assert_eq!((taken.status, &taken.json()["field"]), (400, &json!("name")));
    assert_eq!(server.set_up("anna").await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_set_up_at_once_one_succeeds() {
    let server = Server::start().await;
    let names: Vec<String> = (0..8).map(|number| format!("admin{number}")).collect();
    let answers = join_all(names.iter().map(|name| server.set_up(name))).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.status == 403).count();
    assert_eq!((made, refused), (1, 7), "{answers:?}");
    let winner = answers.iter().find(|answer| answer.status == 201).map(Account::of).unwrap();
    let users = server.http("GET /api/v1/admin/users", Some(&winner.token), "").await.json();
    assert_eq!(users["users"].as_array().unwrap().len(), 1, "those refused left no account");
}

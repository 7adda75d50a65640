//! `folkmoot seed`: what it makes is a server like any other.

use std::process::{Command, Output};

use serde_json::json;

use crate::support::{Account, Server};

fn seed(server: &Server, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(server.data()).arg("seed").args(arguments);
    command.output().expect("the binary was built")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeded_directory_serves_its_people_rooms_and_messages() {
    let mut server = Server::start().await;
    server.stop().await;
    let output = seed(&server, &["--users", "300", "--room", "250:1500", "--room", "2x3:7"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("300 users, 4 rooms, 256 memberships and 1521 messages"), "{said}");

    server.restart().await;
    let sign_in = json!({"name": "user000002", "password": "folkmoot-seed"}).to_string();
    let account = Account::of(&server.http("POST /api/v1/sessions", None, &sign_in).await);
    let mut user = server.connect(&account).await;
    let list = user.call("rooms.list", json!({})).await;
    let mut sizes: Vec<_> = list["rooms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|room| (room["members"].as_u64().unwrap(), room["last_seq"].as_u64().unwrap()))
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [(2, 7), (250, 1_500)], "rooms alike are spread over the people");
    let large = list["rooms"].as_array().unwrap().iter().find(|room| room["members"] == 250);
    let room = large.unwrap()["id"].as_str().unwrap().to_owned();

    assert_eq!(user.say(&room, "1", "hello @user000003").await, 1_501);
    let page = user.call("history.get", json!({"room": room, "limit": 2})).await;
    assert_eq!(page["messages"][1]["mentions"].as_array().unwrap().len(), 1, "{page}");
    let page = user.call("room.members", json!({"room": room, "limit": 200})).await;
    assert_eq!(page["members"][0]["name"], "user000001");
    assert_eq!(
        (&page["members"][0]["role"], &page["members"][1]["role"]),
        (&json!("owner"), &json!("member"))
    );
    let request = json!({"room": room, "after": page["next"], "limit": 200});
    let rest = user.call("room.members", request).await;
    assert_eq!((rest["members"].as_array().unwrap().len(), rest.get("next")), (50, None));
    let found = user.call("room.members", json!({"room": room, "prefix": "gar"})).await;
    let shown = found["members"][0]["display_name"].as_str().unwrap();
    assert!(shown.ends_with("García"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn seeding_twice_is_refused_and_so_is_seeding_under_a_running_server() {
    let mut server = Server::start().await;
    let refused = seed(&server, &["--users", "10", "--room", "5"]);
    assert!(!refused.status.success(), "a server uses the directory");
    server.stop().await;
    assert!(seed(&server, &["--users", "10", "--room", "5"]).status.success());
    let again = seed(&server, &["--users", "10", "--room", "5"]);
    assert!(!again.status.success());
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("seeded before"), "{said}");
}

//! Deleting an account: out at once, its name gone from everywhere, its messages as was chosen.

use serde_json::{Value, json};

use crate::support::{Account, Answer, Client, Server};

/// Words that stand nowhere else: a name to show, a message.
const NAME: &str = "Quinceunx";
const SECRET: &str = "xylophagous";

/// Eve, whose account goes, with Bob in a room of hers and in one of his, and alone with him; Anna
/// administers.
struct House {
    server: Server,
    anna_account: Account,
    bob_account: Account,
    eve_account: Account,
    bob: Client,
    eve: Client,
    /// Eve's, with Bob as a member.
    hers: String,
    /// Bob's.
    his: String,
    direct: String,
}

async fn house() -> House {
    let server = Server::start().await;
    let anna_account = Account::of(&server.set_up("anna").await);
    let bob_account = server.sign_up("bob").await;
    let body = json!({"name": "eve", "password": "correct horse", "display_name": NAME});
    let eve = server.http("POST /api/v1/accounts", None, &body.to_string()).await;
    let eve_account = Account::of(&eve);
    let mut bob = server.connect(&bob_account).await;
    let mut eve = server.connect(&eve_account).await;
    let hers = eve.create_room("Hers").await;
    eve.invite(&hers, &mut bob).await;
    let his = bob.create_room("His").await;
    bob.invite(&his, &mut eve).await;
    let direct = eve.call("direct.open", json!({"user": bob_account.id})).await;
    let direct = direct["id"].as_str().expect("an id").to_owned();
    for room in [&hers, &his, &direct] {
        eve.say(room, "1", &format!("@bob {SECRET}")).await;
        bob.event(&format!("user:{}", bob_account.id), "mention").await;
        let reply = json!({"room": room, "key": "2", "body": "what?", "reply_to": 1});
        bob.call("message.send", reply).await;
        let react = json!({"room": room, "seq": 2, "emoji": "x", "on": true});
        eve.call("message.react", react).await;
    }
    bob.subscribe(&his).await;
    House { server, anna_account, bob_account, eve_account, bob, eve, hers, his, direct }
}

async fn delete_me(server: &Server, account: &Account, body: Value) -> Answer {
    server.http("POST /api/v1/me/deletion", Some(&account.token), &body.to_string()).await
}

/// Everything that Bob can still get.
async fn everything(house: &mut House) -> String {
    let mut all = String::new();
    let own = format!("user:{}", house.bob_account.id);
    let mut channels = vec![own];
    for room in [&house.hers, &house.his, &house.direct] {
        channels.push(format!("room:{room}"));
        all += &house.bob.call("history.get", json!({"room": room})).await.to_string();
        all += &house.bob.call("room.members", json!({"room": room})).await.to_string();
        let reactions = json!({"room": room, "seq": 2});
        all += &house.bob.call("message.reactions", reactions).await.to_string();
    }
    for channel in channels {
        let history = json!({"channel": channel, "limit": 1000});
        all += &house.bob.command("history", history).await.expect("a member may ask").to_string();
    }
    all += &house.bob.call("rooms.list", json!({})).await.to_string();
    all += &house.bob.call("users.find", json!({"prefix": "q"})).await.to_string();
    all += &house.bob.call("users.find", json!({"prefix": "ev"})).await.to_string();
    all
}

async fn is_out(house: &mut House) {
    assert_eq!(house.eve.closed().await, 3500);
    let token = Some(house.eve_account.token.as_str());
    assert_eq!(house.server.http("GET /api/v1/me", token, "").await.status, 401);
    let body = json!({"name": "eve", "password": "correct horse"}).to_string();
    assert_eq!(house.server.http("POST /api/v1/sessions", None, &body).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_messages_stay_without_a_name() {
    let mut house = house().await;
    let wish = json!({"password": "correct horse", "messages": "keep", "rooms": "hand_over"});
    assert_eq!(delete_me(&house.server, &house.eve_account, wish).await.status, 204);
    is_out(&mut house).await;
    let left = house.bob.event(&format!("room:{}", house.his), "left").await;
    assert_eq!((&left["user"], &left["reason"]), (&json!(house.eve_account.id), &json!("deleted")));
    house.server.erased().await;
    for _ in 0..2 {
        let all = everything(&mut house).await;
        assert!(!all.contains(NAME) && !all.contains("\"eve\""), "{all}");
        let page = house.bob.call("history.get", json!({"room": house.hers})).await;
        let message = &page["messages"][0];
        assert_eq!(message["body"], format!("@bob {SECRET}"));
        assert_eq!(
            (&message["user"], &message["name"]),
            (&json!(house.eve_account.id), &json!(""))
        );
        assert_eq!(page["messages"][1]["reply_to"]["name"], "");
        let gone =
            json!({"id": house.eve_account.id, "name": "", "display_name": "", "deleted": true});
        let user = house.bob.call("user.get", json!({"user": house.eve_account.id})).await;
        assert_eq!(user, gone);
        let direct = house.bob.call("room.get", json!({"room": house.direct})).await;
        assert_eq!(direct["peer"], gone);
        let said = json!({"room": house.direct, "key": "3", "body": "?"});
        assert_eq!(house.bob.fail("message.send", said).await.code, 103);
        // Handed over.
        let hers = house.bob.call("room.get", json!({"room": house.hers})).await;
        assert_eq!((&hers["role"], &hers["members"]), (&json!("owner"), &json!(1)));
        house.server.restart().await;
        house.bob = house.server.connect(&house.bob_account).await;
    }
    house.server.stop().await;
    assert!(house.server.keeps(SECRET), "its messages were to be kept");
    assert!(!house.server.keeps(NAME), "its name is still on the disk");
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_messages_are_nowhere_any_more() {
    let mut house = house().await;
    let wish = json!({"password": "correct horse", "messages": "erase", "rooms": "hand_over"});
    assert_eq!(delete_me(&house.server, &house.eve_account, wish).await.status, 204);
    is_out(&mut house).await;
    house.bob.event(&format!("room:{}", house.his), "deleted").await;
    house.server.erased().await;
    for _ in 0..2 {
        let all = everything(&mut house).await;
        assert!(!all.contains(NAME) && !all.contains(SECRET), "{all}");
        assert!(!all.contains("\"emoji\":\"x\",\"users\""), "its reactions are gone: {all}");
        for room in [&house.hers, &house.his, &house.direct] {
            let page = house.bob.call("history.get", json!({"room": room})).await;
            let message = &page["messages"][1];
            assert_eq!((&message["body"], &message["reactions"]), (&json!("what?"), &json!([])));
        }
        let hits = house.bob.call("search", json!({"query": SECRET})).await;
        assert!(hits["hits"].as_array().unwrap().is_empty(), "{hits}");
        house.server.restart().await;
        house.bob = house.server.connect(&house.bob_account).await;
    }
    house.server.stop().await;
    assert!(!house.server.keeps(SECRET) && !house.server.keeps(NAME));
    assert!(house.server.keeps("what?"), "what others said stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_is_asked_again_and_owned_rooms_are_a_reason_to_refuse() {
    let mut house = house().await;
    let wish = json!({"password": "wrong horse", "messages": "keep"});
    assert_eq!(delete_me(&house.server, &house.eve_account, wish).await.status, 401);
    let wish = json!({"password": "correct horse", "messages": "keep"});
    let refused = delete_me(&house.server, &house.eve_account, wish.clone()).await;
    assert_eq!(refused.status, 403);
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("nobody else owns Hers"), "{detail}");
    // Nothing has happened.
    house.eve.say(&house.hers, "still", "here").await;
    let owner = json!({"room": house.hers, "user": house.bob_account.id, "role": "owner"});
    house.eve.call("room.set_role", owner).await;
    assert_eq!(delete_me(&house.server, &house.eve_account, wish).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_deletes_accounts_but_not_the_last_of_them() {
    let mut house = house().await;
    let path = |account: &Account| format!("POST /api/v1/admin/users/{}/deletion", account.id);
    let wish = json!({"messages": "erase", "rooms": "hand_over"}).to_string();
    let (anna, bob) = (house.anna_account.clone(), house.bob_account.clone());
    let by_bob = house.server.http(&path(&anna), Some(&bob.token), &wish).await;
    assert_eq!(by_bob.status, 403);
    let last = house.server.http(&path(&anna), Some(&anna.token), &wish).await;
    assert_eq!(last.status, 403);
    assert!(last.json()["detail"].as_str().unwrap().contains("last administrator"));
    let gone = house.server.http(&path(&house.eve_account), Some(&anna.token), &wish).await;
    assert_eq!(gone.status, 204);
    is_out(&mut house).await;
    let again = house.server.http(&path(&house.eve_account), Some(&anna.token), &wish).await;
    assert_eq!(again.status, 404);
    house.server.erased().await;
    let users = house.server.http("GET /api/v1/admin/users", Some(&anna.token), "").await.json();
    assert_eq!(users["users"].as_array().unwrap().len(), 2, "{users}");
    let log = house.server.http("GET /api/v1/admin/moderation", Some(&anna.token), "").await;
    let log = log.json();
    let entries = log["entries"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["action"] == "account_deleted");
    let entry = entry.expect("it is in the log");
    assert_eq!((&entry["by"]["name"], &entry["user"]["deleted"]), (&json!("anna"), &json!(true)));
    // The name is free, and whoever takes it is somebody else.
    let other = house.server.sign_up("eve").await;
    assert_ne!(other.id, house.eve_account.id);
    let added = json!({"room": house.his, "user": house.eve_account.id});
    assert_eq!(house.bob.fail("room.add", added).await.code, 404);
    let open = json!({"user": house.eve_account.id});
    let direct = house.bob.call("direct.open", open).await;
    assert_eq!(direct["id"], house.direct.as_str(), "the old conversation can be read");
}

#[tokio::test(flavor = "multi_thread")]
async fn rooms_and_conversations_without_anybody_left_go_too() {
    let mut house = house().await;
    let alone = house.eve.create_room("Alone").await;
    house.eve.say(&alone, "1", "to myself").await;
    for account in [&house.eve_account, &house.bob_account] {
        let wish = json!({"password": "correct horse", "messages": "keep", "rooms": "hand_over"});
        assert_eq!(delete_me(&house.server, account, wish).await.status, 204);
        house.server.erased().await;
    }
    house.server.restart().await;
    house.server.stop().await;
    for text in ["to myself", SECRET, "what?", NAME] {
        assert!(!house.server.keeps(text), "{text}");
    }
}

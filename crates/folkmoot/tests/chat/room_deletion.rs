//! Deleting a room takes everything with it; archiving only closes it.

use serde_json::{Value, json};

use crate::support::{Account, Client, Server};

/// Words that stand nowhere else.
const NAME: &str = "Quinceunx";
const SECRET: &str = "xylophagous";

/// Anna's room with Bob in it, a message that mentions him, his answer and a file; both subscribed.
struct House {
    server: Server,
    anna_account: Account,
    bob_account: Account,
    anna: Client,
    bob: Client,
    room: String,
    file: String,
    invite: String,
}

async fn house() -> House {
    let server = Server::start().await;
    let anna_account = Account::of(&server.set_up("anna").await);
    let bob_account = server.sign_up("bob").await;
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room(NAME).await;
    anna.invite(&room, &mut bob).await;
    let invite = anna.call("invite.create", json!({"room": room})).await;
    let invite = invite["code"].as_str().expect("text").to_owned();
    let file = server.upload(&anna_account, &room, "a.txt", b"in a file").await.json();
    let file = file["id"].as_str().expect("text").to_owned();
    let body = format!("@bob {SECRET}");
    let said = json!({"room": room, "key": "1", "body": body, "attachments": [file]});
    anna.call("message.send", said).await;
    let reply = json!({"room": room, "key": "2", "body": "what?", "reply_to": 1});
    bob.call("message.send", reply).await;
    bob.event(&format!("user:{}", bob_account.id), "mention").await;
    anna.subscribe(&room).await;
    bob.subscribe(&room).await;
    House { server, anna_account, bob_account, anna, bob, room, file, invite }
}

async fn listed(client: &mut Client, request: Value) -> Vec<String> {
    let page = client.call("rooms.list", request).await;
    let rooms = page["rooms"].as_array().expect("rooms");
    rooms.iter().map(|room| room["id"].as_str().expect("an id").to_owned()).collect()
}

/// Nobody gets anything of the room any more.
async fn is_unreachable(house: &mut House) {
    let room = house.room.clone();
    for client in [&mut house.anna, &mut house.bob] {
        for (method, request) in [
            ("room.get", json!({"room": room})),
            ("history.get", json!({"room": room})),
            ("room.members", json!({"room": room})),
            ("message.send", json!({"room": room, "key": "9", "body": "?"})),
            ("message.delete", json!({"room": room, "seq": 1})),
            ("room.delete", json!({"room": room})),
            ("room.archive", json!({"room": room, "on": true})),
            ("room.leave", json!({"room": room})),
            ("invite.create", json!({"room": room})),
            ("invite.list", json!({"room": room})),
            ("invite.get", json!({"code": house.invite})),
            ("invite.accept", json!({"code": house.invite})),
        ] {
            assert_eq!(client.fail(method, request).await.code, 404, "{method}");
        }
        let channel = json!({"channel": format!("room:{room}")});
        for command in ["subscribe", "history", "presence"] {
            let refused = client.command(command, channel.clone()).await;
            let refused = refused.expect_err("nobody may");
            assert_eq!(refused.code, 404, "{command}");
        }
        assert!(listed(client, json!({})).await.is_empty());
        let hits = client.call("search", json!({"query": SECRET})).await;
        assert!(hits["hits"].as_array().expect("a list").is_empty(), "{hits}");
    }
    let file = format!("GET /api/v1/attachments/{}", house.file);
    for account in [&house.anna_account, &house.bob_account] {
        assert_eq!(house.server.http(&file, Some(&account.token), "").await.status, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_room_is_out_of_reach_at_once_and_gone_from_the_disk() {
    let mut house = house().await;
    let room = house.room.clone();
    let not_the_owner = house.bob.fail("room.delete", json!({"room": room})).await;
    assert_eq!(not_the_owner.code, 103);
    house.anna.call("room.delete", json!({"room": room})).await;
    let channel = format!("room:{room}");
    house.bob.event(&channel, "room_deleted").await;
    let unsubscribed = house.bob.push(&channel).await;
    assert_eq!(unsubscribed["unsubscribe"]["code"], 2000, "{unsubscribed}");
    is_unreachable(&mut house).await;
    let own = format!("user:{}", house.bob_account.id);
    let removed = house.bob.event(&own, "room_removed").await;
    assert_eq!((&removed["room"], &removed["reason"]), (&json!(room), &json!("deleted")));
    house.server.erased().await;
    is_unreachable(&mut house).await;
    let history = json!({"channel": own, "limit": 1000});
    let stream = house.bob.command("history", history).await.unwrap().to_string();
    assert!(!stream.contains(SECRET) && !stream.contains(NAME), "{stream}");
    house.server.restart().await;
    house.anna = house.server.connect(&house.anna_account).await;
    house.bob = house.server.connect(&house.bob_account).await;
    is_unreachable(&mut house).await;
    house.server.stop().await;
    for text in [SECRET, NAME, "what?", "in a file", &house.invite] {
        assert!(!house.server.keeps(text), "{text} is still on the disk");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_deletes_rooms_without_being_in_them() {
    let mut house = house().await;
    let theirs = house.bob.create_room("Pub").await;
    let line = format!("DELETE /api/v1/admin/rooms/{theirs}");
    let bob = house.bob_account.token.clone();
    assert_eq!(house.server.http(&line, Some(&bob), "").await.status, 403);
    let anna = house.anna_account.token.clone();
    assert_eq!(house.server.http(&line, Some(&anna), "").await.status, 204);
    assert_eq!(house.server.http(&line, Some(&anna), "").await.status, 404);
    assert_eq!(house.bob.fail("room.get", json!({"room": theirs})).await.code, 404);
    house.server.erased().await;
    let log = house.server.http("GET /api/v1/admin/moderation", Some(&anna), "").await.json();
    let newest = &log["entries"][0];
    assert_eq!(
        (&newest["action"], &newest["room"]),
        (&json!("room_deleted"), &json!({"id": theirs, "name": ""}))
    );
    // The other one is as it was.
    assert_eq!(listed(&mut house.bob, json!({})).await, [house.room.clone()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_with_more_members_and_messages_than_one_step_takes_goes_too() {
    let limits = "messages_per_second = 0\naccounts_per_minute = 0\ninvites_per_minute = 0";
    let mut server = Server::with(&format!("[limits]\n{limits}\n")).await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room(NAME).await;
    let mut sent = Vec::new();
    for n in 0..2_500 {
        let said = json!({"room": room, "key": n.to_string(), "body": format!("{SECRET} {n}")});
        sent.push(anna.post("rpc", json!({"method": "message.send", "data": said})).await);
    }
    for id in sent {
        anna.reply(id, "rpc").await.unwrap();
    }
    for n in 0..105 {
        let account = server.sign_up(&format!("member{n}")).await;
        anna.call("room.add", json!({"room": room, "user": account.id})).await;
    }
    anna.call("room.delete", json!({"room": room})).await;
    server.erased().await;
    let member = server.sign_in("member104").await;
    let mut member = server.connect(&member).await;
    assert!(listed(&mut member, json!({})).await.is_empty());
    server.restart().await;
    server.stop().await;
    assert!(!server.keeps(SECRET) && !server.keeps(NAME));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_room_can_be_read_and_not_written_until_it_is_opened() {
    let mut house = house().await;
    let room = house.room.clone();
    let archive = |on: bool| json!({"room": room, "on": on});
    assert_eq!(house.bob.fail("room.archive", archive(true)).await.code, 103);
    let once = house.anna.call("invite.create", json!({"room": room, "uses_max": 1})).await;
    let view = house.anna.call("room.archive", archive(true)).await;
    assert_eq!(view["archived"], true);
    let told = house.bob.event(&format!("room:{room}"), "archived").await;
    assert_eq!(told["on"], true);
    house.server.restart().await;
    house.anna = house.server.connect(&house.anna_account).await;
    house.bob = house.server.connect(&house.bob_account).await;
    for (method, request) in [
        ("message.send", json!({"room": room, "key": "3", "body": "?"})),
        ("message.edit", json!({"room": room, "seq": 1, "body": "?"})),
        ("message.react", json!({"room": room, "seq": 1, "emoji": "x", "on": true})),
        ("typing.set", json!({"room": room, "on": true})),
        ("room.update", json!({"room": room, "topic": "?"})),
    ] {
        let refused = house.anna.fail(method, request).await;
        assert_eq!(refused.code, 103, "{method}");
        assert!(refused.message.contains("archived"), "{method}: {refused:?}");
    }
    let upload = house.server.upload(&house.anna_account, &room, "b.txt", b"no").await;
    assert_eq!(upload.status, 403);
    let mut cara = house.server.join("cara").await;
    assert_eq!(cara.fail("invite.accept", json!({"code": once["code"]})).await.code, 103);
    let page = house.bob.call("history.get", json!({"room": room})).await;
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
    for client in [&mut house.anna, &mut house.bob] {
        assert!(listed(client, json!({})).await.is_empty());
        assert_eq!(listed(client, json!({"archived": true})).await, std::slice::from_ref(&room));
    }
    // What one has said can still be taken back.
    house.bob.call("message.delete", json!({"room": room, "seq": 2})).await;
    let opened = house.anna.call("room.archive", archive(false)).await;
    assert!(opened["archived"].is_null(), "{opened}");
    house.bob.say(&room, "4", "again").await;
    assert_eq!(listed(&mut house.bob, json!({})).await, std::slice::from_ref(&room));
    // Its only use was not taken in vain.
    cara.call("invite.accept", json!({"code": once["code"]})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_archive_rooms_and_see_which_are() {
    let mut house = house().await;
    let theirs = house.bob.create_room("Pub").await;
    let line = format!("PATCH /api/v1/admin/rooms/{theirs}");
    let anna = house.anna_account.token.clone();
    let room = house.server.http(&line, Some(&anna), "{\"archived\":true}").await.json();
    assert!(room["archived_at"].is_u64(), "{room}");
    let said = json!({"room": theirs, "key": "1", "body": "?"});
    assert_eq!(house.bob.fail("message.send", said.clone()).await.code, 103);
    let room = house.server.http(&line, Some(&anna), "{\"archived\":false}").await.json();
    assert!(room["archived_at"].is_null(), "{room}");
    house.bob.call("message.send", said).await;
    let bob = house.bob_account.token.clone();
    assert_eq!(house.server.http(&line, Some(&bob), "{\"archived\":true}").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_direct_conversation_is_neither_deleted_nor_archived() {
    let mut house = house().await;
    let other = house.bob_account.id.clone();
    let direct = house.anna.call("direct.open", json!({"user": other})).await;
    let direct = direct["id"].clone();
    assert_eq!(house.anna.fail("room.delete", json!({"room": direct})).await.code, 103);
    let archive = json!({"room": direct, "on": true});
    assert_eq!(house.anna.fail("room.archive", archive).await.code, 103);
    let line = format!("DELETE /api/v1/admin/rooms/{}", direct.as_str().unwrap());
    let anna = house.anna_account.token.clone();
    assert_eq!(house.server.http(&line, Some(&anna), "").await.status, 403);
}

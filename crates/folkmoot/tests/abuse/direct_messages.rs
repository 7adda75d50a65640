//! A flood of direct conversations with the longest messages there can be.

use serde_json::{Value, json};

use crate::support::{Client, Server};

/// A control character takes six bytes in JSON, so this is the longest body on the wire.
fn longest_body() -> String {
    "\u{1}".repeat(8_000)
}

/// Opens a direct conversation with `target` and fills it.
async fn pester(attacker: &mut Client, target: &str, messages: usize) -> String {
    let room = attacker.call("direct.open", json!({"user": target})).await;
    let room = room["id"].as_str().expect("an id").to_owned();
    for n in 0..messages {
        attacker.say(&room, &n.to_string(), &longest_body()).await;
    }
    room
}

/// All rooms, page by page.
async fn rooms(client: &mut Client) -> Vec<Value> {
    let (mut rooms, mut request) = (Vec::new(), json!({}));
    loop {
        let page = client.call("rooms.list", request).await;
        rooms.extend(page["rooms"].as_array().expect("rooms").iter().cloned());
        match &page["next"] {
            Value::Null => return rooms,
            next => request = json!({"after": next}),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_full_conversations_do_not_keep_their_target_out() {
    let server = Server::with(
        "[limits]\naccounts_per_minute = 0\nmessages_per_second = 0\nrooms_per_minute = 0\n",
    )
    .await;
    let account = server.sign_up("anna").await;
    let mut conversations = Vec::new();
    for n in 0..40 {
        let mut attacker = server.join(&format!("attacker{n}")).await;
        conversations.push(pester(&mut attacker, &account.id, 3).await);
    }
    let mut anna = server.connect(&account).await;
    assert_eq!(rooms(&mut anna).await.len(), 40);
    // Everything at once, 5.8 MB of answers, before the first is read: they wait for room.
    let mut asked = Vec::new();
    for room in &conversations {
        let request = json!({"method": "history.get", "data": {"room": room}});
        asked.push(anna.post("rpc", request).await);
    }
    for id in asked {
        let page = anna.reply(id, "rpc").await.expect("each is answered");
        assert_eq!(page["data"]["messages"].as_array().map(Vec::len), Some(3));
    }
    anna.call("rooms.list", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_blocked_reaches_their_target_no_more() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let tormentor = server.sign_up("eve").await;
    let mut eve = server.connect(&tormentor).await;
    let direct = pester(&mut eve, &account.id, 1).await;
    let hall = anna.create_room("Hall").await;
    anna.invite(&hall, &mut eve).await;

    anna.call("direct.hide", json!({"room": direct})).await;
    let listed: Vec<Value> = rooms(&mut anna).await;
    assert!(listed.iter().all(|room| room["id"] != direct.as_str()), "{listed:?}");
    eve.say(&direct, "again", "you cannot hide").await;
    anna.event(&format!("user:{}", account.id), "room_added").await;
    assert!(rooms(&mut anna).await.iter().any(|room| room["id"] == direct.as_str()));

    anna.call("user.block", json!({"user": tormentor.id, "on": true})).await;
    anna.call("direct.hide", json!({"room": direct})).await;
    let send = json!({"room": direct, "key": "k", "body": "hello?"});
    assert_eq!(eve.fail("message.send", send.clone()).await.code, 103);
    let react = json!({"room": direct, "seq": 1, "emoji": "x", "on": true});
    assert_eq!(eve.fail("message.react", react).await.code, 103);
    assert_eq!(eve.fail("typing.set", json!({"room": direct, "on": true})).await.code, 103);
    eve.say(&hall, "m", "@anna look").await;
    let hall_now = anna.call("room.get", json!({"room": hall})).await;
    assert_eq!((&hall_now["unread"], &hall_now["mentions"]), (&json!(1), &json!(0)));

    // It holds after everything was loaded anew.
    server.restart().await;
    let mut anna = server.connect(&account).await;
    let mut eve = server.connect(&tormentor).await;
    assert_eq!(eve.fail("message.send", send.clone()).await.code, 103);
    assert!(rooms(&mut anna).await.iter().all(|room| room["id"] != direct.as_str()));
    let blocked = anna.call("users.blocked", json!({})).await;
    assert_eq!(blocked["users"][0]["name"], "eve");
    anna.call("user.block", json!({"user": tormentor.id, "on": false})).await;
    eve.call("message.send", send).await;
    anna.call("direct.open", json!({"user": tormentor.id})).await;
    assert!(rooms(&mut anna).await.iter().any(|room| room["id"] == direct.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_blocked_opens_no_conversation() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let other = server.sign_up("eve").await;
    let mut eve = server.connect(&other).await;
    anna.call("user.block", json!({"user": other.id, "on": true})).await;
    assert_eq!(eve.fail("direct.open", json!({"user": account.id})).await.code, 103);
    let oneself = anna.fail("user.block", json!({"user": account.id, "on": true})).await;
    assert_eq!(oneself.code, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_blocked_adds_their_target_to_no_room() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let other = server.sign_up("eve").await;
    let mut eve = server.connect(&other).await;
    anna.call("user.block", json!({"user": other.id, "on": true})).await;
    let trap = json!({"room": eve.create_room("Trap").await, "user": account.id});
    let refused = eve.fail("room.add", trap.clone()).await;
    assert!(refused.code == 103 && refused.message.contains("from you"), "{refused:?}");
    assert!(rooms(&mut anna).await.is_empty());
    anna.call("user.block", json!({"user": other.id, "on": false})).await;
    eve.call("room.add", trap).await;
    assert_eq!(rooms(&mut anna).await.len(), 1);
}

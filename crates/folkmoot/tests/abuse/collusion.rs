//! Two accounts against a third: they make every list of theirs as long as they can, with the
//! longest content there is. The third signs in, reads, writes, defends themselves and goes.

use serde_json::{Value, json};

use crate::support::{Client, PATIENT, Server};

/// Rooms of each attacker: together more than a page of the target's list.
const ROOMS: usize = 55;
/// A name and a topic as long as they may be, with characters that take the most bytes.
fn longest(chars: usize) -> String {
    "\u{1F469}".repeat(chars)
}

/// All of a list, page by page.
async fn all(client: &mut Client, method: &str, list: &str, mut request: Value) -> Vec<Value> {
    let mut found = Vec::new();
    loop {
        let page = client.call(method, request.clone()).await;
        found.extend(page[list].as_array().expect("a list").iter().cloned());
        match page["next"].clone() {
            Value::Null => return found,
            next => request["after"] = next,
        }
    }
}

/// What one of the two does to the target: rooms without end, each with the longest of everything.
async fn burden(attacker: &mut Client, target: &str, name: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for n in 0..ROOMS {
        let request = json!({"name": longest(64), "topic": longest(512)});
        let room = attacker.call("room.create", request).await;
        let room = room["id"].as_str().expect("an id").to_owned();
        attacker.call("room.add", json!({"room": room, "user": target})).await;
        let body = format!("@anna @everyone {}", longest(7_900));
        attacker.say(&room, &format!("{name}{n}"), &body).await;
        rooms.push(room);
    }
    let first = rooms[0].clone();
    for n in 0..50 {
        attacker.say(&first, &format!("full{n}"), &longest(8_000)).await;
    }
    for n in 0..20 {
        let emoji = format!("{n}{}", "\u{1F469}".repeat(15));
        let react = json!({"room": first, "seq": 1, "emoji": emoji, "on": true});
        attacker.call("message.react", react).await;
    }
    let more = json!({"room": first, "seq": 1, "emoji": "\u{1F600}", "on": true});
    assert_eq!(attacker.fail("message.react", more).await.code, 106);
    for _ in 0..120 {
        attacker.call("invite.create", json!({"room": first})).await;
    }
    rooms
}

#[tokio::test(flavor = "multi_thread")]
async fn two_accounts_together_do_not_keep_a_third_from_anything() {
    let limits = "[limits]\naccounts_per_minute = 0\nmessages_per_second = 0\n\
        rooms_per_minute = 0\ninvites_per_minute = 0\nreactions_per_minute = 0\n\
        searches_per_minute = 0\n";
    let mut server = Server::with(&format!("{limits}{PATIENT}")).await;
    let account = server.sign_up("anna").await;
    let others = [server.sign_up("eve").await, server.sign_up("mallory").await];
    let mut anna = server.connect(&account).await;
    let mut burdened = Vec::new();
    for (n, other) in others.iter().enumerate() {
        let mut attacker = server.connect(other).await;
        burdened.extend(burden(&mut attacker, &account.id, &n.to_string()).await);
    }
    for _ in 0..2 {
        let rooms = all(&mut anna, "rooms.list", "rooms", json!({})).await;
        assert_eq!(rooms.len(), 2 * ROOMS);
        let synced = all(&mut anna, "sync", "rooms", json!({"rooms": {}})).await;
        assert_eq!(synced.len(), 2 * ROOMS);
        // Every message of the fullest room, however short the pages have to be.
        let (mut seen, mut before) = (0, Value::Null);
        loop {
            let mut request = json!({"room": burdened[0], "limit": 100});
            if !before.is_null() {
                request["before"] = before.clone();
            }
            let page = anna.call("history.get", request).await;
            let messages = page["messages"].as_array().expect("messages");
            let Some(first) = messages.first() else { break };
            seen += messages.len();
            before = first["seq"].clone();
            if before == 1 {
                break;
            }
        }
        assert_eq!(seen, 51);
        let recover =
            json!({"channel": format!("room:{}", burdened[0]), "recover": true, "offset": 1});
        anna.command("subscribe", recover).await.expect("a member may");
        let invites = json!({"room": burdened[0]});
        assert_eq!(all(&mut anna, "invite.list", "invites", invites).await.len(), 120);
        anna.call("message.reactions", json!({"room": burdened[0], "seq": 1})).await;
        anna.call("search", json!({"query": "everyone"})).await;
        let own = json!({"channel": format!("user:{}", account.id), "limit": 1000});
        anna.command("history", own).await.expect("one's own stream");
        server.restart().await;
        anna = server.connect(&account).await;
    }
    // What they can do against it.
    for other in &others {
        anna.call("user.block", json!({"user": other.id, "on": true})).await;
    }
    let mut eve = server.connect(&others[0]).await;
    let mentions = |view: &Value| view["mentions"].as_u64().expect("a number");
    let before = mentions(&anna.call("room.get", json!({"room": burdened[0]})).await);
    eve.say(&burdened[0], "again", "@anna").await;
    let after = mentions(&anna.call("room.get", json!({"room": burdened[0]})).await);
    assert_eq!(before, after, "who is blocked mentions nobody");
    for room in burdened.iter().step_by(10) {
        anna.call("room.leave", json!({"room": room})).await;
    }
    let own = anna.create_room("Mine").await;
    anna.say(&own, "1", "peace").await;
    let wish = json!({"password": "correct horse", "messages": "erase"}).to_string();
    let gone = server.http("POST /api/v1/me/deletion", Some(&account.token), &wish).await;
    assert_eq!(gone.status, 204);
    server.erased().await;
}

/// Calls of one method until it must have met its limit: more than the highest there is.
const CALLS_MAX: usize = 1_300;
/// The methods that cost most or whose content others see.
const METHODS: [&str; 21] = [
    "message.send",
    "message.edit",
    "message.react",
    "message.pin",
    "message.save",
    "room.create",
    "room.update",
    "room.mute",
    "user.block",
    "direct.open",
    "invite.create",
    "profile.update",
    "status.set",
    "search",
    "users.find",
    "presence.watch",
    "history.get",
    "room.members",
    "invite.list",
    "typing.set",
    "read.set",
];

/// The largest request of a method; another one each time, so that it changes something.
fn largest(method: &str, room: &str, target: &str, n: usize) -> Value {
    let toggled = n.is_multiple_of(2);
    let text = |chars: usize| format!("{n}{}", longest(chars - n.to_string().len()));
    let seq = 1 + n / 2 % 20;
    match method {
        "message.send" => json!({"room": room, "key": text(64), "body": text(8_000)}),
        "message.edit" => json!({"room": room, "seq": 1, "body": text(8_000)}),
        "message.react" => json!({"room": room, "seq": 1, "emoji": longest(16), "on": toggled}),
        "message.pin" | "message.save" => json!({"room": room, "seq": seq, "on": toggled}),
        "room.create" => json!({"name": text(64), "topic": text(512)}),
        "room.update" => json!({"room": room, "name": text(64), "topic": text(512)}),
        "direct.open" => json!({"user": target}),
        "room.mute" => json!({"room": room, "user": target, "until": 1 + n}),
        "user.block" => json!({"user": target, "on": toggled}),
        "profile.update" => json!({"display_name": text(64)}),
        "status.set" => json!({"emoji": longest(1), "text": text(80)}),
        "search" => json!({"query": text(256), "limit": 100}),
        "users.find" => json!({"prefix": "a", "limit": 50}),
        "presence.watch" => json!({"room": room, "users": vec![target; 200]}),
        "typing.set" => json!({"room": room, "on": toggled}),
        "read.set" => json!({"room": room, "seq": seq}),
        _ => json!({"room": room}),
    }
}

/// Repeats each method until a limit names itself; says which did not.
async fn exhaust(mut attacker: Client, room: String, target: String) -> Vec<&'static str> {
    let mut unlimited = Vec::new();
    for method in METHODS {
        let mut is_limited = false;
        for n in 0..CALLS_MAX {
            let called = attacker.rpc(method, largest(method, &room, &target, n)).await;
            // Other refusals are of what cannot be any more, as of more pins.
            let Err(refused) = called else { continue };
            if refused.code == 429 {
                let names_it = refused.message.contains("the limit is");
                assert!(names_it && refused.message.contains("try again in"), "{refused:?}");
                is_limited = true;
                break;
            }
        }
        if !is_limited {
            unlimited.push(method);
        }
    }
    unlimited
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_of_each_method_ends_at_a_limit_that_is_named_and_a_third_goes_on_meanwhile() {
    // As they are by default, but for one: each question is answered with a page of the longest.
    let limits = "[limits]\naccounts_per_minute = 0\nquestions_per_minute = 100\n";
    let server = Server::with(&format!("{limits}{PATIENT}")).await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let (mut attacks, mut rooms) = (Vec::new(), Vec::new());
    for name in ["eve", "mallory"] {
        let mut attacker = server.join(name).await;
        let room = attacker.create_room(&longest(64)).await;
        attacker.call("room.add", json!({"room": room, "user": account.id})).await;
        rooms.push(room.clone());
        attacks.push(tokio::spawn(exhaust(attacker, room, account.id.clone())));
    }
    let own = anna.create_room("Mine").await;
    let mut said = 0;
    while !attacks.iter().all(tokio::task::JoinHandle::is_finished) {
        let message = json!({"room": own, "key": said.to_string(), "body": "still here"});
        // As fast as she may.
        match anna.rpc("message.send", message).await {
            Ok(sent) => {
                said += 1;
                assert_eq!(sent["seq"], said);
            }
            Err(refused) => assert_eq!(refused.code, 429, "{refused:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(said > 0, "she said something meanwhile");
    for attack in attacks {
        assert_eq!(attack.await.expect("it ends"), Vec::<&str>::new(), "have no limit");
    }
    anna = server.connect(&account).await;
    // Hers, the attackers' two, and perhaps a conversation with each of them.
    let listed = all(&mut anna, "rooms.list", "rooms", json!({})).await.len();
    assert!((3..=5).contains(&listed), "{listed} rooms");
    for room in rooms {
        let page = anna.call("history.get", json!({"room": room, "limit": 100})).await;
        assert!(!page["messages"].as_array().expect("a list").is_empty());
        anna.call("room.leave", json!({"room": room})).await;
    }
}

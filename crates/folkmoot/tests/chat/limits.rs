//! What one user may do how often, on all devices together: each limit is a setting, and a refusal
//! names it and when to try again.

use serde_json::{Value, json};

use crate::support::{Client, Server};

const SETTINGS: &str = "[limits]\naccounts_per_minute = 0\nmessages_per_second = 0\n\
    edits_per_minute = 3\nreactions_per_minute = 3\ntyping_per_minute = 3\nrooms_per_minute = 3\n\
    invites_per_minute = 3\nprofile_changes_per_minute = 3\nsearches_per_minute = 3\n";

/// Does something three times, and is refused the fourth time.
async fn is_limited(client: &mut Client, method: &str, data: &Value, words: &str) {
    for _ in 0..3 {
        client.call(method, data.clone()).await;
    }
    let refused = client.fail(method, data.clone()).await;
    assert_eq!(refused.code, 429, "{method}");
    let text = format!("too many {words}: the limit is 3 a minute; try again in ");
    assert!(refused.message.starts_with(&text), "{refused:?}");
    let wait: u64 = refused.message[text.len()..].trim_end_matches(" ms").parse().expect("ms");
    // A fourth one is earned after a third of a minute.
    assert!((1..=20_000).contains(&wait), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_costs_has_a_limit_of_its_own() {
    let server = Server::with(SETTINGS).await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    for key in ["1", "2"] {
        anna.say(&room, key, "tea").await;
    }
    let edit = json!({"room": room, "seq": 1, "body": "coffee"});
    is_limited(&mut anna, "message.edit", &edit, "edits and deletions").await;
    // Deletions share the limit of edits.
    assert_eq!(anna.fail("message.delete", json!({"room": room, "seq": 2})).await.code, 429);
    let react = json!({"room": room, "seq": 1, "emoji": "x", "on": true});
    is_limited(&mut anna, "message.react", &react, "reactions").await;
    let typing = json!({"room": room, "on": true});
    is_limited(&mut anna, "typing.set", &typing, "notices of typing").await;
    let profile = json!({"display_name": "A."});
    is_limited(&mut anna, "profile.update", &profile, "changes of the profile").await;
    // Of whatever kind.
    assert_eq!(anna.fail("status.set", json!({"emoji": "x", "text": ""})).await.code, 429);
    is_limited(&mut anna, "invite.create", &json!({"room": room}), "invites").await;
    is_limited(&mut anna, "search", &json!({"query": "tea"}), "searches").await;
    anna.create_room("Second").await;
    anna.create_room("Third").await;
    let refused = anna.fail("room.create", json!({"name": "Fourth"})).await;
    assert!(refused.message.contains("new rooms: the limit is 3 a minute"), "{refused:?}");
    // By whichever road and device.
    let other = server.sign_in("anna").await;
    let answer =
        server.http("POST /api/v1/rooms", Some(&other.token), "{\"name\":\"Fifth\"}").await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.json()["limit"], 3);
    assert!(answer.head.contains("retry-after: "), "{}", answer.head);
    // What one does leaves others theirs.
    let mut bob = server.join("bob").await;
    bob.create_room("Pub").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_method_is_without_a_limit() {
    let settings = "[limits]\naccounts_per_minute = 0\nquestions_per_minute = 3\n\
        changes_per_minute = 3\ncursors_per_minute = 3\n";
    let server = Server::with(settings).await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    anna.say(&room, "1", "tea").await;
    let stranger = server.sign_up("bob").await.id;
    let ban = json!({"room": room, "user": stranger, "on": true});
    is_limited(&mut anna, "room.ban", &ban, "changes").await;
    for method in ["room.update", "room.leave"] {
        assert_eq!(anna.fail(method, json!({"room": room})).await.code, 429, "{method}");
    }
    is_limited(&mut anna, "read.set", &json!({"room": room, "seq": 1}), "moves of read cursors")
        .await;
    is_limited(&mut anna, "history.get", &json!({"room": room}), "questions").await;
    let find = json!({"prefix": "a"});
    assert_eq!(anna.fail("users.find", find).await.code, 429);
    for command in ["presence", "presence_stats", "history"] {
        let refused = anna.command(command, json!({"channel": format!("room:{room}")})).await;
        assert_eq!(refused.unwrap_err().code, 429, "{command}");
    }
    for path in ["limits", "attachments/0000000000007", "attachments/0000000000007/thumbnail"] {
        let refused = server.http(&format!("GET /api/v1/{path}"), Some(&account.token), "").await;
        assert_eq!(refused.status, 429, "{path}");
    }
    let (old, new) = ("correct horse", "battery staple");
    let passwords = json!({"old": old, "new": new, "sign_out_others": false}).to_string();
    let deletion = json!({"password": old, "messages": "keep"}).to_string();
    for (line, body) in [
        ("GET /api/v1/me", ""),
        ("GET /api/v1/uploads/0000000000007", ""),
        ("DELETE /api/v1/uploads/0000000000007", ""),
        ("PATCH /api/v1/uploads/0000000000007?offset=0", "a piece"),
        ("POST /api/v1/me/password", &*passwords),
        ("POST /api/v1/me/deletion", &*deletion),
    ] {
        let refused = server.http(line, Some(&account.token), body).await;
        assert_eq!(refused.status, 429, "{line}: {refused:?}");
    }
}

//! Coming and going: invites, direct conversations, roles, moderation, presence.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_ends_with_its_uses() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let invite = anna.call("invite.create", json!({"room": room, "uses_max": 1})).await;
    let code = json!({"code": invite["code"]});
    let mut bob = server.join("bob").await;
    let preview = bob.call("invite.get", code.clone()).await;
    assert_eq!((&preview["room"]["name"], &preview["room"]["members"]), (&json!("Tea"), &json!(1)));
    assert_eq!(bob.call("invite.accept", code.clone()).await["role"], "member");
    // Who is in already does not need a use.
    assert_eq!(bob.call("invite.accept", code.clone()).await["id"], room.as_str());
    let mut cara = server.join("cara").await;
    let refused = cara.fail("invite.accept", code.clone()).await;
    assert_eq!(refused.code, 404);
    assert!(refused.message.contains("as often as it may"), "{refused:?}");
    let list = anna.call("invite.list", json!({"room": room})).await;
    assert_eq!(list["invites"][0]["uses"], 1);
    anna.call("invite.revoke", code.clone()).await;
    assert!(cara.fail("invite.get", code).await.message.contains("no such invite"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_ends_with_its_time() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let mut bob = server.join("bob").await;
    let room = anna.create_room("Tea").await;
    let invite = anna.call("invite.create", json!({"room": room, "expires_in_s": 1})).await;
    let code = json!({"code": invite["code"]});
    // The server's clock is real here; the shortest life is a second.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    let refused = loop {
        match bob.rpc("invite.get", code.clone()).await {
            Err(refused) => break refused,
            Ok(_) => assert!(tokio::time::Instant::now() < deadline, "it never expired"),
        }
        // Questions are counted.
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(refused.message.contains("expired"), "{refused:?}");
    assert_eq!(bob.fail("invite.accept", code).await.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_have_one_direct_conversation() {
    let server = Server::start().await;
    let anna_account = server.sign_up("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.call("direct.open", json!({"user": bob_account.id})).await;
    assert_eq!((&room["kind"], &room["peer"]["name"]), (&json!("direct"), &json!("bob")));
    let added = bob.event(&format!("user:{}", bob_account.id), "room_added").await;
    assert_eq!(added["room"]["peer"]["name"], "anna");
    let same = bob.call("direct.open", json!({"user": anna_account.id})).await;
    assert_eq!(same["id"], room["id"]);
    let id = room["id"].as_str().unwrap().to_owned();
    bob.subscribe(&id).await;
    anna.say(&id, "1", "psst").await;
    assert_eq!(bob.message(&id).await["body"], "psst");
    let refused = anna.fail("invite.create", json!({"room": id})).await;
    assert_eq!(refused.code, 103);
    let refused = anna.fail("direct.open", json!({"user": anna_account.id})).await;
    assert_eq!(refused.code, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_removed_hears_it_and_nothing_more() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let account = server.sign_up("bob").await;
    let mut bob = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    bob.subscribe(&room).await;
    anna.call("room.kick", json!({"room": room, "user": account.id})).await;
    let channel = format!("room:{room}");
    assert_eq!(bob.event(&channel, "left").await["reason"], "kicked");
    assert_eq!(bob.push(&channel).await["unsubscribe"]["code"], 2000);
    let removed = bob.event(&format!("user:{}", account.id), "room_removed").await;
    assert_eq!(removed["room"], room.as_str());
    anna.say(&room, "1", "about bob").await;
    assert_eq!(bob.fail("history.get", json!({"room": room})).await.code, 103);
    assert_eq!(bob.call("rooms.list", json!({})).await["rooms"], json!([]));
    // Kicked is not banned.
    anna.invite(&room, &mut bob).await;
    assert_eq!(bob.subscribe(&room).await["recoverable"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_outlives_a_restart_until_it_is_lifted() {
    let mut server = Server::start().await;
    let anna_account = server.sign_up("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    let code = json!({"code": anna.call("invite.create", json!({"room": room})).await["code"]});
    bob.call("invite.accept", code.clone()).await;
    let ban = |on: bool| json!({"room": room, "user": bob_account.id, "on": on});
    anna.call("room.ban", ban(true)).await;
    server.restart().await;
    let mut anna = server.connect(&anna_account).await;
    let mut bob = server.connect(&bob_account).await;
    let refused = bob.fail("invite.accept", code.clone()).await;
    assert!(refused.code == 103 && refused.message.contains("banned"), "{refused:?}");
    anna.call("room.ban", ban(false)).await;
    bob.call("invite.accept", code).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_muted_stays_so_though_they_leave_and_come_back() {
    let mut server = Server::start().await;
    let anna_account = server.sign_up("anna").await;
    let mut anna = server.connect(&anna_account).await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    let the_room = json!({"room": room});
    anna.call("room.set_access", json!({"room": room, "access": "open"})).await;
    let far = 32_503_680_000_000_u64;
    let about_bob = |more: Value| {
        let mut request = json!({"room": room, "user": bob_account.id});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let message = json!({"room": room, "key": "k", "body": "x"});
    bob.call("room.join", the_room.clone()).await;
    anna.call("room.mute", about_bob(json!({"until": far}))).await;
    // By whichever way they go, and whether or not the room was in memory all the while.
    bob.call("room.leave", the_room.clone()).await;
    assert_eq!(bob.call("room.join", the_room.clone()).await["muted_until"], far);
    assert_eq!(bob.fail("message.send", message.clone()).await.code, 103);
    anna.call("room.kick", about_bob(json!({}))).await;
    server.restart().await;
    anna = server.connect(&anna_account).await;
    bob = server.connect(&bob_account).await;
    assert_eq!(bob.call("room.join", the_room.clone()).await["muted_until"], far);
    anna.call("room.ban", about_bob(json!({"on": true}))).await;
    anna.call("room.ban", about_bob(json!({"on": false}))).await;
    bob.call("room.join", the_room.clone()).await;
    let refused = bob.fail("message.send", message.clone()).await;
    assert!(refused.code == 103 && refused.message.contains("muted"), "{refused:?}");
    // What a moderator lifts is over, also for the next time.
    anna.call("room.mute", about_bob(json!({}))).await;
    bob.call("room.leave", the_room.clone()).await;
    assert!(bob.call("room.join", the_room).await["muted_until"].is_null());
    bob.call("message.send", message).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_and_mutes_are_told_and_hold() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    bob.subscribe(&room).await;
    let far = 32_503_680_000_000_u64;
    let mute = json!({"room": room, "user": bob_account.id, "until": far});
    anna.call("room.mute", mute).await;
    let told = bob.event(&format!("room:{room}"), "role").await;
    assert_eq!(told["muted_until"], far);
    let refused = bob.fail("message.send", json!({"room": room, "key": "k", "body": "x"})).await;
    assert!(refused.code == 103 && refused.message.contains("muted"), "{refused:?}");
    assert_eq!(bob.fail("typing.set", json!({"room": room, "on": true})).await.code, 103);
    anna.call("room.mute", json!({"room": room, "user": bob_account.id})).await;
    bob.say(&room, "k", "free again").await;
    let role = json!({"room": room, "user": bob_account.id, "role": "moderator"});
    assert_eq!(bob.fail("room.set_role", role.clone()).await.code, 103);
    anna.call("room.set_role", role).await;
    let update = json!({"room": room, "topic": "green tea"});
    assert_eq!(bob.call("room.update", update).await["topic"], "green tea");
    assert_eq!(anna.fail("room.leave", json!({"room": room})).await.code, 103);
}

#[tokio::test(flavor = "multi_thread")]
async fn presence_follows_the_connections() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.subscribe(&room).await;
    bob.subscribe(&room).await;
    let channel = json!({"channel": format!("room:{room}")});
    let presence = anna.command("presence", channel.clone()).await.unwrap();
    let clients = presence["presence"].as_object().unwrap();
    let names: Vec<_> = clients.values().map(|client| &client["conn_info"]["name"]).collect();
    assert!(names.contains(&&json!("anna")) && names.contains(&&json!("bob")), "{names:?}");
    assert!(clients.contains_key(bob.hello["client"].as_str().unwrap()));
    bob.vanish();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let stats = anna.command("presence_stats", channel.clone()).await.unwrap();
        if stats == json!({"num_clients": 1, "num_users": 1}) {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "still online: {stats}");
    }
    let page = anna.call("room.members", json!({"room": room})).await;
    let online = |name: &str| -> Value {
        let members = page["members"].as_array().unwrap();
        members.iter().find(|member| member["name"] == name).unwrap()["online"].clone()
    };
    assert_eq!((online("anna"), online("bob")), (json!(true), json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_hears_connections_come_and_go() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let mut cara = server.join("cara").await;
    let room = anna.create_room("Tea").await;
    for client in [&mut bob, &mut cara] {
        anna.invite(&room, client).await;
    }
    let channel = format!("room:{room}");
    // Cara does not ask, and so gets what is said and nothing else.
    cara.subscribe(&room).await;
    let asking = json!({"channel": channel, "join_leave": true});
    anna.command("subscribe", asking.clone()).await.expect("a member may subscribe");
    bob.command("subscribe", asking.clone()).await.expect("a member may subscribe");
    let expected = json!({
        "user": bob_account.id, "client": bob.hello["client"], "conn_info": {"name": "bob"},
    });
    assert_eq!(anna.push(&channel).await["join"]["info"], expected);
    bob.command("unsubscribe", json!({"channel": channel})).await.unwrap();
    assert_eq!(anna.push(&channel).await["leave"]["info"], expected);
    // Gone without a word, and removed: both leave.
    bob.command("subscribe", asking.clone()).await.expect("a member may subscribe");
    assert_eq!(anna.push(&channel).await["join"]["info"], expected);
    bob.vanish();
    assert_eq!(anna.push(&channel).await["leave"]["info"], expected);
    let mut bob = server.connect(&bob_account).await;
    bob.command("subscribe", asking).await.expect("a member may subscribe");
    assert_eq!(anna.push(&channel).await["join"]["info"]["client"], bob.hello["client"]);
    anna.call("room.kick", json!({"room": room, "user": bob_account.id})).await;
    assert_eq!(anna.push(&channel).await["leave"]["info"]["client"], bob.hello["client"]);
    assert_eq!(anna.push(&channel).await["pub"]["data"]["type"], "left");
    assert_eq!(cara.push(&channel).await["pub"]["data"]["type"], "left");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_paged_in_a_steady_order() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    for name in ["bob", "cara", "dora", "emil"] {
        let mut client = server.join(name).await;
        anna.invite(&room, &mut client).await;
    }
    let mut names = Vec::new();
    let mut request = json!({"room": room, "limit": 2});
    loop {
        let page = anna.call("room.members", request.clone()).await;
        let members = page["members"].as_array().unwrap();
        names.extend(members.iter().map(|member| member["name"].as_str().unwrap().to_owned()));
        if page["next"].is_null() {
            break;
        }
        request["after"] = page["next"].clone();
    }
    names.sort();
    assert_eq!(names, ["anna", "bob", "cara", "dora", "emil"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_found_and_profiles_change() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    server.sign_up("annabel").await;
    let found = anna.call("users.find", json!({"prefix": "ANN"})).await;
    assert_eq!(found["users"].as_array().unwrap().len(), 2);
    anna.call("profile.update", json!({"display_name": "Anna K."})).await;
    let told = anna.event(&format!("user:{}", account.id), "profile").await;
    assert_eq!(told["display_name"], "Anna K.");
    let seen = anna.call("user.get", json!({"user": account.id})).await;
    assert_eq!(seen["display_name"], "Anna K.");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_banned_and_a_member_however_the_two_race() {
    let server = Server::with("[limits]\nrooms_per_minute = 0\ninvites_per_minute = 0\n").await;
    let mut anna = server.join("anna").await;
    let account = server.sign_up("bob").await;
    let mut bob = server.connect(&account).await;
    for turn in 0..20 {
        let room = anna.create_room("Tea").await;
        let code = anna.call("invite.create", json!({"room": room})).await["code"].clone();
        let ban = json!({"room": room, "user": account.id, "on": true});
        let banning = anna.post("rpc", json!({"method": "room.ban", "data": ban})).await;
        let join = json!({"method": "invite.accept", "data": {"code": code}});
        let joining = bob.post("rpc", join).await;
        anna.reply(banning, "rpc").await.expect("the ban holds");
        let _ = bob.reply(joining, "rpc").await;
        let members = anna.call("room.members", json!({"room": room})).await;
        assert_eq!(members["members"].as_array().unwrap().len(), 1, "turn {turn}: {members}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_adds_others_and_nobody_adds_the_banned() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let mut cara = server.join("cara").await;
    let room = anna.create_room("Tea").await;
    let bob_here = json!({"room": room, "user": bob_account.id});
    assert_eq!(cara.fail("room.add", bob_here.clone()).await.code, 103);
    anna.call("room.add", bob_here.clone()).await;
    assert_eq!(bob.call("room.get", json!({"room": room})).await["role"], "member");
    // Who is in already stays as they are.
    anna.call("room.add", bob_here.clone()).await;
    anna.call("room.ban", json!({"room": room, "user": bob_account.id, "on": true})).await;
    let refused = anna.fail("room.add", bob_here.clone()).await;
    assert!(refused.message.contains("banned"), "{refused:?}");
    anna.call("room.ban", json!({"room": room, "user": bob_account.id, "on": false})).await;
    anna.call("room.add", bob_here).await;
    assert_eq!(bob.call("room.get", json!({"room": room})).await["members"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_found_by_any_word_of_their_name_without_accents() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let mut bob = server.join("bob").await;
    bob.call("profile.update", json!({"display_name": "Björn Ångström"})).await;
    anna.invite(&room, &mut bob).await;
    for prefix in ["bob", "BO", "björn", "bjorn", "angs", "Ång"] {
        let found = anna.call("users.find", json!({"prefix": prefix})).await;
        assert_eq!(found["users"][0]["name"], "bob", "{prefix}: {found}");
        let here = anna.call("room.members", json!({"room": room, "prefix": prefix})).await;
        assert_eq!(here["members"].as_array().unwrap().len(), 1, "{prefix}: {here}");
    }
    let found = anna.call("users.find", json!({"prefix": "jorn"})).await;
    assert_eq!(found["users"], json!([]), "a word begins so, or it does not");
}

//! Coming back: what was missed arrives once, in order, or the client is told to fetch history.

use serde_json::{Value, json};

use crate::support::Server;

fn offsets(result: &Value) -> Vec<u64> {
    let publications = result["publications"].as_array().cloned().unwrap_or_default();
    publications.iter().map(|event| event["offset"].as_u64().expect("an offset")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_recovers_exactly_what_it_missed() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let position = anna.subscribe(&room).await;
    let (offset, epoch) = (position["offset"].as_u64().unwrap(), position["epoch"].clone());
    assert_eq!(position["recoverable"], true);
    let account = server.sign_in("anna").await;
    for n in 1..=10 {
        anna.say(&room, &n.to_string(), "x").await;
    }
    let mut again = server.connect(&account).await;
    let result = again.recover(&room, offset + 3, epoch.as_str().unwrap()).await;
    assert_eq!((&result["recovered"], &result["was_recovering"]), (&json!(true), &json!(true)));
    assert_eq!(offsets(&result), (offset + 4..=offset + 10).collect::<Vec<_>>());
    anna.say(&room, "live", "live").await;
    let push = again.push(&format!("room:{room}")).await;
    assert_eq!(push["pub"]["offset"], offset + 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn recovery_goes_on_after_a_restart_and_beyond_memory() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    let position = anna.subscribe(&room).await;
    let (offset, epoch) = (position["offset"].as_u64().unwrap(), position["epoch"].clone());
    let mut ids = Vec::new();
    for n in 0..600 {
        let data = json!({"room": room, "key": n.to_string(), "body": "x"});
        ids.push(anna.post("rpc", json!({"method": "message.send", "data": data})).await);
    }
    for id in ids {
        anna.reply(id, "rpc").await.unwrap();
    }
    server.restart().await;
    let mut anna = server.connect(&account).await;
    let result = anna.recover(&room, offset, epoch.as_str().unwrap()).await;
    assert_eq!(result["recovered"], true);
    assert_eq!(offsets(&result), (offset + 1..=offset + 600).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_missed_too_much_or_comes_from_elsewhere_is_told_so() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let epoch = anna.subscribe(&room).await["epoch"].clone();
    let mut ids = Vec::new();
    for n in 0..1_100 {
        let data = json!({"room": room, "key": n.to_string(), "body": "x"});
        ids.push(anna.post("rpc", json!({"method": "message.send", "data": data})).await);
    }
    for id in ids {
        anna.reply(id, "rpc").await.unwrap();
    }
    for (offset, epoch) in [(1, epoch.as_str().unwrap()), (1_100, "another"), (9_999, "x")] {
        let account = server.sign_in("anna").await;
        let mut late = server.connect(&account).await;
        let result = late.recover(&room, offset, epoch).await;
        assert_eq!(result["recovered"], Value::Null, "{offset} {epoch}");
        assert_eq!(result["was_recovering"], true);
        assert_eq!(offsets(&result), Vec::<u64>::new());
        assert_eq!(result["offset"], 1_101);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribing_while_messages_flow_misses_and_doubles_nothing() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let epoch = anna.subscribe(&room).await["epoch"].clone();
    let account = server.sign_in("anna").await;
    let talking = tokio::spawn({
        let room = room.clone();
        async move {
            let mut ids = Vec::new();
            for n in 0..400 {
                let data = json!({"room": room, "key": n.to_string(), "body": "x"});
                ids.push(anna.post("rpc", json!({"method": "message.send", "data": data})).await);
            }
            for id in ids {
                anna.reply(id, "rpc").await.unwrap();
            }
        }
    });
    let mut seen = 1;
    while seen < 401 {
        let mut client = server.connect(&account).await;
        let result = client.recover(&room, seen, epoch.as_str().unwrap()).await;
        for offset in offsets(&result) {
            assert_eq!(offset, seen + 1);
            seen = offset;
        }
        // A few live ones, then the connection is gone again.
        for _ in 0..20.min(401 - seen) {
            let push = client.push(&format!("room:{room}")).await;
            assert_eq!(push["pub"]["offset"], seen + 1);
            seen += 1;
        }
        client.vanish();
    }
    talking.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_own_stream_is_recovered_in_the_connect_reply() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let channel = format!("user:{}", account.id);
    let anna = server.connect(&account).await;
    let position = anna.hello["subs"][&channel].clone();
    assert_eq!((&position["recoverable"], &position["offset"]), (&json!(true), &Value::Null));
    anna.vanish();
    let other = server.sign_in("anna").await;
    let mut elsewhere = server.connect(&other).await;
    elsewhere.create_room("Tea").await;
    elsewhere.create_room("Coffee").await;
    elsewhere.event(&channel, "room_added").await;
    elsewhere.event(&channel, "room_added").await;
    for _ in 0..2 {
        let mut anna = crate::support::Client::open(server.address()).await;
        let subs = json!({&channel: {"recover": true, "epoch": position["epoch"]}});
        anna.connect_with(json!({"token": account.token, "subs": subs})).await.unwrap();
        let stream = &anna.hello["subs"][&channel];
        assert_eq!((&stream["recovered"], offsets(stream)), (&json!(true), vec![1, 2]));
        assert_eq!(stream["publications"][1]["data"]["room"]["name"], "Coffee");
        // And again from the disk.
        server.restart().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reply_is_larger_than_half_the_outgoing_queue() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let epoch = anna.subscribe(&room).await["epoch"].clone();
    let body = "x".repeat(8_000);
    for n in 0..100 {
        anna.say(&room, &n.to_string(), &body).await;
    }
    let account = server.sign_in("anna").await;
    let mut late = server.connect(&account).await;
    let result = late.recover(&room, 1, epoch.as_str().unwrap()).await;
    assert_eq!((&result["recovered"], offsets(&result).len()), (&Value::Null, 0));
    let seqs = |page: &Value| -> Vec<u64> {
        let messages = page["messages"].as_array().unwrap();
        messages.iter().map(|message| message["seq"].as_u64().unwrap()).collect()
    };
    let latest = late.call("history.get", json!({"room": room, "limit": 100})).await;
    assert!(latest.to_string().len() <= 512 * 1024);
    assert!(seqs(&latest).ends_with(&[99, 100]) && seqs(&latest).len() > 50);
    let after = late.call("history.get", json!({"room": room, "after": 0, "limit": 100})).await;
    assert!(seqs(&after).starts_with(&[1, 2]) && seqs(&after).len() > 50);
    let around = late.call("history.get", json!({"room": room, "around": 50, "limit": 100})).await;
    assert!(seqs(&around).contains(&50) && around.to_string().len() <= 530 * 1024);
}

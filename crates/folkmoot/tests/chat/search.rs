//! Searching: everything one may read and nothing else, whatever happens to the index.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, Server};

/// The numbers of the hits, newest first; everything sent before must have been looked at.
async fn find(client: &mut Client, query: &str) -> Vec<u64> {
    seqs(&client.call("search", json!({"query": query})).await)
}

fn seqs(page: &Value) -> Vec<u64> {
    assert!(page["behind"].is_null(), "the index is behind: {page}");
    let hits = page["hits"].as_array().expect("a list");
    hits.iter().map(|hit| hit["seq"].as_u64().expect("a number")).collect()
}

/// The same of an answer that may be an error, or of an index that is behind.
fn seqs_of(page: Option<Value>) -> Vec<u64> {
    page.filter(|page| page["behind"].is_null()).map(|page| seqs(&page)).unwrap_or_default()
}

/// Asks until the index has looked at everything, as it may not have right after a start.
async fn find_all(client: &mut Client, query: &str) -> Vec<u64> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let page = client.call("search", json!({"query": query})).await;
        if page["behind"].is_null() {
            return seqs(&page);
        }
        assert!(tokio::time::Instant::now() < deadline, "it stays behind: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_just_sent_is_found_in_any_script_without_case_and_accents() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    for (key, body) in [
        ("1", "Das Café in der Straße hat geöffnet"),
        ("2", "明日は東京タワーに行きます"),
        ("3", "今天我们去北京大学"),
        ("4", "한국어를 배우고 있어요"),
        ("5", "พรุ่งนี้ไปกรุงเทพ"),
        ("6", "Завтра ЁЛКА"),
        ("7", "a long rope, and a longer one"),
    ] {
        anna.say(&room, key, body).await;
    }
    for (query, seq) in [
        ("cafe STRASSE", 1),
        ("東京", 2),
        ("タワー", 2),
        ("ﾀﾜｰ", 2),
        ("北京", 3),
        ("大", 3),
        ("한국", 4),
        ("กรุงเทพ", 5),
        ("елка", 6),
        ("\"long rope\"", 7),
        ("rop*", 7),
    ] {
        assert_eq!(find(&mut anna, query).await, [seq], "{query}");
    }
    for query in ["京東", "大北", "\"rope long\"", "ong", "cafe rope"] {
        assert_eq!(find(&mut anna, query).await, [0; 0], "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hits_show_where_the_words_stand() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let body = format!("{} 🎉 <b>東京タワー</b> & more {}", "x".repeat(300), "y ".repeat(300));
    anna.say(&room, "1", &body).await;
    let page = anna.call("search", json!({"query": "タワー more", "room": room})).await;
    let hit = &page["hits"][0];
    let excerpt: Vec<char> = hit["excerpt"].as_str().unwrap().chars().collect();
    assert!(excerpt.len() < 300 && excerpt[0] == '…', "{hit}");
    let marked = hit["highlights"].as_array().unwrap().iter().map(|range| {
        let at = |n: usize| usize::try_from(range[n].as_u64().unwrap()).unwrap();
        excerpt[at(0)..at(1)].iter().collect::<String>()
    });
    assert_eq!(marked.collect::<Vec<_>>(), ["タワー", "more"]);
    assert_eq!((&hit["room"], &hit["name"]), (&json!(room), &json!("anna")));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_found_by_their_names() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    let file = server.upload(&account, &room, "Tide-Table_2026.txt", b"four o'clock").await.json();
    let message = json!({"room": room, "key": "1", "body": "here", "attachments": [file["id"]]});
    anna.call("message.send", message).await;
    let page = anna.call("search", json!({"query": "here table"})).await;
    assert_eq!(page["hits"][0]["excerpt"], "here\nTide-Table_2026.txt");
    assert_eq!(find(&mut anna, "tide-table").await, [1]);
    anna.call("message.delete", json!({"room": room, "seq": 1})).await;
    assert_eq!(find(&mut anna, "tide-table").await, [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_replace_and_deletions_remove() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    anna.say(&room, "1", "the boat is red").await;
    anna.say(&room, "2", "the boat is gone").await;
    assert_eq!(find(&mut anna, "boat").await, [2, 1]);
    anna.call("message.edit", json!({"room": room, "seq": 1, "body": "the ship is blue"})).await;
    assert_eq!(find(&mut anna, "boat").await, [2]);
    assert_eq!(find(&mut anna, "ship").await, [1]);
    anna.call("message.delete", json!({"room": room, "seq": 2})).await;
    assert_eq!(find(&mut anna, "boat").await, [0; 0]);
    assert_eq!(find(&mut anna, "gone").await, [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_one_may_read_is_found() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let mut eve = server.join("eve").await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.say(&room, "1", "the secret of the room").await;
    let direct = anna.call("direct.open", json!({"user": bob_account.id})).await;
    let direct = direct["id"].as_str().unwrap().to_owned();
    anna.say(&direct, "1", "the secret between two").await;
    for client in [&mut anna, &mut bob] {
        assert_eq!(find(client, "secret").await.len(), 2);
    }
    assert_eq!(find(&mut eve, "secret").await, [0; 0]);
    assert_eq!(find(&mut eve, "from:anna").await, [0; 0]);
    let strangers = json!({"query": "secret", "room": room});
    assert_eq!(eve.fail("search", strangers.clone()).await.code, 103);
    assert_eq!(eve.fail("search", json!({"query": format!("in:{room}")})).await.code, 400);
    // The very next search after a kick finds nothing of the room.
    anna.call("room.kick", json!({"room": room, "user": bob_account.id})).await;
    let left = bob.call("search", json!({"query": "secret"})).await;
    assert_eq!(left["hits"].as_array().unwrap().len(), 1);
    assert_eq!(left["hits"][0]["room"], direct.as_str());
    assert_eq!(bob.fail("search", strangers).await.code, 103);
    // Who comes back may read what was said before, as in the history.
    anna.invite(&room, &mut bob).await;
    assert_eq!(find(&mut bob, "secret").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_narrow_by_author_room_and_day() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let bob_account = server.sign_up("bob").await;
    let mut bob = server.connect(&bob_account).await;
    let tea = anna.create_room("Tea Röom").await;
    let pub_room = anna.create_room("Pub").await;
    for room in [&tea, &pub_room] {
        anna.invite(room, &mut bob).await;
    }
    let direct = anna.call("direct.open", json!({"user": bob_account.id})).await;
    anna.say(&tea, "1", "word one").await;
    bob.say(&tea, "2", "word two").await;
    bob.say(&pub_room, "3", "word three").await;
    anna.say(direct["id"].as_str().unwrap(), "4", "word four").await;
    for (query, excerpts) in [
        ("word from:bob", vec!["word three", "word two"]),
        ("word from:me in:\"tea room\"", vec!["word one"]),
        ("in:pub", vec!["word three"]),
        ("in:@bob", vec!["word four"]),
        ("word after:2020-01-01 before:2999-12-31 in:Pub", vec!["word three"]),
        ("word before:2020-01-01", vec![]),
    ] {
        let page = anna.call("search", json!({"query": query})).await;
        let hits = page["hits"].as_array().unwrap();
        let found: Vec<_> = hits.iter().map(|hit| hit["excerpt"].as_str().unwrap()).collect();
        assert_eq!(found, excerpts, "{query}");
    }
    let here = anna.call("search", json!({"query": "word", "room": tea})).await;
    assert_eq!(seqs(&here), [2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_through_all_hits_once() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    for n in 1..=25 {
        anna.say(&room, &n.to_string(), &format!("tea number {n}")).await;
    }
    let mut found = Vec::new();
    let mut request = json!({"query": "tea", "limit": 7});
    loop {
        let page = anna.call("search", request.clone()).await;
        found.extend(seqs(&page));
        // What comes meanwhile is newer than any page to come.
        anna.say(&room, &format!("new {}", found.len()), "more tea").await;
        if page["next"].is_null() {
            break;
        }
        request["cursor"] = page["next"].clone();
    }
    assert_eq!(found, (1..=25).rev().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_cannot_be_run_is_told_why() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    for (query, words) in [
        ("\"open", "quotation mark"),
        ("!?", "nothing to search for"),
        ("from:nobody tea", "nobody"),
        ("in:nowhere", "nowhere"),
        ("before:tomorrow", "tomorrow"),
        ("a*", "`*`"),
    ] {
        let refused = anna.fail("search", json!({"query": query})).await;
        assert_eq!(refused.code, 400, "{query}");
        assert!(
            refused.message.contains("query") && refused.message.contains(words),
            "{refused:?}"
        );
    }
    let refused = anna.fail("search", json!({"query": "tea", "cursor": "x"})).await;
    assert!(refused.message.contains("cursor"), "{refused:?}");
    let long = "x".repeat(257);
    assert_eq!(anna.fail("search", json!({"query": long})).await.code, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_lost_comes_back_whole() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    for n in 1..=40 {
        anna.say(&room, &n.to_string(), &format!("tea number {n}")).await;
    }
    anna.call("message.delete", json!({"room": room, "seq": 3})).await;
    anna.call("message.edit", json!({"room": room, "seq": 4, "body": "coffee"})).await;
    let before = find(&mut anna, "tea").await;
    assert_eq!(before.len(), 38);
    server.stop().await;
    std::fs::remove_dir_all(server.data().join("search")).expect("it is there");
    server.restart().await;
    let mut anna = server.connect(&account).await;
    assert_eq!(find_all(&mut anna, "tea").await, before);
    assert_eq!(find_all(&mut anna, "coffee").await, [4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_found_spoilt_after_the_start_is_made_anew_by_itself() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    for n in 1..=40 {
        anna.say(&room, &n.to_string(), &format!("tea number {n}")).await;
    }
    let before = find(&mut anna, "tea").await;
    assert_eq!(before.len(), 40);
    server.stop().await;
    let files = std::fs::read_dir(server.data().join("search")).expect("it is there");
    let files = files.map(|file| file.expect("it is listed").path());
    for file in files.filter(|file| file.extension().is_some_and(|it| it == "fast")) {
        let mut bytes = std::fs::read(&file).expect("it can be read");
        bytes[2..12].iter_mut().for_each(|byte| *byte ^= 0x15);
        std::fs::write(&file, bytes).expect("it can be written");
    }
    server.restart().await;
    let mut anna = server.connect(&account).await;
    let whole = async {
        while seqs_of(anna.rpc("search", json!({"query": "tea"})).await.ok()) != before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), whole).await.expect("it is never made anew");
    assert_eq!(find_all(&mut anna, "tea").await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_search_waits_for_an_index_that_is_made_anew() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    // More than the index reads at once.
    for n in 1..=1_050 {
        anna.say(&room, &n.to_string(), &format!("cup {n}")).await;
    }
    server.stop().await;
    std::fs::remove_dir_all(server.data().join("search")).expect("it is there");
    server.restart().await;
    let mut anna = server.connect(&account).await;
    assert_eq!(find(&mut anna, "1050").await, [1_050]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_cannot_be_written_hinders_nobody() {
    let mut server = Server::start().await;
    let account = server.sign_up("anna").await;
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    anna.say(&room, "1", "tea before").await;
    assert_eq!(find(&mut anna, "tea").await, [1]);
    std::fs::remove_dir_all(server.data().join("search")).expect("it is there");
    assert_eq!(anna.say(&room, "2", "tea after").await, 2);
    let page = anna.call("search", json!({"query": "tea"})).await;
    assert_eq!(page["hits"][0]["seq"], 1);
    assert!(page["behind"].as_u64() > Some(0), "{page}");
    assert_eq!(anna.say(&room, "3", "more tea").await, 3);
    server.restart().await;
    let mut anna = server.connect(&account).await;
    assert_eq!(find_all(&mut anna, "tea").await, [3, 2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_search_says_so() {
    let server = Server::with("[search]\nenabled = false\n").await;
    let mut anna = server.join("anna").await;
    let refused = anna.fail("search", json!({"query": "tea"})).await;
    assert_eq!(refused.code, 108);
    assert!(!server.data().join("search").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lag_of_the_index_is_on_the_metrics_page() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    anna.say(&room, "1", "tea").await;
    assert_eq!(find(&mut anna, "tea").await, [1]);
    // Read cursors are saved a moment later, and are records too.
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let page = server.http("GET /metrics", None, "").await.body;
        let value =
            page.lines().find_map(|line| line.strip_prefix("folkmoot_search_behind_records "));
        match value.expect("it is there") {
            "0" => break,
            behind => assert!(tokio::time::Instant::now() < deadline, "{behind} behind"),
        }
    }
}

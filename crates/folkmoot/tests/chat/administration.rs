//! What administrators can do, and that nobody else can.

use serde_json::{Value, json};

use crate::support::{Account, Answer, Server};

async fn administered() -> (Server, Account) {
    let server = Server::start().await;
    let anna = Account::of(&server.set_up("anna").await);
    (server, anna)
}

async fn patch(server: &Server, by: &Account, user: &Account, change: Value) -> Answer {
    let line = format!("PATCH /api/v1/admin/users/{}", user.id);
    server.http(&line, Some(&by.token), &change.to_string()).await
}

async fn get(server: &Server, by: &Account, path: &str) -> Value {
    let answer = server.http(&format!("GET /api/v1/admin/{path}"), Some(&by.token), "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_administrators_reach_the_administration() {
    let (server, anna) = administered().await;
    let bob = server.sign_up("bob").await;
    let user = format!("/api/v1/admin/users/{}", bob.id);
    for (line, body) in [
        ("GET /api/v1/admin/users".to_owned(), ""),
        ("GET /api/v1/admin/rooms".to_owned(), ""),
        ("GET /api/v1/admin/storage".to_owned(), ""),
        ("GET /api/v1/admin/live".to_owned(), ""),
        ("GET /api/v1/admin/moderation".to_owned(), ""),
        (format!("PATCH {user}"), "{\"disabled\":false}"),
        (format!("POST {user}/password-reset"), ""),
        (format!("DELETE {user}/devices"), ""),
    ] {
        assert_eq!(server.http(&line, None, body).await.status, 401, "{line}");
        let refused = server.http(&line, Some(&bob.token), body).await;
        assert_eq!(refused.status, 403, "{line}");
        assert!(refused.json()["detail"].as_str().unwrap().contains("administrators"));
        let allowed = server.http(&line, Some(&anna.token), body).await;
        assert!((200..300).contains(&allowed.status), "{line}: {allowed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_administrator_stays() {
    let (server, anna) = administered().await;
    for change in [json!({"administrator": false}), json!({"disabled": true})] {
        let refused = patch(&server, &anna, &anna, change).await;
        assert_eq!(refused.status, 403);
        assert!(refused.json()["detail"].as_str().unwrap().contains("last administrator"));
    }
    let bob = server.sign_up("bob").await;
    let mut client = server.connect(&bob).await;
    let made = patch(&server, &anna, &bob, json!({"administrator": true})).await;
    assert_eq!(made.json()["administrator"], true);
    // The client is told to connect again, and learns it then.
    assert_eq!(client.closed().await, 3011);
    assert_eq!(server.connect(&bob).await.hello["data"]["administrator"], true);
    // Both step down at once: one is the last.
    let down = json!({"administrator": false});
    let (one, other) = tokio::join!(
        patch(&server, &anna, &anna, down.clone()),
        patch(&server, &bob, &bob, down.clone())
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 403]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_user_is_out_at_once_and_until_enabled() {
    let (mut server, anna) = administered().await;
    let bob = server.sign_up("bob").await;
    let mut client = server.connect(&bob).await;
    let disabled = patch(&server, &anna, &bob, json!({"disabled": true})).await.json();
    assert!(disabled["disabled_at"].is_u64(), "{disabled}");
    assert_eq!(client.closed().await, 3500);
    server.restart().await;
    assert_eq!(server.http("GET /api/v1/me", Some(&bob.token), "").await.status, 401);
    let body = json!({"name": "bob", "password": "correct horse"}).to_string();
    let refused = server.http("POST /api/v1/sessions", None, &body).await;
    assert_eq!(refused.status, 403);
    assert!(refused.json()["detail"].as_str().unwrap().contains("disabled"));
    let refused = patch(&server, &anna, &bob, json!({"administrator": true})).await;
    assert_eq!(refused.status, 403);
    let enabled = patch(&server, &anna, &bob, json!({"disabled": false})).await.json();
    assert!(enabled["disabled_at"].is_null(), "{enabled}");
    server.sign_in("bob").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_devices_out_ends_all_connections_of_the_user() {
    let (server, anna) = administered().await;
    let bob = server.sign_up("bob").await;
    let phone = server.sign_in("bob").await;
    let (mut first, mut second) = (server.connect(&bob).await, server.connect(&phone).await);
    let line = format!("DELETE /api/v1/admin/users/{}/devices", bob.id);
    assert_eq!(server.http(&line, Some(&anna.token), "").await.status, 204);
    assert_eq!((first.closed().await, second.closed().await), (3500, 3500));
    server.sign_in("bob").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_link_works_once_and_signs_everything_else_out() {
    let (server, anna) = administered().await;
    let bob = server.sign_up("bob").await;
    let mut client = server.connect(&bob).await;
    let line = format!("POST /api/v1/admin/users/{}/password-reset", bob.id);
    let old = server.http(&line, Some(&anna.token), "").await.json()["token"].clone();
    let link = server.http(&line, Some(&anna.token), "").await.json();
    let choose = |token: &Value| json!({"token": token, "password": "battery staple"}).to_string();
    // A newer link ends the older one.
    let spent = server.http("POST /api/v1/password-resets", None, &choose(&old)).await;
    assert_eq!(spent.status, 404);
    let chosen = server.http("POST /api/v1/password-resets", None, &choose(&link["token"])).await;
    let again = Account::of(&chosen);
    assert_eq!(client.closed().await, 3500);
    assert_eq!(server.http("GET /api/v1/me", Some(&bob.token), "").await.status, 401);
    assert_eq!(server.http("GET /api/v1/me", Some(&again.token), "").await.status, 200);
    let spent = server.http("POST /api/v1/password-resets", None, &choose(&link["token"])).await;
    assert_eq!(spent.status, 404);
    let body = json!({"name": "bob", "password": "correct horse"}).to_string();
    assert_eq!(server.http("POST /api/v1/sessions", None, &body).await.status, 401);
    let body = json!({"name": "bob", "password": "battery staple"}).to_string();
    assert_eq!(server.http("POST /api/v1/sessions", None, &body).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_administers_no_more_has_no_reset_link_that_works() {
    let (server, anna) = administered().await;
    let bob = server.sign_up("bob").await;
    for (name, out) in
        [("eve", json!({"administrator": false})), ("kim", json!({"disabled": true}))]
    {
        let admin = server.sign_up(name).await;
        let user = format!("PATCH /api/v1/admin/users/{}", admin.id);
        let made = json!({"administrator": true}).to_string();
        assert_eq!(server.http(&user, Some(&anna.token), &made).await.status, 200);
        let line = format!("POST /api/v1/admin/users/{}/password-reset", bob.id);
        let link = server.http(&line, Some(&admin.token), "").await.json();
        assert_eq!(server.http(&user, Some(&anna.token), &out.to_string()).await.status, 200);
        let choose = json!({"token": link["token"], "password": "battery staple"}).to_string();
        let chosen = server.http("POST /api/v1/password-resets", None, &choose).await;
        assert_eq!(chosen.status, 404, "{name}");
    }
    assert_eq!(server.http("GET /api/v1/me", Some(&bob.token), "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_listed_by_page_and_found_by_either_name() {
    let (server, anna) = administered().await;
    for name in ["bob", "cara", "dora_1", "dora21"] {
        server.sign_up(name).await;
    }
    let mut names = Vec::new();
    let mut after = String::new();
    loop {
        let page = get(&server, &anna, &format!("users?limit=2&after={after}")).await;
        let users = page["users"].as_array().unwrap();
        assert!(users.len() <= 2);
        names.extend(users.iter().map(|user| user["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => break,
        }
    }
    assert_eq!(names, ["anna", "bob", "cara", "dora21", "dora_1"]);
    let found = get(&server, &anna, "users?search=DORA_").await;
    assert_eq!(found["users"].as_array().unwrap().len(), 1, "an underscore is an underscore");
    assert_eq!(found["users"][0]["devices"], 1);
    let refused = server.http("GET /api/v1/admin/users?limit=101", Some(&anna.token), "").await;
    assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("limit")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rooms_are_listed_with_their_size_and_conversations_are_not() {
    let (mut server, anna) = administered().await;
    let mut client = server.connect(&anna).await;
    let bob = server.sign_up("bob").await;
    let tea = client.create_room("Tea").await;
    client.say(&tea, "1", "häß").await;
    client.say(&tea, "2", "hello").await;
    client.say(&tea, "3", "gone").await;
    client.call("message.edit", json!({"room": tea, "seq": 2, "body": "hello!"})).await;
    client.call("message.delete", json!({"room": tea, "seq": 3})).await;
    client.create_room("Coffee").await;
    let direct = client.call("direct.open", json!({"user": bob.id})).await;
    client.say(direct["id"].as_str().unwrap(), "1", "psst").await;
    server.restart().await;
    let page = get(&server, &anna, "rooms?limit=1").await;
    assert_eq!(
        (&page["rooms"][0]["name"], page["rooms"][0]["last_at"].is_null()),
        (&json!("Coffee"), true)
    );
    let next = page["next"].as_str().expect("there is one more");
    let page = get(&server, &anna, &format!("rooms?limit=1&after={next}")).await;
    let room = &page["rooms"][0];
    assert_eq!(
        (&room["name"], &room["messages"], &room["bytes"]),
        (&json!("Tea"), &json!(3), &json!(11))
    );
    assert!(page["next"].is_null(), "{page}");
    let storage = get(&server, &anna, "storage").await;
    assert_eq!(
        (&storage["rooms"], &storage["directs"], &storage["users"]),
        (&json!(2), &json!(1), &json!(2))
    );
    assert_eq!((&storage["messages"], &storage["body_bytes"]), (&json!(4), &json!(15)));
    let parts = storage["parts"].as_array().unwrap();
    for name in ["log", "database"] {
        let part = parts.iter().find(|part| part["name"] == name);
        assert!(part.is_some_and(|part| part["bytes"].as_u64() > Some(0)), "{storage}");
    }
    assert!(storage["free_bytes"].as_u64() > Some(0) && storage["segments"].as_u64() > Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn live_counters_count_connections_messages_appends_and_actors() {
    let (server, anna) = administered().await;
    let mut client = server.connect(&anna).await;
    let room = client.create_room("Tea").await;
    for number in 0..5 {
        client.say(&room, &number.to_string(), "tick").await;
    }
    let live = get(&server, &anna, "live").await;
    assert_eq!((&live["connections"], &live["messages_total"]), (&json!(1), &json!(5)));
    assert!(live["appends_total"].as_u64() >= Some(5), "{live}");
    let actors = live["actors"].as_array().unwrap();
    let count = |name: &str| {
        actors.iter().find(|actor| actor["name"] == name).map(|actor| actor["live"].clone())
    };
    assert_eq!(count("folkmoot.room"), Some(json!(1)), "{live}");
    assert_eq!(count("folkmoot.session"), Some(json!(1)), "{live}");
    let metrics = server.http("GET /metrics", None, "").await.body;
    assert!(metrics.contains("\nfolkmoot_messages_total 5\n"), "{metrics}");
    let total =
        format!("\nfolkmoot_store_append_seconds_bucket{{le=\"+Inf\"}} {}", live["appends_total"]);
    assert!(metrics.contains(&total), "{metrics}");
}

//! Who may sign up, and who comes from where: registration, passwords of one's own, proxies.

use serde_json::{Value, json};

use crate::support::{Account, Answer, Server, exchange};

async fn sign_up(server: &Server, name: &str, invite: Option<&Value>) -> Answer {
    let body = match invite {
        Some(code) => json!({"name": name, "password": "correct horse", "invite": code}),
        None => json!({"name": name, "password": "correct horse"}),
    };
    server.http("POST /api/v1/accounts", None, &body.to_string()).await
}

async fn registration(server: &Server) -> Value {
    server.http("GET /api/v1/setup", None, "").await.json()["registration"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_server_takes_no_accounts_but_its_first() {
    let server = Server::with("registration = \"closed\"\n").await;
    assert_eq!(registration(&server).await, "closed");
    let refused = sign_up(&server, "eve", None).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let anna = Account::of(&server.set_up("anna").await);
    let settings = server.http("GET /api/v1/admin/settings", Some(&anna.token), "").await.json();
    let expected = json!({"registration": "closed", "registration_fixed": true, "branding": {}});
    assert_eq!(settings, expected);
    let open = "{\"registration\":\"open\"}";
    let refused = server.http("PATCH /api/v1/admin/settings", Some(&anna.token), open).await;
    assert_eq!(refused.status, 403, "the operator has decided");
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_close_registration_and_it_stays_closed() {
    let mut server = Server::start().await;
    let anna = Account::of(&server.set_up("anna").await);
    assert_eq!(registration(&server).await, "open");
    let closed = "{\"registration\":\"closed\"}";
    let bob = server.sign_up("bob").await;
    let refused = server.http("PATCH /api/v1/admin/settings", Some(&bob.token), closed).await;
    assert_eq!(refused.status, 403);
    let done = server.http("PATCH /api/v1/admin/settings", Some(&anna.token), closed).await;
    assert_eq!(done.json()["registration"], "closed");
    assert_eq!(sign_up(&server, "eve", None).await.status, 403);
    server.restart().await;
    assert_eq!(sign_up(&server, "eve", None).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_the_invited_sign_up_an_invite_makes_one_account_and_member() {
    let server = Server::with("registration = \"invite\"\n").await;
    let account = Account::of(&server.set_up("anna").await);
    let mut anna = server.connect(&account).await;
    let room = anna.create_room("Tea").await;
    let invite = anna.call("invite.create", json!({"room": room, "uses_max": 1})).await;
    let refused = sign_up(&server, "bob", None).await;
    assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("invite")));
    assert_eq!(sign_up(&server, "bob", Some(&json!("nothing"))).await.status, 404);
    // A name that is taken uses nothing up.
    assert_eq!(sign_up(&server, "anna", Some(&invite["code"])).await.status, 400);
    let bob = Account::of(&sign_up(&server, "bob", Some(&invite["code"])).await);
    assert_eq!(sign_up(&server, "eve", Some(&invite["code"])).await.status, 403);
    let mut bob = server.connect(&bob).await;
    assert_eq!(bob.call("room.get", json!({"room": room})).await["members"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_changed_by_who_knows_it_and_the_others_are_signed_out() {
    let server = Server::start().await;
    let account = server.sign_up("anna").await;
    let other = server.sign_in("anna").await;
    let mut connected = server.connect(&other).await;
    let change = |old: &str, new: &str, others: bool| {
        json!({"old": old, "new": new, "sign_out_others": others}).to_string()
    };
    let route = "POST /api/v1/me/password";
    let wrong = change("wrong password", "battery staple", true);
    assert_eq!(server.http(route, Some(&account.token), &wrong).await.status, 401);
    let kept = change("correct horse", "battery staple", false);
    assert_eq!(server.http(route, Some(&account.token), &kept).await.status, 204);
    connected.call("rooms.list", json!({})).await;
    let all = change("battery staple", "third password", true);
    assert_eq!(server.http(route, Some(&account.token), &all).await.status, 204);
    assert_eq!(connected.closed().await, 3500);
    assert_eq!(server.http("GET /api/v1/me", Some(&other.token), "").await.status, 401);
    assert_eq!(server.http("GET /api/v1/me", Some(&account.token), "").await.status, 200);
    let old = json!({"name": "anna", "password": "correct horse"}).to_string();
    assert_eq!(server.http("POST /api/v1/sessions", None, &old).await.status, 401);
    let new = json!({"name": "anna", "password": "third password"}).to_string();
    assert_eq!(server.http("POST /api/v1/sessions", None, &new).await.status, 201);
}

/// One attempt to sign in that a proxy hands on for somebody.
async fn attempt(server: &Server, client: &str, name: &str, password: &str) -> u16 {
    let body = json!({"name": name, "password": password}).to_string();
    let header = format!("X-Forwarded-For: {client}");
    let line = "POST /api/v1/sessions";
    exchange(server.address(), line, None, &[&header], body.as_bytes()).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_behind_a_proxy_lock_out_only_who_guesses() {
    let server = Server::with("trusted_proxies = [\"127.0.0.1\"]\n").await;
    server.sign_up("anna").await;
    let mut refused = 0;
    for n in 0..12 {
        // One customer has many addresses.
        let address = format!("2001:db8:1:2::{n}");
        refused += u32::from(attempt(&server, &address, &format!("name{n}"), "guess").await == 429);
    }
    assert_eq!(refused, 2);
    assert_eq!(attempt(&server, "2001:db8:1:3::1", "anna", "correct horse").await, 201);
    assert_eq!(attempt(&server, "2001:db8:1:2::1", "anna", "correct horse").await, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_at_a_name_lock_out_only_who_guesses() {
    let server = Server::with("trusted_proxies = [\"127.0.0.1\"]\n").await;
    let anna = server.sign_up("anna").await;
    let mut refused = 0;
    for _ in 0..12 {
        refused += u32::from(attempt(&server, "192.0.2.7", "anna", "guess").await == 429);
    }
    assert_eq!(refused, 2);
    assert_eq!(attempt(&server, "192.0.2.8", "anna", "correct horse").await, 201);
    let change = json!({"old": "correct horse", "new": "battery staple", "sign_out_others": false});
    let change = change.to_string();
    let changed = server.http("POST /api/v1/me/password", Some(&anna.token), &change).await;
    assert_eq!(changed.status, 204, "{changed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_from_the_same_address_lock_out_no_neighbour_who_is_at_home_there() {
    let server = Server::start().await;
    for name in ["anna", "bob"] {
        server.sign_up(name).await;
    }
    let guess = async |name: &str| attempt(&server, "192.0.2.1", name, "guess").await;
    let mut refused = 0;
    for n in 0..12 {
        refused += u32::from(guess(&format!("name{n}")).await == 429);
    }
    assert_eq!(refused, 2);
    for _ in 0..12 {
        refused += u32::from(guess("bob").await == 429);
    }
    assert_eq!(refused, 4, "bob's own is guessed at, which has an end too");
    assert_eq!(attempt(&server, "192.0.2.1", "anna", "correct horse").await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn right_passwords_count_towards_no_limit_and_forged_headers_help_nobody() {
    let server = Server::start().await;
    server.sign_up("anna").await;
    for _ in 0..12 {
        assert_eq!(attempt(&server, "192.0.2.1", "anna", "correct horse").await, 201);
    }
    let mut refused = 0;
    for n in 0..12 {
        let address = format!("192.0.2.{n}");
        refused += u32::from(attempt(&server, &address, &format!("name{n}"), "guess").await == 429);
    }
    assert_eq!(refused, 2, "the proxy is nobody that the server knows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_unseen_for_long_is_signed_out() {
    let mut server = Server::with("session_days = 30\n").await;
    let anna = server.sign_up("anna").await;
    for (days, status) in [(29_i64, 200), (31, 401)] {
        server.stop().await;
        let database = server.data().join("folkmoot.sqlite");
        let ago = days * 24 * 60 * 60 * 1_000;
        let sql = "UPDATE devices SET seen_at = unixepoch() * 1000 - ?1";
        let connection = rusqlite::Connection::open(database).expect("the store is closed");
        connection.execute(sql, [ago]).expect("devices are there");
        drop(connection);
        server.restart().await;
        let answer = server.http("GET /api/v1/me", Some(&anna.token), "").await;
        assert_eq!(answer.status, status, "{days} days");
    }
}

//! The OpenAPI document says what the routes do: each one exists, and answers have the fields that
//! their schemas list.

use serde_json::{Value, json};

use crate::support::{Account, Answer, Client, Server};

/// The smallest GIF.
const ONE_PIXEL: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// Checks that `value` has what `schema` requires and nothing that it does not know.
fn conforms(document: &Value, schema: &Value, value: &Value, path: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().expect("a reference names a schema");
        return conforms(document, &document["components"]["schemas"][name], value, path);
    }
    let is_of_type = match schema["type"].as_str().expect("a schema has a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        _ => value.is_string(),
    };
    assert!(is_of_type, "{path}: {value} is not {}", schema["type"]);
    for item in value.as_array().into_iter().flatten() {
        conforms(document, &schema["items"], item, path);
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        let name = required.as_str().expect("a name");
        assert!(value.get(name).is_some(), "{path}: {name} is missing in {value}");
    }
    for (name, part) in value.as_object().into_iter().flatten() {
        let known = &schema["properties"][name];
        assert!(!known.is_null(), "{path}: {name} is not described");
        conforms(document, known, part, &format!("{path}.{name}"));
    }
}

/// A room with a message of every kind.
async fn room_with_everything(client: &mut Client) -> String {
    let room = client.create_room("Tea").await;
    client.say(&room, "1", "hello").await;
    client.say(&room, "2", "hello again").await;
    let reply = json!({"room": room, "key": "3", "body": "yes", "reply_to": 1});
    client.call("message.send", reply).await;
    client.call("message.react", json!({"room": room, "seq": 1, "emoji": "👍", "on": true})).await;
    client.call("message.edit", json!({"room": room, "seq": 2, "body": "edited"})).await;
    client.call("message.delete", json!({"room": room, "seq": 2})).await;
    room
}

/// A message by post.
const MESSAGE: &str = r#"{"key": "4", "body": "posted"}"#;

/// A change of one's own password.
const PASSWORD: &str =
    r#"{"old": "correct horse", "new": "battery staple", "sign_out_others": false}"#;

/// The body that chooses a new password for a user, by a fresh link.
async fn new_password(server: &Server, by: &Account, user: &str) -> String {
    let link = server.http(&format!("POST {user}/password-reset"), Some(&by.token), "").await;
    json!({"token": link.json()["token"], "password": "battery staple"}).to_string()
}

/// The id of a picture that somebody shows now; its body is no JSON, so it is sent apart.
async fn shown_picture(server: &Server, document: &Value, by: &Account) -> String {
    let shown = server.exchange("PUT /api/v1/me/picture", by, &[], ONE_PIXEL).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let user_view = &document["components"]["schemas"]["UserView"];
    conforms(document, user_view, &shown.json(), "/api/v1/me/picture");
    shown.json()["picture"].as_str().expect("a picture").to_owned()
}

/// The id of a logo that the server shows now, sent like a picture.
async fn shown_logo(server: &Server, document: &Value, by: &Account) -> String {
    let shown = server.exchange("PUT /api/v1/admin/logo", by, &[], ONE_PIXEL).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let settings = &document["components"]["schemas"]["AdminSettings"];
    conforms(document, settings, &shown.json(), "/api/v1/admin/logo");
    shown.json()["branding"]["logo"].as_str().expect("a logo").to_owned()
}

/// The routes of a file that comes in pieces, for one that has begun.
async fn in_pieces(
    server: &Server,
    by: &Account,
    room: &str,
) -> Vec<(&'static str, &'static str, String, &'static str)> {
    let begin = format!("/api/v1/rooms/{room}/uploads?name=a.txt&size=6");
    let begun = server.http(&format!("POST {begin}"), Some(&by.token), "").await;
    let coming = format!("/api/v1/uploads/{}", begun.json()["id"].as_str().expect("an id"));
    vec![
        ("post", "/api/v1/rooms/{id}/uploads", begin, ""),
        ("get", "/api/v1/uploads/{id}", coming.clone(), ""),
        ("patch", "/api/v1/uploads/{id}", format!("{coming}?offset=0"), "a file"),
        ("delete", "/api/v1/uploads/{id}", coming, ""),
    ]
}

/// The routes of the administration.
fn administration(
    user: &str,
    room: &str,
    logo: &str,
) -> Vec<(&'static str, &'static str, String, &'static str)> {
    let (user, room) = (user.to_owned(), format!("/api/v1/admin/rooms/{room}"));
    vec![
        ("get", "/api/v1/admin/users", "/api/v1/admin/users?limit=1".to_owned(), ""),
        ("patch", "/api/v1/admin/users/{id}", user.clone(), "{\"administrator\":true}"),
        ("post", "/api/v1/admin/users/{id}/password-reset", format!("{user}/password-reset"), ""),
        ("delete", "/api/v1/admin/users/{id}/devices", format!("{user}/devices"), ""),
        ("get", "/api/v1/admin/rooms", "/api/v1/admin/rooms?limit=1".to_owned(), ""),
        ("patch", "/api/v1/admin/rooms/{id}", room.clone(), "{\"archived\":true}"),
        (
            "put",
            "/api/v1/admin/rooms/{id}/retention",
            format!("{room}/retention"),
            "{\"messages\":5}",
        ),
        ("delete", "/api/v1/admin/rooms/{id}/retention", format!("{room}/retention"), ""),
        ("delete", "/api/v1/admin/rooms/{id}", room, ""),
        ("get", "/api/v1/admin/settings", "/api/v1/admin/settings".to_owned(), ""),
        (
            "patch",
            "/api/v1/admin/settings",
            "/api/v1/admin/settings".to_owned(),
            "{\"registration\":\"invite\"}",
        ),
        ("get", "/api/v1/admin/retention", "/api/v1/admin/retention".to_owned(), ""),
        (
            "put",
            "/api/v1/admin/retention",
            "/api/v1/admin/retention".to_owned(),
            "{\"days\":30,\"messages\":1000}",
        ),
        ("get", "/api/v1/logo/{id}", format!("/api/v1/logo/{logo}"), ""),
        ("delete", "/api/v1/admin/logo", "/api/v1/admin/logo".to_owned(), ""),
        ("get", "/api/v1/admin/storage", "/api/v1/admin/storage".to_owned(), ""),
        ("get", "/api/v1/admin/live", "/api/v1/admin/live".to_owned(), ""),
        (
            "post",
            "/api/v1/admin/users/{id}/deletion",
            format!("{user}/deletion"),
            "{\"messages\":\"keep\"}",
        ),
        ("get", "/api/v1/admin/moderation", "/api/v1/admin/moderation?limit=1".to_owned(), ""),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_route_answers_as_documented() {
    let server = Server::start().await;
    let document = server.http("GET /api/v1/openapi.json", None, "").await.json();
    let made = server.set_up("anna").await;
    answers_as_documented(&document, "post", "/api/v1/setup", &made);
    let anna = Account::of(&made);
    let bob = server.sign_up("bob").await;
    let mut client = server.connect(&anna).await;
    let room = room_with_everything(&mut client).await;
    let invite = client.call("invite.create", json!({"room": room})).await;
    let code = invite["code"].as_str().unwrap();
    let file = server.upload(&anna, &room, "a.gif", ONE_PIXEL).await.json();
    let file = file["id"].as_str().unwrap().to_owned();
    let files = json!({"room": room, "key": "5", "body": "", "attachments": [file]});
    client.call("message.send", files).await;
    let picture = shown_picture(&server, &document, &anna).await;
    let logo = shown_logo(&server, &document, &anna).await;
    let in_pieces = in_pieces(&server, &anna, &room).await;
    let doomed = [client.create_room("Gone").await, client.create_room("Gone too").await];
    let messages = format!("/api/v1/rooms/{room}/messages");
    let account = json!({"name": "cara", "password": "correct horse"}).to_string();
    let user = format!("/api/v1/admin/users/{}", bob.id);
    let reset = new_password(&server, &anna, &user).await;
    let thumbnail = format!("/api/v1/attachments/{file}/thumbnail");
    let mut calls = vec![
        ("post", "/api/v1/accounts", "/api/v1/accounts".to_owned(), account.as_str()),
        ("post", "/api/v1/sessions", "/api/v1/sessions".to_owned(), &account),
        ("get", "/api/v1/me", "/api/v1/me".to_owned(), ""),
        ("get", "/api/v1/rooms", "/api/v1/rooms".to_owned(), ""),
        ("post", "/api/v1/rooms", "/api/v1/rooms".to_owned(), "{\"name\":\"Coffee\"}"),
        ("get", "/api/v1/rooms/{id}", format!("/api/v1/rooms/{room}"), ""),
        ("get", "/api/v1/rooms/{id}/messages", messages.clone(), ""),
        ("post", "/api/v1/rooms/{id}/messages", messages, MESSAGE),
        (
            "post",
            "/api/v1/rooms/{id}/attachments",
            format!("/api/v1/rooms/{room}/attachments?name=a.txt"),
            "a file",
        ),
        ("get", "/api/v1/attachments/{id}", format!("/api/v1/attachments/{file}"), ""),
        ("get", "/api/v1/attachments/{id}/thumbnail", thumbnail, ""),
        ("get", "/api/v1/limits", "/api/v1/limits".to_owned(), ""),
        ("get", "/api/v1/invites/{code}", format!("/api/v1/invites/{code}"), ""),
        ("get", "/api/v1/search", "/api/v1/search?query=hello&limit=1".to_owned(), ""),
        ("get", "/api/v1/openapi.json", "/api/v1/openapi.json".to_owned(), ""),
        ("get", "/healthz", "/healthz".to_owned(), ""),
        ("get", "/readyz", "/readyz".to_owned(), ""),
        ("get", "/metrics", "/metrics".to_owned(), ""),
        ("get", "/api/v1/setup", "/api/v1/setup".to_owned(), ""),
        ("post", "/api/v1/password-resets", "/api/v1/password-resets".to_owned(), &reset),
        ("post", "/api/v1/me/password", "/api/v1/me/password".to_owned(), PASSWORD),
        ("get", "/api/v1/pictures/{id}", format!("/api/v1/pictures/{picture}"), ""),
        ("delete", "/api/v1/me/picture", "/api/v1/me/picture".to_owned(), ""),
        ("delete", "/api/v1/rooms/{id}", format!("/api/v1/rooms/{}", doomed[1]), ""),
        ("delete", "/api/v1/sessions/current", "/api/v1/sessions/current".to_owned(), ""),
    ];
    // Signing out is the last of all.
    let last = calls.len() - 1;
    calls.splice(last..last, administration(&user, &doomed[0], &logo));
    calls.splice(0..0, in_pieces);
    let documented = documented(&document);
    // Setting up was the first call of all, a picture and a logo have been sent; deleting oneself
    // leaves nobody to call anything.
    assert_eq!(documented, calls.len() + 4, "a documented route is not called here");
    for (method, path, target, body) in calls {
        let line = format!("{} {target}", method.to_uppercase());
        let answer = server.http(&line, Some(&anna.token), body).await;
        answers_as_documented(&document, method, path, &answer);
    }
    let cara = server.sign_in("cara").await;
    let deletion = r#"{"password": "correct horse", "messages": "erase"}"#;
    let answer = server.http("POST /api/v1/me/deletion", Some(&cara.token), deletion).await;
    answers_as_documented(&document, "post", "/api/v1/me/deletion", &answer);
}

/// How many calls the document describes.
fn documented(document: &Value) -> usize {
    let paths = document["paths"].as_object().expect("paths");
    paths.values().map(|path| path.as_object().expect("methods").len()).sum()
}

fn answers_as_documented(document: &Value, method: &str, path: &str, answer: &Answer) {
    let response = &document["paths"][path][method]["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{method} {path}: {answer:?} is not documented");
    let schema = &response["content"]["application/json"]["schema"];
    if schema["$ref"].is_string() {
        conforms(document, schema, &answer.json(), path);
    }
}

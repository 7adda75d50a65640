//! The OpenAPI document says what the routes do: each one exists, and answers have the fields that
//! their schemas list.

use serde_json::{Value, json};

use crate::support::Server;

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

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_route_answers_as_documented() {
    let server = Server::start().await;
    let document = server.http("GET /api/v1/openapi.json", None, "").await.json();
    let anna = server.sign_up("anna").await;
    let mut client = server.connect(&anna).await;
    let room = client.create_room("Tea").await;
    client.say(&room, "1", "hello").await;
    client.say(&room, "2", "hello again").await;
    let reply = json!({"room": room, "key": "3", "body": "yes", "reply_to": 1});
    client.call("message.send", reply).await;
    client.call("message.react", json!({"room": room, "seq": 1, "emoji": "👍", "on": true})).await;
    client.call("message.edit", json!({"room": room, "seq": 2, "body": "edited"})).await;
    client.call("message.delete", json!({"room": room, "seq": 2})).await;
    let invite = client.call("invite.create", json!({"room": room})).await;
    let code = invite["code"].as_str().unwrap();
    let file = server.upload(&anna, &room, "a.gif", ONE_PIXEL).await.json();
    let file = file["id"].as_str().unwrap().to_owned();
    let files = json!({"room": room, "key": "5", "body": "", "attachments": [file]});
    client.call("message.send", files).await;
    let messages = format!("/api/v1/rooms/{room}/messages");
    let account = json!({"name": "bob", "password": "correct horse"}).to_string();
    let message = json!({"key": "4", "body": "posted"}).to_string();
    let calls = [
        ("post", "/api/v1/accounts", "/api/v1/accounts".to_owned(), account.as_str()),
        ("post", "/api/v1/sessions", "/api/v1/sessions".to_owned(), &account),
        ("get", "/api/v1/me", "/api/v1/me".to_owned(), ""),
        ("get", "/api/v1/rooms", "/api/v1/rooms".to_owned(), ""),
        ("post", "/api/v1/rooms", "/api/v1/rooms".to_owned(), "{\"name\":\"Coffee\"}"),
        ("get", "/api/v1/rooms/{id}", format!("/api/v1/rooms/{room}"), ""),
        ("get", "/api/v1/rooms/{id}/messages", messages.clone(), ""),
        ("post", "/api/v1/rooms/{id}/messages", messages, &message),
        (
            "post",
            "/api/v1/rooms/{id}/attachments",
            format!("/api/v1/rooms/{room}/attachments?name=a.txt"),
            "a file",
        ),
        ("get", "/api/v1/attachments/{id}", format!("/api/v1/attachments/{file}"), ""),
        (
            "get",
            "/api/v1/attachments/{id}/thumbnail",
            format!("/api/v1/attachments/{file}/thumbnail"),
            "",
        ),
        ("get", "/api/v1/limits", "/api/v1/limits".to_owned(), ""),
        ("get", "/api/v1/invites/{code}", format!("/api/v1/invites/{code}"), ""),
        ("get", "/api/v1/search", "/api/v1/search?query=hello&limit=1".to_owned(), ""),
        ("get", "/api/v1/openapi.json", "/api/v1/openapi.json".to_owned(), ""),
        ("get", "/healthz", "/healthz".to_owned(), ""),
        ("get", "/metrics", "/metrics".to_owned(), ""),
        ("delete", "/api/v1/sessions/current", "/api/v1/sessions/current".to_owned(), ""),
    ];
    let documented: usize = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|path| path.as_object().unwrap().len())
        .sum();
    assert_eq!(documented, calls.len(), "a documented route is not called here");
    for (method, path, target, body) in calls {
        let line = format!("{} {target}", method.to_uppercase());
        let answer = server.http(&line, Some(&anna.token), body).await;
        let response = &document["paths"][path][method]["responses"][answer.status.to_string()];
        assert!(response.is_object(), "{line}: {} is not documented", answer.status);
        let schema = &response["content"]["application/json"]["schema"];
        if schema["$ref"].is_string() {
            conforms(&document, schema, &answer.json(), path);
        }
    }
}

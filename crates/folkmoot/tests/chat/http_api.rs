//! The HTTP interface: routes, problem documents, headers.

use serde_json::json;

use crate::support::{Account, Server, exchange};

#[tokio::test(flavor = "multi_thread")]
async fn rooms_and_messages_work_without_a_socket() {
    let server = Server::start().await;
    let anna = server.sign_up("anna").await;
    let token = Some(anna.token.as_str());
    let me = server.http("GET /api/v1/me", token, "").await;
    assert_eq!(me.json()["name"], "anna");
    let created = server.http("POST /api/v1/rooms", token, "{\"name\":\"Tea\"}").await;
    assert_eq!(created.status, 201);
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let messages = format!("/api/v1/rooms/{id}/messages");
    let body = json!({"key": "k", "body": "by post"}).to_string();
    let sent = server.http(&format!("POST {messages}"), token, &body).await;
    assert_eq!(sent.json()["seq"], 1);
    let again = server.http(&format!("POST {messages}"), token, &body).await;
    assert_eq!(again.json()["duplicate"], true);
    let page = server.http(&format!("GET {messages}?limit=10"), token, "").await;
    assert_eq!(page.json()["messages"][0]["body"], "by post");
    let list = server.http("GET /api/v1/rooms", token, "").await;
    assert_eq!(list.json()["rooms"][0]["id"], id.as_str());
    let room = server.http(&format!("GET /api/v1/rooms/{id}"), token, "").await;
    assert_eq!(room.json()["last_seq"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_problem_documents() {
    let server = Server::start().await;
    let root = Account::of(&server.set_up("root").await);
    let admin = Some(root.token.as_str());
    let anna = server.sign_up("anna").await;
    let token = Some(anna.token.as_str());
    let taken = json!({"name": "anna", "password": "correct horse"}).to_string();
    let short = json!({"name": "bob", "password": "short"}).to_string();
    let wrong = json!({"name": "anna", "password": "wrong horse"}).to_string();
    let huge = "x".repeat(70_000);
    for (line, token, body, status, word) in [
        ("POST /api/v1/accounts", None, taken.as_str(), 400, "taken"),
        ("POST /api/v1/accounts", None, &short, 400, "password"),
        ("POST /api/v1/accounts", None, "{", 400, "JSON"),
        ("POST /api/v1/accounts", None, &huge, 413, "65536"),
        ("POST /api/v1/sessions", None, &wrong, 401, "wrong"),
        ("GET /api/v1/me", None, "", 401, "Bearer"),
        ("GET /api/v1/me", Some("fm_x"), "", 401, "token"),
        ("GET /api/v1/rooms/0000000000007", token, "", 404, "room"),
        ("GET /api/v1/invites/nothing", None, "", 404, "invite"),
        ("GET /api/v1/nothing", None, "", 404, "route"),
        ("GET /api/v1/rooms?limit=many", token, "", 400, "limit"),
        ("GET /api/v1/rooms/0000000000007/messages?before=-1", token, "", 400, "before"),
        ("GET /api/v1/search?query=a&limit=0.5", token, "", 400, "limit"),
        ("GET /api/v1/search", token, "", 400, "query"),
        ("GET /api/v1/admin/users?limit=many", admin, "", 400, "limit"),
        ("GET /api/v1/admin/moderation?before=x", admin, "", 400, "before"),
        ("GET /api/v1/rooms/%ff", token, "", 400, "UTF-8"),
        ("GET /api/v1/pictures/%ff", None, "", 400, "UTF-8"),
        ("DELETE /api/v1/rooms", token, "", 405, "this route does not take DELETE"),
    ] {
        let answer = server.http(line, token, body).await;
        assert_eq!(answer.status, status, "{line}: {answer:?}");
        assert!(answer.head.contains("content-type: application/problem+json"), "{answer:?}");
        assert_eq!(answer.head.matches("content-type:").count(), 1, "{answer:?}");
        let problem = answer.json();
        assert_eq!(problem["status"], status);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(word) && !detail.starts_with('{'), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invite_can_be_looked_at_before_signing_up() {
    let server = Server::start().await;
    let mut anna = server.join("anna").await;
    let room = anna.create_room("Tea").await;
    let invite = anna.call("invite.create", json!({"room": room})).await;
    let line = format!("GET /api/v1/invites/{}", invite["code"].as_str().unwrap());
    assert_eq!(server.http(&line, None, "").await.json()["room"]["name"], "Tea");
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_passwords_is_limited() {
    let server = Server::with("[limits]\nlog_ins_per_minute = 3\n").await;
    server.sign_up("anna").await;
    let wrong = json!({"name": "anna", "password": "wrong horse"}).to_string();
    for _ in 0..3 {
        assert_eq!(server.http("POST /api/v1/sessions", None, &wrong).await.status, 401);
    }
    let limited = server.http("POST /api/v1/sessions", None, &wrong).await;
    assert_eq!(limited.status, 429);
    let problem = limited.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("attempts to sign in: the limit is 3 a minute"), "{detail}");
    let wait_ms = problem["retry_after_ms"].as_u64().unwrap();
    assert!((1..=20_000).contains(&wait_ms), "{wait_ms}");
    let header = format!("retry-after: {}", wait_ms.div_ceil(1_000));
    assert!(limited.head.contains(&header), "{}", limited.head);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_metrics_and_documents_are_served_with_strict_headers() {
    let server = Server::start().await;
    assert_eq!(server.http("GET /healthz", None, "").await.body, "ok\n");
    assert_eq!(server.http("GET /readyz", None, "").await.body, "ready\n");
    let _anna = server.join("anna").await;
    let metrics = server.http("GET /metrics", None, "").await;
    assert!(metrics.body.contains("\nfolkmoot_connections 1\n"), "{}", metrics.body);
    let created = metrics.body.contains("\nfolkmoot_store_append_seconds_count ");
    assert!(created, "{}", metrics.body);
    let page = server.http("GET /", None, "").await;
    assert_eq!(page.status, 200);
    for header in ["content-security-policy: default-src 'none'", "x-frame-options: deny"] {
        assert!(page.head.contains(header), "{}", page.head);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_there_only_when_asked_for() {
    let closed = Server::start().await;
    let answer = closed.http("GET /console/api", None, "").await;
    assert!(!answer.head.contains("application/json"), "{answer:?}");

    let open = Server::with("console = true\n").await;
    let _anna = open.join("anna").await;
    let view = open.http("GET /console/api", None, "").await.json();
    assert_eq!(view["node"], "folkmoot");
    let kinds = view["kinds"].as_array().unwrap();
    assert!(kinds.iter().any(|kind| kind["live"].as_u64() > Some(0)), "{view}");
    let page = open.http("GET /console", None, "").await;
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    let metrics = open.http("GET /metrics", None, "").await.body;
    assert!(metrics.contains("\nalthing_messages_handled_total{actor="), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inside_is_for_this_machine_administrators_and_the_operators_token() {
    let server = Server::with("metrics_token = \"let me see\"\nconsole = true\n").await;
    let anna = Account::of(&server.set_up("anna").await);
    let bob = server.sign_up("bob").await;
    for page in ["GET /metrics", "GET /console"] {
        assert_eq!(server.http(page, None, "").await.status, 200, "{page}");
        // As a proxy on this machine asks for somebody else, or a browser for a stranger's page whose
        // name was made to lead here.
        for stranger in ["Via: 1.1 proxy", "Host: evil.example"] {
            let asked = exchange(server.address(), page, None, &[stranger], b"").await;
            assert_eq!(asked.status, 401, "{page} {stranger}");
        }
        let forwarded = ["X-Forwarded-For: 203.0.113.5"];
        let ask = async |token: Option<&str>| {
            exchange(server.address(), page, token, &forwarded, b"").await.status
        };
        assert_eq!(ask(None).await, 401, "{page}");
        assert_eq!(ask(Some(&bob.token)).await, 401, "{page}");
        assert_eq!(ask(Some("let me in")).await, 401, "{page}");
        assert_eq!(ask(Some("let me see")).await, 200, "{page}");
        assert_eq!(ask(Some(&anna.token)).await, 200, "{page}");
    }
}

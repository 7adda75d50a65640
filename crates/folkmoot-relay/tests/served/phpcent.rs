//! The requests of `phpcent` 6.0.3, Centrifugo's library for PHP: heads and bodies as PHP's curl
//! sends them, one connection for each, and tokens as the library signs them.

use crate::support::Listener;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};

/// Only turns a promise that is never kept into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// Made by `generateConnectionToken(42, 0, ["name" => "A/B"], ["news:x"], ["m" => 1])` and
/// `generateSubscriptionToken("42", "$news:y", 4000000000)` with the secret `secret`.
const CONNECTION: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiIsImluZm8iOnsibmFtZSI6IkFcL0IifSwibWV0YSI6eyJtIjoxfSwiY2hhbm5lbHMiOlsibmV3czp4Il19.KiegiISRJCvqeBkdLt_JnAttYx90F0nn4--vLv78_0I";
const SUBSCRIPTION: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJjaGFubmVsIjoiJG5ld3M6eSIsInN1YiI6IjQyIiwiZXhwIjo0MDAwMDAwMDAwfQ.BR4ZOtIU6Laz9sJxTu_5dNEeJA-SaT-uArP0uqCS9uI";

async fn relay() -> Relay {
    let settings = json!({
        "client": { "token": { "hmac_secret_key": "secret" } },
        "http_api": { "key": "key" },
        "channel": { "namespaces": [{
            "name": "news", "presence": true, "history_size": 10, "history_ttl": "60s",
        }] },
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
}

/// What the library gets for a body, which is as PHP writes it.
async fn send(relay: &Relay, method: &str, body: &str) -> Value {
    // Curl waits for a word before it sends a long body.
    let waits = body.len() > 1 << 20;
    let expect = if waits { "Expect: 100-continue\r\n" } else { "" };
    let head = format!(
        "POST /api/{method} HTTP/1.1\r\nHost: {}\r\nUser-Agent: curl/7.39.0\r\nAccept: */*\r\n\
         Content-Type: application/json\r\nX-API-Key: key\r\nContent-Length: {}\r\n{expect}\r\n",
        relay.address(),
        body.len()
    );
    let mut socket = BufReader::new(TcpStream::connect(relay.address()).await.expect("it listens"));
    let exchange = async {
        socket.write_all(head.as_bytes()).await?;
        if waits {
            let mut line = String::new();
            socket.read_line(&mut line).await?;
            assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
            socket.read_line(&mut line).await?;
        }
        socket.write_all(body.as_bytes()).await?;
        let (mut line, mut len, mut is_first) = (String::new(), 0, true);
        while line != "\r\n" {
            line.clear();
            socket.read_line(&mut line).await?;
            assert!(!is_first || line == "HTTP/1.1 200 OK\r\n", "the library throws: {line}");
            is_first = false;
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                len = value.trim().parse().expect("a length");
            }
        }
        let mut answer = vec![0; len];
        socket.read_exact(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = timeout(PATIENCE, exchange).await.expect("nothing came").expect("it is open");
    serde_json::from_slice(&answer).expect("JSON")
}

#[tokio::test]
async fn each_call_of_the_library_is_answered_as_it_reads_it() {
    let relay = relay().await;
    let mut ann = Listener::open(&relay, &[]).await;
    let told = ann.ask(json!({ "id": 1, "connect": { "token": CONNECTION } })).await;
    let client = told["connect"]["client"].as_str().expect("an id").to_owned();
    assert!(told["connect"]["subs"]["news:x"].is_object(), "{told}");
    let private = json!({ "channel": "$news:y", "token": SUBSCRIPTION });
    assert!(ann.ask(json!({ "id": 2, "subscribe": private })).await["subscribe"]["ttl"].is_u64());

    let body = r#"{"channel":"plain","data":{"message":"Hello World"},"skip_history":false}"#;
    assert_eq!(send(&relay, "publish", body).await, json!({ "result": {} }));
    let body = r#"{"channel":"nowhere:x","data":{"message":"Hello World"},"skip_history":false}"#;
    assert_eq!(send(&relay, "publish", body).await["error"]["code"], 102);
    let body =
        r#"{"channel":"news:x","data":{"message":"Gr\u00fc\u00dfe\/1"},"skip_history":false}"#;
    let first = send(&relay, "publish", body).await;
    let epoch = first["result"]["epoch"].as_str().expect("an epoch").to_owned();
    assert_eq!(first["result"]["offset"], 1);
    assert_eq!(ann.publication().await.1, json!({ "message": "Grüße/1" }));
    let body = r#"{"channel":"news:x","data":[],"skip_history":true}"#;
    assert_eq!(send(&relay, "publish", body).await, json!({ "result": {} }));
    assert_eq!(ann.publication().await.1, json!([]));
    let body = r#"{"channel":"news:x","data":{"a":1.5},"skip_history":false,"tags":{"k":"v"},"idempotency_key":"one","delta":true,"version":3,"version_epoch":"e"}"#;
    for _ in 0..2 {
        assert_eq!(send(&relay, "publish", body).await["result"]["offset"], 2);
    }
    assert_eq!(ann.publication().await.1, json!({ "a": 1.5 }));
    let body = r#"{"channels":["news:x","news:z"],"data":{"a":2},"skip_history":false}"#;
    let responses = send(&relay, "broadcast", body).await["result"]["responses"].clone();
    assert_eq!(responses[0]["result"]["offset"], 3, "{responses}");
    assert_eq!(responses[1]["result"]["offset"], 1, "{responses}");
    assert_eq!(ann.publication().await.1, json!({ "a": 2 }));
    let large = "x".repeat(1_100_000);
    let body = format!(r#"{{"channel":"news:z","data":{{"t":"{large}"}},"skip_history":false}}"#);
    assert_eq!(send(&relay, "publish", &body).await["result"]["offset"], 2);

    let history =
        send(&relay, "history", r#"{"channel":"news:x","limit":0,"reverse":false}"#).await;
    assert_eq!(history, json!({ "result": { "publications": [], "epoch": epoch, "offset": 3 } }));
    let body = format!(
        r#"{{"channel":"news:x","limit":10,"reverse":true,"since":{{"offset":3,"epoch":"{epoch}"}}}}"#
    );
    let history = send(&relay, "history", &body).await;
    let offsets = history["result"]["publications"].as_array().expect("publications");
    assert_eq!(offsets.iter().map(|one| one["offset"].clone()).collect::<Vec<_>>(), [2, 1]);
    let presence = send(&relay, "presence", r#"{"channel":"news:x"}"#).await;
    let seen = &presence["result"]["presence"][&client];
    assert_eq!((&seen["user"], &seen["conn_info"]["name"]), (&json!("42"), &json!("A/B")));
    let stats = send(&relay, "presence_stats", r#"{"channel":"news:x"}"#).await;
    assert_eq!(stats, json!({ "result": { "num_clients": 1, "num_users": 1 } }));
    let channels = json!({ "result": { "channels": {
        "$news:y": { "num_clients": 1 }, "news:x": { "num_clients": 1 },
    } } });
    assert_eq!(send(&relay, "channels", r#"{"pattern":""}"#).await, channels);
    let listed = send(&relay, "channels", r#"{"pattern":"news:*"}"#).await;
    assert_eq!(listed["result"]["channels"], json!({ "news:x": { "num_clients": 1 } }));
    assert_eq!(send(&relay, "info", "{}").await["result"]["nodes"][0]["num_clients"], 1);
    let batch = r#"{"commands":[{"publish":{"channel":"plain","data":1}}],"parallel":false}"#;
    assert_eq!(send(&relay, "batch", batch).await, json!({ "replies": [{ "publish": {} }] }));

    let nothing = json!({ "result": {} });
    assert_eq!(send(&relay, "history_remove", r#"{"channel":"news:x"}"#).await, nothing);
    let body = r#"{"channel":"news:z","user":"42","client":"","expire_at":4000000000,"info":{"i":1},"override":{"presence":{"value":true}}}"#;
    assert_eq!(send(&relay, "subscribe", body).await, nothing);
    assert_eq!(ann.message().await["push"]["channel"], "news:z");
    let body = format!(r#"{{"channel":"news:z","user":"42","client":"{client}"}}"#);
    assert_eq!(send(&relay, "unsubscribe", &body).await, nothing);
    assert_eq!(ann.message().await["push"]["unsubscribe"]["code"], 2000);
    let body = r#"{"user":"42","client":"","disconnect":{"code":4000,"reason":"enough"}}"#;
    assert_eq!(send(&relay, "disconnect", body).await, nothing);
    assert_eq!(ann.end().await, (4000, "enough".to_owned()));
    relay.stop().await;
}

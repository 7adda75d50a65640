//! Accounts, made over HTTP as a browser does. One request per connection needs no HTTP library.

use folkmoot_protocol::chat::{AccountCreate, SignedIn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Account {
    pub(crate) token: String,
}

impl Account {
    pub(crate) async fn sign_up(port: u16, name: &str) -> Self {
        let account = AccountCreate {
            name: name.to_owned(),
            password: format!("{name}'s password"),
            display_name: None,
            device: None,
            invite: None,
        };
        let body = serde_json::to_string(&account).expect("it has string keys only");
        let request = format!(
            "POST /api/v1/accounts HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.expect("the server is up");
        socket.write_all(request.as_bytes()).await.expect("the server reads");
        let mut response = String::new();
        socket.read_to_string(&mut response).await.expect("the server answers in text");
        let (head, body) =
            response.split_once("\r\n\r\n").expect("the answer has a head and a body");
        assert!(head.starts_with("HTTP/1.1 201"), "sign-up of {name}: {response}");
        let signed_in: SignedIn = serde_json::from_str(body).expect("the answer is as documented");
        Self { token: signed_in.token }
    }
}

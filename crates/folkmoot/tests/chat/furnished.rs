//! A server with something of everything, to be carried elsewhere and found whole there.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use serde_json::{Value, json};

use crate::support::{Account, Server};

/// A server with a room, a file, a pin, a reaction, somebody who was thrown out, and its owner.
pub(crate) struct Furnished {
    pub(crate) server: Server,
    anna: Account,
    pub(crate) room: String,
    pub(crate) file: Value,
    offset: u64,
    epoch: String,
}

impl Furnished {
    /// Furnishes a server that runs, and stops it.
    pub(crate) async fn stopped(mut server: Server) -> Self {
        let anna = server.sign_up("anna").await;
        let mut client = server.connect(&anna).await;
        let room = client.create_room("Tea").await;
        let position = client.subscribe(&room).await;
        let line = format!("POST /api/v1/rooms/{room}/attachments?name=leaves.txt");
        let file = server.exchange(&line, &anna, &[], b"dried leaves").await.json();
        let request = json!({"room": room, "key": "f", "body": "", "attachments": [file["id"]]});
        client.call("message.send", request).await;
        for n in 2..=20 {
            // A NUL and the mark that stands for it in PostgreSQL.
            client.say(&room, &n.to_string(), &format!("cup \u{FDD0} number {n} ☕")).await;
        }
        let mut bo = server.join("bo").await;
        client.invite(&room, &mut bo).await;
        let reaction = json!({"room": room, "seq": 3, "emoji": "🍵", "on": true});
        client.call("message.react", reaction).await;
        client.call("message.pin", json!({"room": room, "seq": 3, "on": true})).await;
        server.stop().await;
        let (offset, epoch) = (position["offset"].as_u64().unwrap(), position["epoch"].clone());
        let epoch = epoch.as_str().unwrap().to_owned();
        Self { server, anna, room, file, offset, epoch }
    }

    /// Everything is there on the server that runs now, and it goes on from there.
    pub(crate) async fn is_whole(&mut self, last: u64) {
        let mut client = self.server.connect(&self.anna).await;
        let recovered = client.recover(&self.room, self.offset, &self.epoch).await;
        assert_eq!(recovered["recovered"], Value::Null, "a client fetches anew");
        assert_ne!(recovered["epoch"], json!(self.epoch));
        self.epoch = recovered["epoch"].as_str().unwrap().to_owned();
        self.offset = recovered["offset"].as_u64().unwrap();
        let request = json!({"room": self.room, "limit": 100});
        let page = client.call("history.get", request).await;
        let messages = page["messages"].as_array().unwrap();
        let numbers: Vec<_> =
            messages.iter().map(|message| message["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=last).collect::<Vec<_>>());
        assert_eq!(messages[2]["body"], "cup \u{FDD0} number 3 ☕");
        let line = format!("GET {}", self.file["url"].as_str().unwrap());
        let bytes = self.server.exchange(&line, &self.anna, &[], b"").await;
        assert_eq!(bytes.body, b"dried leaves");
        let found = client.call("search", json!({"query": "number 7"})).await;
        assert_eq!(found["hits"].as_array().map(Vec::len), Some(1), "{found}");
        assert_eq!(client.say(&self.room, &format!("n{last}"), "on").await, last + 1);
    }
}

//! Two members of a room: one says something, the other listens, and the time between is measured.
//! Both are in this process, so that no clocks have to agree.

use crate::solo::folkmoot::{Client, Server};
use anyhow::{Context, Result};
use folkmoot_protocol::chat::RoomEvent;
use folkmoot_protocol::rpc::MessageSend;
use folkmoot_protocol::{Channel, RoomId};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Longest wait for one message.
const DELIVERY_MAX: Duration = Duration::from_secs(10);
const TEXT: &str = "the quick brown fox jumps over the lazy dog and then takes a rest";

pub(super) struct Pair {
    sender: Client,
    listener: Client,
    room: RoomId,
    said: u64,
}

impl Pair {
    /// Users of two numbers, who are in the room; the second subscribes to it.
    pub(super) async fn open(
        server: &Server,
        room: RoomId,
        tokens: [(usize, &str); 2],
    ) -> Result<Self> {
        let [(speaking, token), (listening, other)] = tokens;
        let sender = server.enter(speaking, token).await?;
        let mut listener = server.enter(listening, other).await?;
        listener.subscribe(Channel::Room(room)).await?;
        Ok(Self { sender, listener, room, said: 0 })
    }

    /// Says something; the time until the listener has it.
    pub(super) async fn say(&mut self) -> Result<Duration> {
        let body = format!("{} {TEXT}", self.said);
        let request = message(self.room, format!("pair{}", self.said), body.clone());
        self.said += 1;
        let begun = Instant::now();
        let hearing = async {
            loop {
                match self.listener.next_event().await? {
                    RoomEvent::Message(message) if message.body == body => {
                        return anyhow::Ok(begun.elapsed());
                    }
                    _ => {}
                }
            }
        };
        let both = async { tokio::try_join!(self.sender.rpc(&request), hearing) };
        let (_, took) = timeout(DELIVERY_MAX, both).await.context("a message did not arrive")??;
        Ok(took)
    }

    /// Says so many messages and waits until each is acknowledged; the listener leaves.
    pub(super) async fn leave_behind(mut self, messages: u64) -> Result<Client> {
        for number in 0..messages {
            let key = format!("left{number}");
            self.sender.rpc(&message(self.room, key, TEXT.to_owned())).await?;
        }
        Ok(self.sender)
    }
}

fn message(room: RoomId, key: String, body: String) -> MessageSend {
    MessageSend { room, key, body, reply_to: None, attachments: Vec::new() }
}

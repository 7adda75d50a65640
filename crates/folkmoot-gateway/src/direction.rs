//! Who speaks on a connection. Where only the server does, there are no replies: what answers the
//! connect command is a push too, and pushes come without the envelope that tells them from
//! replies.
//!
//! One encoded push is shared by connections of both kinds, so the envelope is taken off where it
//! is written, without a copy.

use bytes::Bytes;
use folkmoot_protocol::frame::{Connect, ConnectResult, Outcome, Push, PushKind, Reply};

/// How JSON begins in which only a push is.
const ENVELOPE: &[u8] = b"{\"push\":";

/// Who speaks after the connect command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The client asks and the server answers.
    Both,
    /// Only the server, in JSON.
    ToClient,
}

impl Direction {
    /// What a client is told instead of the reply to its connect command.
    pub(crate) fn opened(self, reply: Reply) -> Reply {
        match (self, reply.outcome) {
            (Self::ToClient, Some(Outcome::Connect(result))) => connected(result).into(),
            (_, outcome) => Reply { outcome, ..reply },
        }
    }

    /// A message as it goes out.
    pub(crate) fn unwrapped(self, message: Bytes) -> Bytes {
        match self {
            Self::ToClient if message.starts_with(ENVELOPE) => {
                message.slice(ENVELOPE.len()..message.len() - 1)
            }
            _ => message,
        }
    }
}

fn connected(result: ConnectResult) -> Push {
    let ConnectResult { client, version, expires, ttl, data, subs, ping, session, node, .. } =
        result;
    // Nobody could answer a ping by a command.
    let pong = false;
    let connect = Connect { client, version, data, subs, expires, ttl, ping, pong, session, node };
    Push { channel: String::new(), kind: Some(PushKind::Connect(connect)) }
}

#[cfg(test)]
mod tests {
    use folkmoot_protocol::Format;
    use folkmoot_protocol::frame::Publication;

    use super::*;
    use crate::connection::encode;

    #[test]
    fn a_push_is_the_same_without_its_envelope_and_is_not_copied() {
        let data = Bytes::from_static(b"{\"push\":{\"a\":\"}}\"}}");
        let kind = PushKind::Pub(Publication { data, offset: 3, ..Publication::default() });
        let push = Push { channel: "news".to_owned(), kind: Some(kind) };
        let wanted = serde_json::to_vec(&push).expect("a push is JSON");
        let encoded = Format::Json.encode_push(push).expect("a push is JSON");
        let bare = Direction::ToClient.unwrapped(encoded.clone());
        assert_eq!(bare, wanted);
        assert_eq!(bare.as_ptr(), encoded[ENVELOPE.len()..].as_ptr());
        assert_eq!(Direction::Both.unwrapped(encoded.clone()), encoded);
    }

    #[test]
    fn a_ping_stays_an_empty_object() {
        let ping = encode(Format::Json, &Reply::ping());
        assert_eq!(Direction::ToClient.unwrapped(ping), b"{}"[..]);
    }

    #[test]
    fn the_reply_to_a_connect_command_becomes_a_push_that_wants_no_pong() {
        let result =
            ConnectResult { client: "c".to_owned(), ping: 25, pong: true, ..Default::default() };
        let reply = Reply::ok(1, Outcome::Connect(result));
        let opened = encode(Format::Json, &Direction::ToClient.opened(reply));
        let bare = Direction::ToClient.unwrapped(opened);
        assert_eq!(bare, b"{\"connect\":{\"client\":\"c\",\"ping\":25}}"[..]);
    }
}

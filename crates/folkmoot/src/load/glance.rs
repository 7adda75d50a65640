//! What a client makes of a message without reading all of it: thousands of clients share a machine
//! with the server that they measure, and what they spend is missing there.
//!
//! An event of a room is known by how it begins and ends, which the server writes alike for all.
//! Anything else is for whoever reads JSON, and so is, now and then, an event, to compare.

use std::borrow::Cow;

use folkmoot_protocol::RoomId;
use serde::Deserialize;

use super::tally::Stamp;

/// How an event of a room begins.
const BEGIN: &str = r#"{"push":{"channel":"room:"#;
/// What precedes the place of an event in its stream, and what follows it.
const OFFSET: &str = r#""offset":"#;
const END: &str = "}}}";
/// How a message is said in an event.
const BODY: &str = r#""body":""#;

/// A subscription, without the events that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subscribed {
    /// Of the command that it answers.
    pub(super) id: u32,
    pub(super) epoch: String,
    pub(super) offset: u64,
    pub(super) recovered: bool,
    pub(super) missed: Vec<Missed>,
}

/// An event that came with a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missed {
    pub(super) offset: u64,
    /// Of a message of a run.
    pub(super) stamp: Option<Stamp>,
}

/// An event that has a place in the stream of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) room: RoomId,
    pub(super) offset: u64,
    /// Of a message of a run.
    pub(super) stamp: Option<Stamp>,
}

impl Event {
    /// `None`: it is something else, or has no place in a stream.
    pub(super) fn at_a_glance(line: &str) -> Option<Self> {
        let rest = line.strip_prefix(BEGIN)?;
        let (room, rest) = rest.split_once('"')?;
        let rest = rest.strip_suffix(END)?;
        // Nothing that somebody said can end so: its quotes are escaped.
        let digits = rest.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (rest, offset) = rest.split_at(rest.len() - digits);
        let rest = rest.strip_suffix(OFFSET)?;
        let stamp = rest.find(BODY).and_then(|at| Stamp::of(&rest[at + BODY.len()..]));
        Some(Self { room: room.parse().ok()?, offset: offset.parse().ok()?, stamp })
    }
}

impl Subscribed {
    /// `None`: it is something else.
    pub(super) fn at_a_glance(line: &str) -> Option<Self> {
        let answered = line.strip_prefix(r#"{"id":"#)?;
        let after_id = answered.trim_start_matches(|digit: char| digit.is_ascii_digit());
        if !after_id.starts_with(r#","subscribe":{"#) {
            return None;
        }
        let Answer { id, subscribe } = serde_json::from_str(line).ok()?;
        let Answered { epoch, offset, recovered, publications } = subscribe;
        let missed = publications.iter().map(Placed::missed).collect();
        Some(Self { id, epoch, offset, recovered, missed })
    }
}

/// What is read of an answer; the rest is passed over, which is most of it.
#[derive(Deserialize)]
struct Answer<'a> {
    id: u32,
    #[serde(borrow)]
    subscribe: Answered<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answered<'a> {
    epoch: String,
    offset: u64,
    recovered: bool,
    #[serde(borrow)]
    publications: Vec<Placed<'a>>,
}

#[derive(Deserialize)]
struct Placed<'a> {
    #[serde(default)]
    offset: u64,
    #[serde(borrow)]
    data: Said<'a>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, default)]
    body: Option<Cow<'a, str>>,
}

impl Placed<'_> {
    fn missed(&self) -> Missed {
        let stamp = self.data.body.as_deref().and_then(Stamp::of);
        Missed { offset: self.offset, stamp }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ROOM: RoomId = RoomId::from_u64(1);

    fn line(data: &str, offset: &str) -> String {
        format!(r#"{{"push":{{"channel":"room:{ROOM}","pub":{{"data":{data}{offset}}}}}}}"#)
    }

    #[test]
    fn place_and_stamp_of_a_message_are_seen() {
        let stamp = Stamp { number: 7, at: Duration::from_nanos(12) };
        let data = format!(r#"{{"type":"message","body":"{}"}}"#, stamp.text(60));
        let seen = Event::at_a_glance(&line(&data, r#","offset":34"#));
        assert_eq!(seen, Some(Event { room: ROOM, offset: 34, stamp: Some(stamp) }));
    }

    #[test]
    fn what_is_said_deceives_nobody() {
        let data = r#"{"type":"message","body":"\"offset\":99}}}"}"#;
        let seen = Event::at_a_glance(&line(data, r#","offset":3"#));
        assert_eq!(seen, Some(Event { room: ROOM, offset: 3, stamp: None }));
        assert_eq!(Event::at_a_glance(&line(data, "")), None);
    }

    #[test]
    fn anything_else_is_not_taken_for_an_event() {
        for line in ["{}", r#"{"id":1,"rpc":{}}"#, r#"{"push":{"channel":"user:1","pub":{}}}"#] {
            assert_eq!(Event::at_a_glance(line), None, "{line}");
        }
    }

    #[test]
    fn a_subscription_is_told_without_its_events() {
        let line = r#"{"id":4,"subscribe":{"recoverable":true,"epoch":"e1","publications":[
            {"data":{"body":"x\"offset\":9"},"offset":7},{"data":{},"offset":8}],
            "recovered":true,"offset":8}}"#;
        let seen = Subscribed::at_a_glance(line).unwrap();
        assert_eq!((seen.id, seen.offset, seen.recovered), (4, 8, true));
        let missed: Vec<u64> = seen.missed.iter().map(|missed| missed.offset).collect();
        assert_eq!((&*seen.epoch, &*missed), ("e1", &[7, 8][..]));
        for other in [r#"{"id":4,"error":{"code":1}}"#, r#"{"id":4,"rpc":{"data":{}}}"#, "{}"] {
            assert_eq!(Subscribed::at_a_glance(other), None, "{other}");
        }
    }
}

//! Keys with a type: found by it, read back as it, and never mistaken for another's.

use std::borrow::Cow;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

use crate::support::{Count, Flex, Note};
use althing::{ActorError, ActorId, AskError, Context, KeyError, Node, Start, Wire, actor};

#[derive(Clone, Copy, Debug, PartialEq)]
struct RoomId(u64);

impl fmt::Display for RoomId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RoomId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

struct Room {
    id: RoomId,
}

#[actor(name = "test.room", key = RoomId)]
impl Room {
    async fn open(start: Start<Self>) -> Result<Self, ActorError> {
        Ok(Self { id: start.key_as()? })
    }

    async fn number(&self, ctx: &Context<Self>) -> u64 {
        assert_eq!(ctx.key_as::<RoomId>().unwrap(), self.id);
        self.id.0
    }
}

struct Row<T>(T);

#[actor(name = "test.row", key = u32)]
impl<T: Clone + Send + Sync + 'static> Row<T> {
    async fn value(&self) -> T {
        self.0.clone()
    }
}

#[tokio::test]
async fn an_actor_is_found_by_the_type_that_stands_for_its_key() {
    let node = Node::builder("test")
        .actor(Room::open)
        .actor(async |start: Start<Row<u32>>| Ok(Row(start.key_as::<u32>()? + 1)))
        .build();
    let room = node.get::<Room>(RoomId(7));
    assert_eq!(room.number().await, Ok(7));
    assert_eq!(room, node.get("7"));
    assert_eq!(node.get::<Row<u32>>(41).value().await, Ok(42));
}

#[tokio::test]
async fn every_text_is_a_key() {
    let node = Node::builder("test").actor(Room::open).build();
    let seven = node.get::<Room>("7");
    let keys: [Arc<str>; 1] = ["7".into()];
    assert_eq!(node.get::<Room>(String::from("7")), seven);
    assert_eq!(node.get::<Room>(&String::from("7")), seven);
    assert_eq!(node.get::<Room>(&keys[0]), seven);
    assert_eq!(node.get::<Room>(Cow::Borrowed("7")), seven);
    assert_eq!(node.get::<Room>(Box::<str>::from("7")), seven);
}

#[tokio::test]
async fn a_key_that_is_no_such_thing_is_named_with_its_kind() {
    let node = Node::builder("test").actor(Room::open).build();
    let Err(AskError::NotStarted(_, why)) = node.get::<Room>("lobby").number().await else {
        panic!("the lobby has no number")
    };
    let error = why.downcast_ref::<KeyError>().unwrap();
    assert_eq!(error.key(), "lobby");
    assert_eq!(
        error.to_string(),
        "the key `lobby` of test.room is no RoomId: invalid digit found in string"
    );
}

#[tokio::test]
async fn any_text_is_a_key_of_one_actor_wherever_its_identity_travels() {
    let node = Node::builder("test").actor(async |_| Ok(Flex::default())).build();
    let long = "x".repeat(100_000);
    let keys = ["", "/", "a/b", "#1", "\0", "\n", "\u{202e}", "ä", "a\u{308}", &long];
    for (at, key) in keys.iter().enumerate() {
        for line in 0..=at {
            assert_eq!(node.get::<Flex>(*key).send(Note(1)).await, Ok(line + 1));
        }
    }
    for (at, key) in keys.iter().enumerate() {
        let mut bytes = Vec::new();
        node.get::<Flex>(*key).id().encode(&mut bytes);
        let id = ActorId::decode(&bytes).expect("it is an identity");
        assert_eq!(id.key().map(|key| &**key), Some(*key));
        let actor = node.resolve::<Flex>(&id).expect("it is of that kind");
        assert_eq!(actor.send(Count).await, Ok(at + 1));
    }
}

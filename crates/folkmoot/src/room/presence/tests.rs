//! What a room keeps of connections that have somebody on screen: nothing once they have ended.

use althing::{ActorRef, Node, Start, actor};
use folkmoot_protocol::rpc::RoomCreate;
use folkmoot_protocol::{DeviceId, RoomId};

use super::*;
use crate::attachment::Attachments;
use crate::chat::{Identity, rooms};
use crate::config::{Config, Flags};
use crate::ports::{ActorLimits, Common, Others, Ports};
use crate::room::{AskedRoom, OnlineClient, RoomCalls};
use crate::server::{Beginning, Server};
use crate::storage::{NewAccount, NewDevice, Store, StoreOptions};

const ANNA: UserId = UserId::from_u64(1);
const BOB: UserId = UserId::from_u64(2);

/// Stands for the session of a connection.
#[derive(Debug)]
struct Ears;

#[actor(name = "folkmoot.room.presence.ears")]
impl Ears {}

impl Handler<Presence> for Ears {
    type Reply = ();

    async fn handle(&mut self, _: Presence, _: &mut Context<Self>) {}
}

/// How many connections a room remembers, and how many users they look at.
#[derive(Debug)]
struct CountWatches;

impl Handler<CountWatches> for Room {
    type Reply = (usize, usize);

    async fn handle(&mut self, _: CountWatches, _: &mut Context<Self>) -> (usize, usize) {
        self.looking.watchers.counts()
    }
}

async fn server(directory: &std::path::Path) -> Arc<Server> {
    let store = Store::open(&StoreOptions::small(directory)).unwrap();
    let flags = Flags { data: Some(directory.to_owned()), ..Flags::default() };
    let config = Config::load(flags).unwrap();
    let attachments = Attachments::open(&config.attachments).unwrap();
    Server::new(config, store, None, attachments, Beginning::default())
}

async fn room_of_anna(server: &Arc<Server>) -> RoomId {
    let (device, at) = (DeviceId::from_u64(2), server.now());
    let text = || "anna".to_owned();
    let (name, display_name, password_hash) = (text(), text(), text());
    let account = NewAccount { id: ANNA, name, display_name, password_hash, at };
    let new = NewDevice { id: device, user: ANNA, label: text(), token_hash: [0; 32], at };
    server.embedded().create_account(account, new).await.unwrap();
    let anna = Identity::new(server.clone(), ANNA, device);
    let create = RoomCreate { name: "Tea".to_owned(), topic: None };
    rooms::create(&anna, create).await.unwrap().id
}

async fn attach(server: &Server, room: RoomId, client: &str) {
    let client = OnlineClient { client: client.into(), user: ANNA, name: "anna".into(), node: 0 };
    server.asked(room).attach(Arc::new(client), None).await.unwrap().unwrap();
}

async fn look(server: &Server, room: RoomId, node: &Node, client: &str, number: u64) {
    let ears: ActorRef<Ears> = node.spawn(Ears);
    let (client, told) = (client.into(), ears.recipient());
    let screen = Screen { client, number, told, users: vec![ANNA, BOB] };
    server.asked(room).watch(ANNA, screen).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_ends_frees_what_it_watched() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path()).await;
    let room = room_of_anna(&server).await;
    let actor = server.room(room);
    let count = || async { actor.send(CountWatches).await.unwrap() };
    for client in ["phone", "desk"] {
        attach(&server, room, client).await;
        look(&server, room, server.node(), client, 1).await;
    }
    assert_eq!(count().await, (2, 2));
    actor.detach(ANNA, "phone".into()).await.unwrap();
    assert_eq!(count().await, (1, 2));
    actor.detach(ANNA, "desk".into()).await.unwrap();
    assert_eq!(count().await, (0, 0));
    server.close().await;
}

/// A cluster of this one node.
#[derive(Debug)]
struct OnlyNode(u64);

impl Others for OnlyNode {
    fn has(&self, node: u64) -> bool {
        node == self.0
    }
}

/// A gateway has asked to be let into a room, and died; a former owner of the room passes that on
/// after everybody knows of the death.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_of_a_node_that_is_gone_does_not_come_into_a_room() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path()).await;
    let room = room_of_anna(&server).await;
    let limits = ActorLimits {
        room_idle: Duration::from_secs(60),
        user_idle: Duration::from_secs(60),
        connections_per_user_max: 9,
    };
    let (store, metrics) = (server.embedded().clone(), Arc::default());
    let others: Option<Box<dyn Others>> = Some(Box::new(OnlyNode(7)));
    let common = Arc::new(Common { store, metrics, limits, others });
    let of_node = common.clone();
    let node = Node::builder("owner").actor(move |start: Start<Room>| {
        let ports = Ports::new(start.node(), of_node.clone());
        async move { Room::load(room, ports).await }
    });
    let node = node.build();
    let ports = Ports::new(node.clone(), common);
    let asked = AskedRoom::new(&ports, room);
    let attach = async |client: &str, node| {
        let (user, name) = (ANNA, "anna".into());
        let client = Arc::new(OnlineClient { client: client.into(), user, name, node });
        asked.attach(client, None).await
    };
    attach("here", 7).await.unwrap().unwrap();
    assert!(attach("ghost", 8).await.is_err());
    let online = asked.presence(ANNA).await.unwrap().unwrap();
    let online: Vec<_> = online.iter().map(|online| &*online.client).collect();
    assert_eq!(online, ["here"]);
    node.shutdown(Duration::from_secs(5)).await;
    server.close().await;
}

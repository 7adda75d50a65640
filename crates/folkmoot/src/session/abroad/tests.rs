//! What becomes of a connection that leaves, or ends, while the new owner of its channel is asked.

use bytes::Bytes;
use folkmoot_gateway::{Next, Outbox};
use folkmoot_protocol::rpc::RoomCreate;
use folkmoot_protocol::{Format, RoomId};

use super::*;
use crate::attachment::Attachments;
use crate::chat::{Identity, rooms};
use crate::config::{Config, Flags};
use crate::server::Beginning;
use crate::session::{Comings, SessionCalls};
use crate::storage::{NewAccount, NewDevice, Store, StoreOptions};

const ANNA: UserId = UserId::from_u64(1);
const DEVICE: DeviceId = DeviceId::from_u64(2);
const HALL: Channel = Channel::Room(RoomId::from_u64(1));

fn server(directory: &std::path::Path) -> Arc<Server> {
    let store = Store::open(&StoreOptions::small(directory)).unwrap();
    let flags = Flags { data: Some(directory.to_owned()), ..Flags::default() };
    let config = Config::load(flags).unwrap();
    let attachments = Attachments::open(&config.attachments).unwrap();
    Server::new(config, store, None, attachments, Beginning::default())
}

async fn room_of_anna(server: &Arc<Server>) -> RoomId {
    let (at, text) = (server.now(), || "anna".to_owned());
    let (name, display_name, password_hash) = (text(), text(), text());
    let account = NewAccount { id: ANNA, name, display_name, password_hash, at };
    let new = NewDevice { id: DEVICE, user: ANNA, label: text(), token_hash: [0; 32], at };
    server.embedded().create_account(account, new).await.unwrap();
    let anna = Identity::new(server.clone(), ANNA, DEVICE);
    let create = RoomCreate { name: "Tea".to_owned(), topic: None };
    rooms::create(&anna, create).await.unwrap().id
}

fn newcomer(server: &Arc<Server>, outbox: Arc<Outbox>) -> Newcomer {
    let (server, line) = (server.clone(), Line::Here { outbox, ear: None });
    let (client, name) = ("phone".into(), "anna".into());
    Newcomer { server, client, user: ANNA, name, device: DEVICE, token: [0; 32], line }
}

fn session(server: &Arc<Server>, outbox: Arc<Outbox>) -> ActorRef<Session> {
    let session = Session::new(server.clone(), "phone".into(), ANNA, Format::Json, outbox);
    server.node().spawn(session)
}

async fn present(server: &Server, room: RoomId) -> usize {
    server.asked(room).presence(ANNA).await.unwrap().unwrap().len()
}

/// The answer to a question that nobody waits for any more.
fn late(channel: Channel) -> Reattached {
    let since = Offset::from_u64(1);
    let missed = Frame { data: Bytes::from_static(b"\"two\""), offset: 2, ..Frame::default() };
    let attached = Attached { offset: Offset::from_u64(2), missed: Missed::All(vec![missed]) };
    let question = Question { number: 0, since };
    Reattached { channel, question, outcome: Outcome::Attached(attached) }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_ends_while_a_new_owner_is_asked_is_not_there_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path());
    let room = room_of_anna(&server).await;
    let outbox = Arc::new(Outbox::new(1 << 20));
    for there in [1, 0] {
        let newcomer = newcomer(&server, outbox.clone());
        let outcome = newcomer.attach(Channel::Room(room), Offset::default()).await;
        assert!(matches!(outcome, Outcome::Attached(_)), "{outcome:?}");
        assert_eq!(present(&server, room).await, there);
        outbox.close(DisconnectCode::ConnectionClosed);
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_while_a_new_owner_is_asked_is_not_there_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path());
    let (room, outbox) = (room_of_anna(&server).await, Arc::new(Outbox::new(1 << 20)));
    let channel = Channel::Room(room);
    newcomer(&server, outbox.clone()).attach(channel, Offset::default()).await;
    assert_eq!(present(&server, room).await, 1);
    session(&server, outbox).send(late(channel)).await.unwrap();
    assert_eq!(present(&server, room).await, 0);
    server.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_a_subscription_that_was_left_is_none_to_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let (server, outbox) = (server(directory.path()), Arc::new(Outbox::new(1 << 20)));
    let session = session(&server, outbox.clone());
    session.join(HALL, Comings::Unwanted).await.unwrap().unwrap();
    let place = Place::At(Offset::from_u64(3));
    let publication = Publication::new(HALL, place, Bytes::from_static(b"\"three\""));
    server.topic(HALL).publish(Arc::new(publication)).unwrap();
    session.send(late(HALL)).await.unwrap();
    session.go_live(HALL, Offset::from_u64(2)).await.unwrap();
    let Next::Messages(sent) = outbox.next().await else { panic!("it was closed") };
    let sent: Vec<_> = sent.iter().map(|one| String::from_utf8_lossy(one).into_owned()).collect();
    assert!(sent.len() == 1 && sent[0].contains("three"), "{sent:?}");
    server.close().await;
}

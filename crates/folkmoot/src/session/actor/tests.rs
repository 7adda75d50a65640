//! A session whose subscription is being made while its room goes on.

use bytes::Bytes;
use folkmoot_gateway::Next;
use folkmoot_protocol::RoomId;

use super::*;
use crate::attachment::Attachments;
use crate::config::{Config, Flags};
use crate::server::Beginning;
use crate::session::SessionCalls;
use crate::storage::{Store, StoreOptions};
use crate::stream::Place;

const ANNA: UserId = UserId::from_u64(1);
const HALL: Channel = Channel::Room(RoomId::from_u64(1));

fn server(directory: &std::path::Path) -> Arc<Server> {
    let store = Store::open(&StoreOptions::small(directory)).unwrap();
    let flags = Flags { data: Some(directory.to_owned()), ..Flags::default() };
    let config = Config::load(flags).unwrap();
    let attachments = Attachments::open(&config.attachments).unwrap();
    Server::new(config, store, None, attachments, Beginning::default())
}

/// What is sent of three publications that came before the reply was out, if the second one ends
/// subscriptions.
async fn sent_of_three(removes: Removed) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let server = server(directory.path());
    let outbox = Arc::new(Outbox::new(1 << 20));
    let session = Session::new(server.clone(), "client".into(), ANNA, Format::Json, outbox.clone());
    let session = server.node().spawn(session);
    session.join(HALL, Comings::Unwanted).await.unwrap().unwrap();
    for number in 1..=3 {
        let (place, data) = (Place::At(Offset::from_u64(number)), format!("\"event {number}\""));
        let mut publication = Publication::new(HALL, place, Bytes::from(data));
        publication.removes = (number == 2).then_some(removes);
        server.topic(HALL).publish(Arc::new(publication)).unwrap();
    }
    session.go_live(HALL, Offset::from_u64(0)).await.unwrap();
    let Next::Messages(sent) = outbox.next().await else { panic!("nothing was sent") };
    server.close().await;
    sent.iter().map(|message| String::from_utf8(message.to_vec()).unwrap()).collect()
}

#[tokio::test]
async fn what_is_held_behind_ones_own_removal_is_not_sent() {
    for removes in [Removed::User(ANNA), Removed::Everybody] {
        let sent = sent_of_three(removes).await;
        assert_eq!(sent.len(), 3, "{sent:?}");
        assert!(sent[0].contains("event 1") && sent[1].contains("event 2"), "{sent:?}");
        assert!(sent[2].contains("unsubscribe"), "{sent:?}");
    }
}

#[tokio::test]
async fn what_is_held_behind_the_removal_of_somebody_else_is_sent() {
    let sent = sent_of_three(Removed::User(UserId::from_u64(2))).await;
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert!(sent[2].contains("event 3"), "{sent:?}");
}

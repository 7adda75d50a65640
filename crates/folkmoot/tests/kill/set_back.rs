//! A database that is set back under its server: what clients have seen is not told again under the
//! same numbers without their being told.

use althing_testkit::servers::PostgresServer;
use folkmoot_protocol::frame::{Outcome, Request, SubscribeRequest, SubscribeResult};
use folkmoot_protocol::rpc::{MessageSend, MessageSent, RoomCreate};
use folkmoot_protocol::{Channel, Format, RoomId};

use crate::TEST_TIMEOUT;
use crate::account::Account;
use crate::connection::Connection;
use crate::server::{Behind, Server};

fn message(room: RoomId, body: &str) -> MessageSend {
    let (key, attachments) = (body.to_owned(), Vec::new());
    MessageSend { room, body: body.to_owned(), key, reply_to: None, attachments }
}

async fn say(connection: &mut Connection, room: RoomId, body: &str) -> MessageSent {
    connection.call(&message(room, body)).await
}

async fn subscribe(connection: &mut Connection, request: SubscribeRequest) -> SubscribeResult {
    let id = connection.send(vec![Request::Subscribe(request)]).await.expect("it is up");
    loop {
        let reply = connection.next().await.expect("it is up");
        if let (true, Some(Outcome::Subscribe(result))) = (reply.id == id, reply.outcome) {
            return result;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_database_was_set_back_ends_and_tells_its_clients_a_new_epoch() {
    tokio::time::timeout(TEST_TIMEOUT, run()).await.expect("it ends in time");
}

async fn run() {
    let postgres = tokio::task::block_in_place(PostgresServer::start);
    let mut server = Server::start(Behind::Postgres(postgres)).await;
    let token = Account::sign_up(server.port(), "ana").await.token;
    let mut ana = Connection::open(server.port(), &token, Format::Json).await.expect("it is up");
    let room = ana.call(&RoomCreate { name: "room".to_owned(), topic: None }).await.id;
    say(&mut ana, room, "kept").await;
    server.keep_database();
    let lost = say(&mut ana, room, "lost").await;
    let channel = Channel::Room(room).to_string();
    let request = SubscribeRequest { channel, ..SubscribeRequest::default() };
    let seen = subscribe(&mut ana, request.clone()).await;
    server.set_database_back();
    let late = ana.send(vec![Connection::rpc(&message(room, "late"))]).await;
    late.expect("it is still there");
    server.ended().await;
    server.launch().await;
    let mut ana = Connection::open(server.port(), &token, Format::Json).await.expect("it is up");
    let again = say(&mut ana, room, "in place of what is lost").await;
    assert_eq!(again.seq, lost.seq, "numbers are given out again");
    let (recover, offset, epoch) = (true, seen.offset, seen.epoch.clone());
    let result = subscribe(&mut ana, SubscribeRequest { recover, offset, epoch, ..request }).await;
    assert!(!result.recovered && result.epoch != seen.epoch, "{result:?}");
    server.stop().await;
}

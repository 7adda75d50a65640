//! The slot of change data capture goes: somebody drops it, or the database gives it up because it
//! kept too much. That is shown and never passed over by a silent beginning anew. Or it has moved:
//! another relay has read it meanwhile, or the database went back.

use std::path::Path;

use crate::changes::{PATIENCE, insert, relay, relay_with, shows_up};
use crate::support::{Listener, database, logical_server};
use althing_testkit::servers::PostgresServer;
use folkmoot_relay::Relay;
use serde_json::json;
use tokio::time::timeout;
use tokio_postgres::Client;

/// One that keeps its histories in a directory.
async fn durable(server: &PostgresServer, directory: &Path) -> Relay {
    let channel = json!({ "history_directory": directory, "namespaces": [{
        "name": "news", "allow_subscribe_for_anonymous": true, "allow_history_for_anonymous": true,
        "durable_history": true, "history_size": 10, "history_ttl": "60s",
    }] });
    relay_with(server, channel).await
}

/// Publishes one change, so that the slot is known; returns what it takes to go on.
async fn begun(server: &PostgresServer) -> (Relay, Listener, Client) {
    let relay = relay(server).await;
    shows_up(&relay, 1).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    let client = database(&server.url()).await.expect("it connects");
    insert(&client, "news:x", 1).await;
    assert_eq!(listener.publication().await.1, 1);
    (relay, listener, client)
}

/// Nothing comes until the operator says that the slot may begin anew, and then what follows.
async fn goes_on_when_it_is_told(relay: &Relay, listener: &mut Listener, client: &Client) {
    shows_up(relay, 0).await;
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE active";
    let slots: i64 = client.query_one(slots, &[]).await.expect("it reads").get(0);
    assert_eq!(slots, 0, "it began anew without a word");
    let lost = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots";
    client.batch_execute(lost).await.expect("it is dropped");
    let told = "DELETE FROM folkmoot_relay_slots";
    client.batch_execute(told).await.expect("it is deleted");
    shows_up(relay, 1).await;
    insert(client, "news:x", 3).await;
    assert_eq!(listener.publication().await.1, 3);
}

#[tokio::test]
async fn a_slot_that_was_dropped_is_shown_until_the_operator_lets_it_begin_anew() {
    let server = logical_server().await;
    let (relay, mut listener, client) = begun(&server).await;
    let drop = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active";
    // The relay comes back at once, so it may have to be cut off again before the slot is free.
    loop {
        client.batch_execute(drop).await.expect("it is cut off");
        let dropped = "SELECT pg_drop_replication_slot('folkmoot_relay')";
        if client.batch_execute(dropped).await.is_ok() {
            break;
        }
    }
    insert(&client, "news:x", 2).await;
    goes_on_when_it_is_told(&relay, &mut listener, &client).await;
    relay.stop().await;
}

#[tokio::test]
async fn a_slot_that_kept_too_much_is_given_up_by_the_database_and_shown() {
    let server = logical_server().await;
    let (first, _, client) = begun(&server).await;
    first.stop().await;
    client
        .batch_execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        .await
        .expect("it is set");
    client.batch_execute("SELECT pg_reload_conf()").await.expect("it is read");
    insert(&client, "news:x", 2).await;
    let state = "SELECT wal_status FROM pg_replication_slots";
    let lost = async {
        while client.query_one(state, &[]).await.expect("it reads").get::<_, &str>(0) != "lost" {
            client.batch_execute("CREATE TABLE filler (); DROP TABLE filler").await.expect("made");
            client.batch_execute("SELECT pg_switch_wal()").await.expect("it is switched");
            client.batch_execute("CHECKPOINT").await.expect("it is written");
        }
    };
    timeout(PATIENCE, lost).await.expect("the slot is never given up");
    let relay = relay(&server).await;
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    goes_on_when_it_is_told(&relay, &mut listener, &client).await;
    relay.stop().await;
}

/// A number of bytes in the database's log.
async fn place(client: &Client, of: &str) -> i64 {
    let asked = format!("SELECT ({of} - '0/0')::bigint FROM pg_replication_slots");
    client.query_one(&asked, &[]).await.expect("it reads").get(0)
}

async fn confirmed(client: &Client) -> i64 {
    place(client, "confirmed_flush_lsn").await
}

#[tokio::test]
async fn a_slot_goes_on_where_another_relay_has_left_it() {
    let server = logical_server().await;
    let directory = tempfile::tempdir().expect("a directory");
    let first = durable(&server, directory.path()).await;
    shows_up(&first, 1).await;
    let client = database(&server.url()).await.expect("it connects");
    let mut listener = Listener::subscribe(&first, &["news:x"]).await;
    insert(&client, "news:x", 1).await;
    assert_eq!(listener.publication().await.1, 1);
    first.stop().await;
    let other = relay(&server).await;
    shows_up(&other, 1).await;
    let mut listener = Listener::subscribe(&other, &["news:x"]).await;
    insert(&client, "news:x", 2).await;
    assert_eq!(listener.publication().await.1, 2);
    other.stop().await;
    let left = confirmed(&client).await;
    // What it remembers is older, and must not be told to the database: the next relay would begin
    // there.
    let again = durable(&server, directory.path()).await;
    let mut listener = Listener::recover(&again, "news:x").await;
    let goes_on = async {
        shows_up(&again, 1).await;
        insert(&client, "news:x", 3).await;
        for number in [1, 3] {
            assert_eq!(listener.publication().await.1, number);
        }
    };
    let watching = database(&server.url()).await.expect("it connects");
    let watched = async {
        loop {
            assert!(confirmed(&watching).await >= left, "the slot went back");
        }
    };
    tokio::select! {
        () = goes_on => {}
        () = watched => {}
    }
    again.stop().await;
}

/// Has the server do something that takes its time.
async fn done(mut server: PostgresServer, what: fn(&mut PostgresServer)) -> PostgresServer {
    let doing = tokio::task::spawn_blocking(move || {
        what(&mut server);
        server
    });
    doing.await.expect("it starts again")
}

#[tokio::test]
async fn a_database_that_went_back_is_noticed_and_what_it_commits_then_is_published() {
    let server = logical_server().await;
    let (relay, mut listener, client) = begun(&server).await;
    drop(client);
    let server = done(server, PostgresServer::keep).await;
    let client = database(&server.url()).await.expect("it connects");
    insert(&client, "news:x", 2).await;
    assert_eq!(listener.publication().await.1, 2);
    // Sixteen megabytes further, which the database does not write again by itself.
    client.batch_execute("SELECT pg_switch_wal()").await.expect("it is switched");
    let far = place(&client, "pg_current_wal_insert_lsn()").await;
    insert(&client, "news:x", 3).await;
    assert_eq!(listener.publication().await.1, 3);
    let heard = async { while confirmed(&client).await < far {} };
    timeout(PATIENCE, heard).await.expect("the database never hears of it");
    drop(client);
    let server = done(server, PostgresServer::go_back).await;
    shows_up(&relay, 1).await;
    let client = database(&server.url()).await.expect("it connects");
    insert(&client, "news:x", 4).await;
    let mut came = listener.publication().await.1;
    // Its slot may be older than what it had heard.
    while came == 1 {
        came = listener.publication().await.1;
    }
    assert_eq!(came, 4, "what was committed then is passed over");
    relay.stop().await;
}

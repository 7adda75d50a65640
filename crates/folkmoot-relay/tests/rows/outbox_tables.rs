//! Tables of an outbox that are dropped and made anew while they are read, or whose ids are not each
//! of one row only.

use std::time::Duration;

use crate::changes::PATIENCE;
use crate::outbox::{insert, relay, tables};
use crate::set_aside::set_aside;
use crate::support::Listener;
use althing_testkit::servers::PostgresServer;
use serde_json::json;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

/// What a row that failed would have published.
const DATA: &str = "(payload->'data')::text";

/// Inserts rows of one transaction with these ids, partitions, channels and data.
async fn insert_all(client: &Client, rows: &[(i64, i32, &str, i64)]) {
    client.batch_execute("BEGIN").await.expect("it begins");
    for (id, partition, channel, data) in rows {
        let payload = json!({ "channel": channel, "data": data }).to_string();
        let insert = "INSERT INTO centrifugo_outbox (id, partition, method, payload)
                      VALUES ($1, $2, 'publish', $3::text::jsonb)";
        client.execute(insert, &[id, partition, &payload]).await.expect("it is inserted");
    }
    client.batch_execute("COMMIT").await.expect("it is committed");
}

#[tokio::test]
async fn tables_that_are_dropped_and_made_anew_are_read_on() {
    let server = PostgresServer::start();
    let client = tables(&server).await;
    let relay = relay(&server, "20ms").await;
    let mut listener = Listener::subscribe(&relay, &["news:0"]).await;
    for round in 0..3 {
        insert(&client, 1, round).await;
        assert_eq!(listener.publication().await.1, round);
        insert_all(&client, &[(2, 0, "nowhere:x", round)]).await;
        assert_eq!(set_aside(&client, DATA, 1).await, [round.to_string()]);
        let anew = "BEGIN; CREATE TABLE new (LIKE centrifugo_outbox INCLUDING ALL);
            DROP TABLE centrifugo_outbox CASCADE; ALTER TABLE new RENAME TO centrifugo_outbox;
            COMMIT; DROP TABLE centrifugo_outbox_failed";
        client.batch_execute(anew).await.expect("it is made anew");
        // A row that fails while there is no table for it, before one that is heard.
        insert_all(&client, &[(1, 0, "nowhere:x", 10), (2, 0, "news:0", 20)]).await;
        assert_eq!(listener.publication().await.1, 20);
        assert_eq!(set_aside(&client, DATA, 1).await, ["10"]);
        client.batch_execute("TRUNCATE centrifugo_outbox_failed").await.expect("it is emptied");
    }
    relay.stop().await;
}

#[tokio::test]
async fn two_rows_of_one_id_that_both_fail_are_set_aside_and_hold_nobody_up() {
    let server = PostgresServer::start();
    let client = tables(&server).await;
    let several = "ALTER TABLE centrifugo_outbox DROP CONSTRAINT centrifugo_outbox_pkey";
    client.batch_execute(several).await.expect("ids may be there twice");
    let rows = [(1, 0, "nowhere:x", 1), (1, 0, "nowhere:x", 2), (2, 0, "news:0", 3)];
    insert_all(&client, &rows).await;
    let relay = relay(&server, "20ms").await;
    let mut listener = Listener::recover(&relay, "news:0").await;
    assert_eq!(timeout(PATIENCE, listener.publication()).await.expect("held up").1, 3);
    assert_eq!(set_aside(&client, DATA, 2).await, ["1", "2"]);
    relay.stop().await;
}

#[tokio::test]
async fn rows_of_one_id_in_two_partitions_are_each_published() {
    let server = PostgresServer::start();
    let client = tables(&server).await;
    let keyed = "ALTER TABLE centrifugo_outbox DROP CONSTRAINT centrifugo_outbox_pkey,
                     ADD PRIMARY KEY (id, partition)";
    client.batch_execute(keyed).await.expect("ids are of their partitions");
    let relay = relay(&server, "20ms").await;
    let mut listener = Listener::subscribe(&relay, &["news:0", "news:1"]).await;
    for round in 0..20 {
        insert_all(&client, &[(1, 0, "news:0", round), (1, 1, "news:1", round)]).await;
        let mut heard = Vec::new();
        for _ in 0..2 {
            let next = timeout(PATIENCE, listener.publication()).await;
            heard.push(next.expect("one of them is nowhere"));
        }
        heard.sort_by_key(|(channel, _)| channel.clone());
        let wanted = ["news:0", "news:1"].map(|channel| (channel.to_owned(), json!(round)));
        assert_eq!(heard, wanted);
        let left = "SELECT count(*) FROM centrifugo_outbox";
        while client.query_one(left, &[]).await.expect("it reads").get::<_, i64>(0) > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    }
    relay.stop().await;
}

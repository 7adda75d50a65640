//! What a backend commits to its outbox is published, in order and once, on a real PostgreSQL that
//! is killed meanwhile.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::support::{Listener, database};
use althing_testkit::servers::PostgresServer;
use folkmoot_relay::{Relay, Settings, start};
use serde_json::json;
use tokio_postgres::Client;

const PARTITIONS: i32 = 2;
const ROWS: i64 = 2_000;
const KILLS: usize = 5;

pub(crate) async fn relay(server: &PostgresServer, poll: &str) -> Relay {
    relay_with(server, poll, 500).await
}

/// A relay that takes so many rows at once.
async fn relay_with(server: &PostgresServer, poll: &str, rows_max: u32) -> Relay {
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": { "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true,
            "allow_history_for_anonymous": true, "history_size": 10, "history_ttl": "60s",
        }] },
        "consumers": [{ "name": "outbox", "type": "postgresql", "postgresql": {
            "dsn": server.url(), "num_partitions": PARTITIONS,
            "partition_select_limit": rows_max, "partition_poll_interval": poll, "partition_notification_channel": "outbox",
        } }],
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    start(settings, free).await.expect("it starts")
}

/// The tables of a backend; `sent` stands for its own data.
pub(crate) async fn tables(server: &PostgresServer) -> Client {
    let client = database(&server.url()).await.expect("it connects");
    client
        .batch_execute(
            "CREATE TABLE centrifugo_outbox (
                 id BIGSERIAL PRIMARY KEY, method text NOT NULL, payload jsonb NOT NULL,
                 partition integer NOT NULL DEFAULT 0,
                 created_at timestamptz NOT NULL DEFAULT now());
             CREATE TABLE sent (partition integer, number bigint, PRIMARY KEY (partition, number))",
        )
        .await
        .expect("tables are made");
    client
}

/// Commits one change of the backend together with what is to be published of it.
async fn commit(
    client: &mut Client,
    partition: i32,
    number: i64,
) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    transaction.execute("INSERT INTO sent VALUES ($1, $2)", &[&partition, &number]).await?;
    let payload = json!({ "channel": format!("news:{partition}"), "data": number }).to_string();
    let insert = "INSERT INTO centrifugo_outbox (method, payload, partition)
                  VALUES ('publish', $1::text::jsonb, $2)";
    transaction.execute(insert, &[&payload, &partition]).await?;
    transaction.execute("NOTIFY outbox", &[]).await?;
    transaction.commit().await
}

/// Commits the numbers from 1, each once, whatever happens to the database.
async fn write(url: String, partition: i32) {
    let mut last = 0;
    while last < ROWS {
        let Ok(mut client) = database(&url).await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        // A commit without an answer may have been one.
        let newest = "SELECT coalesce(max(number), 0) FROM sent WHERE partition = $1";
        let Ok(row) = client.query_one(newest, &[&partition]).await else { continue };
        last = row.get(0);
        while last < ROWS && commit(&mut client, partition, last + 1).await.is_ok() {
            last += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_committed_is_published_once_and_in_order_though_the_database_is_killed() {
    let server = PostgresServer::start();
    drop(tables(&server).await);
    let relay = relay(&server, "50ms").await;
    let mut listener = Listener::subscribe(&relay, &["news:0", "news:1"]).await;
    let writers: Vec<_> =
        (0..PARTITIONS).map(|partition| tokio::spawn(write(server.url(), partition))).collect();
    let listening = tokio::spawn(async move {
        let mut next: HashMap<String, i64> = HashMap::new();
        for _ in 0..i64::from(PARTITIONS) * ROWS {
            let (channel, data) = listener.publication().await;
            let next = next.entry(channel).or_insert(1);
            assert_eq!(data, *next, "one is missing, doubled or out of order");
            *next += 1;
        }
        listener
    });
    let server = crate::support::killed(server, KILLS).await;
    for writer in writers {
        writer.await.unwrap();
    }
    listening.await.unwrap();
    let client = database(&server.url()).await.unwrap();
    let left = "SELECT count(*) FROM centrifugo_outbox";
    while client.query_one(left, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_row_that_cannot_be_published_is_set_aside_and_holds_nobody_up() {
    let server = PostgresServer::start();
    let mut client = tables(&server).await;
    for (method, payload) in [
        ("publish", r#"{"channel": "nowhere:x", "data": 1}"#),
        ("publish", r#"{"channel": "news:0"}"#),
        ("publish", "[1]"),
        ("disconnect", r#"{"user": "42"}"#),
        // One of its channels hears it.
        ("broadcast", r#"{"channels": ["news:0", "nowhere:y"], "data": 0}"#),
    ] {
        let insert = "INSERT INTO centrifugo_outbox (method, payload) VALUES ($1, $2::text::jsonb)";
        client.execute(insert, &[&method, &payload]).await.unwrap();
    }
    let relay = relay(&server, "20ms").await;
    let mut listener = Listener::recover(&relay, "news:0").await;
    commit(&mut client, 0, 1).await.unwrap();
    for number in 0..=1 {
        assert_eq!(listener.publication().await, ("news:0".to_owned(), json!(number)));
    }
    let failed = "SELECT method, error FROM centrifugo_outbox_failed ORDER BY id";
    // The transaction that sets them aside may end after the publication was heard.
    let mut rows = Vec::new();
    while rows.is_empty() {
        rows = client.query(failed, &[]).await.unwrap();
    }
    let told: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(told.len(), 5, "{told:?}");
    let words = ["nowhere", "data", "bad request", "disconnect", "1 of 2 channels"];
    for ((_, error), word) in told.iter().zip(words) {
        assert!(error.contains(word), "{error}");
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_row_that_is_published_in_part_is_heard_once_though_it_cannot_be_set_aside() {
    let server = PostgresServer::start();
    let mut client = tables(&server).await;
    let relay = relay(&server, "20ms").await;
    let mut listener = Listener::subscribe(&relay, &["news:0"]).await;
    commit(&mut client, 0, 1).await.expect("it is committed");
    assert_eq!(listener.publication().await.1, 1);
    let close = "ALTER TABLE centrifugo_outbox_failed ADD CONSTRAINT closed CHECK (false)";
    client.batch_execute(close).await.expect("it is closed");
    let payload = json!({ "channels": ["news:0", "nowhere:y"], "data": 2 }).to_string();
    let insert =
        "INSERT INTO centrifugo_outbox (method, payload) VALUES ('broadcast', $1::text::jsonb)";
    client.execute(insert, &[&payload]).await.expect("it is inserted");
    assert_eq!(listener.publication().await.1, 2);
    // Long enough for several further attempts.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let open = "ALTER TABLE centrifugo_outbox_failed DROP CONSTRAINT closed";
    client.batch_execute(open).await.expect("it is open");
    commit(&mut client, 0, 3).await.expect("it is committed");
    assert_eq!(listener.publication().await.1, 3);
    let failed = "SELECT error FROM centrifugo_outbox_failed";
    // The transaction that sets it aside may end after the publication was heard.
    let mut rows = Vec::new();
    while rows.is_empty() {
        rows = client.query(failed, &[]).await.expect("it reads");
    }
    let error: String = rows[0].get(0);
    assert!(error.contains("1 of 2 channels"), "{error}");
    relay.stop().await;
}

#[tokio::test]
async fn rows_that_go_into_a_durable_history_and_rows_that_do_not_are_heard_in_their_order() {
    let server = PostgresServer::start();
    let client = tables(&server).await;
    for number in 1..=60 {
        // Also those of one row go to several channels.
        let (method, channel) = match number % 3 {
            0 => ("broadcast", json!({ "channels": ["kept:x", "fleeting:y"] })),
            _ => ("publish", json!({ "channel": "kept:x" })),
        };
        let mut payload = json!({ "data": number, "skip_history": number % 2 == 0 });
        payload.as_object_mut().expect("fields").extend(channel.as_object().cloned().expect("one"));
        let insert = "INSERT INTO centrifugo_outbox (method, payload) VALUES ($1, $2::text::jsonb)";
        client.execute(insert, &[&method, &payload.to_string()]).await.expect("it is inserted");
    }
    let directory = tempfile::tempdir().expect("it is made");
    let namespace = |name: &str, is_durable: bool| {
        json!({
            "name": name, "allow_subscribe_for_anonymous": true, "durable_history": is_durable,
            "history_size": 100, "history_ttl": "60s",
        })
    };
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": {
            "history_directory": directory.path(),
            "namespaces": [namespace("kept", true), namespace("fleeting", false)],
        },
        "consumers": [{ "name": "outbox", "type": "postgresql", "postgresql": {
            // It finds the rows once somebody is there to hear them.
            "dsn": server.url(), "outbox_table_name": "later", "partition_poll_interval": "20ms",
        } }],
    });
    let settings = Settings::from_json(&settings.to_string()).expect("settings");
    let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let relay = start(settings, free).await.expect("it starts");
    let mut listener = Listener::subscribe(&relay, &["kept:x"]).await;
    let move_all = "INSERT INTO later SELECT * FROM centrifugo_outbox";
    while client.batch_execute(move_all).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for number in 1..=60 {
        assert_eq!(listener.publication().await.1, number);
    }
    relay.stop().await;
}

#[tokio::test]
async fn two_relays_on_one_outbox_publish_each_row_once() {
    let server = PostgresServer::start();
    let mut client = tables(&server).await;
    let (one, other) = (relay(&server, "5ms").await, relay(&server, "5ms").await);
    let mut listeners = [
        Listener::subscribe(&one, &["news:0"]).await,
        Listener::subscribe(&other, &["news:0"]).await,
    ];
    let [first, second] = &mut listeners;
    let mut heard = Vec::new();
    for number in 1..=50 {
        commit(&mut client, 0, number).await.unwrap();
        let (_, data) = tokio::select! {
            heard = first.publication() => heard,
            heard = second.publication() => heard,
        };
        heard.push(data);
    }
    let all: Vec<_> = (1..=50).map(|number| json!(number)).collect();
    assert_eq!(heard, all);
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn settings_of_an_outbox_that_mean_nothing_are_refused_by_name() {
    for (postgresql, word) in [
        (json!({ "dsn": "nonsense=" }), "dsn"),
        (json!({ "dsn": "host=127.0.0.1", "outbox_table_name": "a.b.c" }), "outbox_table_name"),
        (json!({ "dsn": "host=127.0.0.1", "num_partitions": 0 }), "num_partitions"),
    ] {
        let consumer = json!({ "name": "mine", "type": "postgresql", "postgresql": postgresql });
        let settings = json!({ "consumers": [consumer] }).to_string();
        let settings = Settings::from_json(&settings).unwrap();
        let refused = start(settings, "127.0.0.1:0".parse().unwrap()).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("mine") && text.contains(word), "{text}");
    }
}

#[tokio::test]
async fn a_row_whose_deletion_failed_is_published_once_though_earlier_ids_come_later() {
    let server = PostgresServer::start();
    let client = tables(&server).await;
    client.batch_execute(BREAKING).await.expect("it is made");
    let relay = relay_with(&server, "20ms", 1).await;
    let mut listener = Listener::subscribe(&relay, &["news:0"]).await;
    let insert = async |id: i64| insert(&client, id, id).await;
    insert(5).await;
    assert_eq!(listener.publication().await.1, 5);
    insert(1).await;
    assert_eq!(listener.publication().await.1, 1);
    client.batch_execute("DELETE FROM broken").await.expect("it is deleted");
    insert(9).await;
    assert_eq!(listener.publication().await.1, 9);
    relay.stop().await;
}

/// Deleting fails until the table `broken` is empty.
const BREAKING: &str = "CREATE TABLE broken (); INSERT INTO broken DEFAULT VALUES;
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM broken) THEN RAISE EXCEPTION 'broken'; END IF;
        RETURN OLD;
    END $$;
    CREATE TRIGGER refuse BEFORE DELETE ON centrifugo_outbox
        FOR EACH ROW EXECUTE FUNCTION refuse();";

/// Commits a row with this id, or gives the one that has it these data.
pub(crate) async fn insert(client: &Client, id: i64, data: i64) {
    let payload = json!({ "channel": "news:0", "data": data }).to_string();
    let insert = "INSERT INTO centrifugo_outbox (id, method, payload)
                  VALUES ($1, 'publish', $2::text::jsonb)
                  ON CONFLICT (id) DO UPDATE SET payload = excluded.payload";
    client.execute(insert, &[&id, &payload]).await.expect("it is inserted");
}

#[tokio::test]
async fn a_row_that_gets_the_id_of_one_whose_deletion_failed_is_published() {
    let server = PostgresServer::start();
    let client = tables(&server).await;
    client.batch_execute(BREAKING).await.expect("it is made");
    let relay = relay(&server, "20ms").await;
    let mut listener = Listener::subscribe(&relay, &["news:0"]).await;
    insert(&client, 1, 1).await;
    assert_eq!(listener.publication().await.1, 1);
    // Other data, and then the same again, as a backend that was set up anew commits them.
    for data in [2, 2] {
        let anew = "TRUNCATE centrifugo_outbox RESTART IDENTITY";
        client.batch_execute(anew).await.expect("it is emptied");
        insert(&client, 1, data).await;
        assert_eq!(listener.publication().await.1, data);
    }
    // And one that is changed.
    insert(&client, 1, 3).await;
    assert_eq!(listener.publication().await.1, 3);
    client.batch_execute("DELETE FROM broken").await.expect("it is deleted");
    insert(&client, 9, 9).await;
    assert_eq!(listener.publication().await.1, 9, "what failed to be deleted comes no second time");
    relay.stop().await;
}

#[tokio::test]
async fn a_row_that_is_changed_or_comes_anew_while_it_is_published_is_published_as_it_is_then() {
    let server = PostgresServer::start();
    let client = tables(&server).await;
    // Deleting waits until nobody has this lock, and has begun then.
    let waiting = "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_advisory_xact_lock(7);
            RETURN NULL;
        END $$;
        CREATE TRIGGER waits BEFORE DELETE ON centrifugo_outbox
            FOR EACH STATEMENT EXECUTE FUNCTION waits();";
    client.batch_execute(waiting).await.expect("it is made");
    let backend = database(&server.url()).await.expect("it connects");
    backend.batch_execute("SET session_replication_role = replica").await.expect("no triggers");
    let relay = relay(&server, "20ms").await;
    let mut listener = Listener::subscribe(&relay, &["news:0"]).await;
    let until_waiting = async || {
        let waits =
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted";
        while client.query_opt(waits, &[]).await.expect("it reads").is_none() {}
    };
    for data in [10, 20] {
        client.batch_execute("SELECT pg_advisory_lock(7)").await.expect("it is taken");
        insert(&backend, 1, data).await;
        assert_eq!(listener.publication().await.1, data);
        until_waiting().await;
        if data == 20 {
            let delete = "DELETE FROM centrifugo_outbox WHERE id = 1";
            backend.batch_execute(delete).await.expect("it is deleted");
        }
        insert(&backend, 1, data + 1).await;
        client.batch_execute("SELECT pg_advisory_unlock(7)").await.expect("it is given back");
        assert_eq!(listener.publication().await.1, data + 1);
        let left = "SELECT count(*) FROM centrifugo_outbox";
        while client.query_one(left, &[]).await.expect("it reads").get::<_, i64>(0) > 0 {}
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_row_that_is_set_aside_with_an_id_that_was_set_aside_before_is_kept_beside_that_one() {
    let server = PostgresServer::start();
    let client = tables(&server).await;
    // As former versions of the relay made it.
    let before = "CREATE TABLE centrifugo_outbox_failed (
            id bigint PRIMARY KEY, method text NOT NULL, payload jsonb NOT NULL,
            partition integer NOT NULL, error text NOT NULL,
            failed_at timestamptz NOT NULL DEFAULT now());
        INSERT INTO centrifugo_outbox_failed (id, method, payload, partition, error)
            VALUES (1, 'erase', '0', 0, 'long ago')";
    client.batch_execute(before).await.expect("it is made");
    let relay = relay(&server, "20ms").await;
    for number in 1..=2_i64 {
        let insert = "INSERT INTO centrifugo_outbox (id, method, payload)
                      VALUES (1, 'erase', to_jsonb($1::bigint))";
        client.execute(insert, &[&number]).await.expect("it is inserted");
        let kept = "SELECT payload::text FROM centrifugo_outbox_failed ORDER BY failed_at";
        let mut all = Vec::new();
        while all.len() as i64 <= number {
            let rows = client.query(kept, &[]).await.expect("it reads");
            all = rows.iter().map(|row| row.get::<_, String>(0)).collect();
            let left = "SELECT count(*) FROM centrifugo_outbox";
            let left: i64 = client.query_one(left, &[]).await.expect("it reads").get(0);
            assert!(
                left > 0 || all.len() as i64 > number || {
                    // It may have been set aside between the two questions.
                    client.query(kept, &[]).await.expect("it reads").len() as i64 > number
                },
                "it was deleted and is nowhere"
            );
        }
        assert_eq!(all.len() as i64, number + 1);
        assert_eq!(all.last().map(String::as_str), Some(&*number.to_string()));
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_row_that_gets_the_id_and_the_content_of_one_that_a_former_relay_published_is_published()
{
    let server = PostgresServer::start();
    let client = tables(&server).await;
    client.batch_execute(BREAKING).await.expect("it is made");
    let directory = tempfile::tempdir().expect("it is made");
    let settings = json!({
        "client": { "allow_anonymous_connect_without_token": true },
        "channel": { "history_directory": directory.path(), "namespaces": [{
            "name": "news", "allow_subscribe_for_anonymous": true, "durable_history": true,
            "allow_history_for_anonymous": true, "history_size": 10, "history_ttl": "60s",
        }] },
        "consumers": [{ "name": "outbox", "type": "postgresql", "postgresql": {
            "dsn": server.url(), "partition_poll_interval": "20ms",
        } }],
    });
    let started = async || {
        let settings = Settings::from_json(&settings.to_string()).expect("settings");
        start(settings, "127.0.0.1:0".parse().expect("an address")).await.expect("it starts")
    };
    let first = started().await;
    let mut listener = Listener::subscribe(&first, &["news:0"]).await;
    insert(&client, 1, 5).await;
    assert_eq!(listener.publication().await.1, 5);
    // It knows that it has published the row, and not that the row is gone.
    first.stop().await;
    let second = started().await;
    let mut listener = Listener::recover(&second, "news:0").await;
    assert_eq!(listener.publication().await.1, 5);
    let anew = "TRUNCATE centrifugo_outbox RESTART IDENTITY; DELETE FROM broken";
    client.batch_execute(anew).await.expect("it is emptied");
    insert(&client, 1, 5).await;
    assert_eq!(listener.publication().await.1, 5);
    insert(&client, 2, 6).await;
    assert_eq!(listener.publication().await.1, 6, "the first row is published once");
    second.stop().await;
}

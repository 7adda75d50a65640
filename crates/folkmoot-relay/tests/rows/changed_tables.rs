//! Somebody changes the tables of change data capture while it reads them: what it cannot read any
//! more is shown, and what was committed then is published or set aside.

use crate::changes::{insert, relay, shows_up};
use crate::set_aside::set_aside;
use crate::support::{Listener, database, logical_server};

#[tokio::test]
async fn a_table_of_rows_that_failed_that_is_dropped_is_made_again_and_holds_nobody_up() {
    let server = logical_server().await;
    let relay = relay(&server).await;
    shows_up(&relay, 1).await;
    let client = database(&server.url()).await.expect("it connects");
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    client.batch_execute("DROP TABLE centrifugo_outbox_failed").await.expect("it is dropped");
    insert(&client, "nowhere:x", 1).await;
    insert(&client, "news:x", 2).await;
    assert_eq!(listener.publication().await.1, 2);
    assert!(set_aside(&client, "error", 1).await[0].contains("nowhere"));
    insert(&client, "news:x", 3).await;
    assert_eq!(listener.publication().await.1, 3);
    relay.stop().await;
}

#[tokio::test]
async fn rows_from_while_a_column_had_another_name_are_set_aside_and_hold_nobody_up() {
    let server = logical_server().await;
    let relay = relay(&server).await;
    shows_up(&relay, 1).await;
    let client = database(&server.url()).await.expect("it connects");
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    insert(&client, "news:x", 1).await;
    assert_eq!(listener.publication().await.1, 1);
    let renamed = "ALTER TABLE centrifugo_outbox RENAME COLUMN payload TO body;
        INSERT INTO centrifugo_outbox (method, body) VALUES ('publish', '{\"channel\": \"news:x\"}');
        ALTER TABLE centrifugo_outbox ALTER COLUMN body DROP NOT NULL;
        INSERT INTO centrifugo_outbox (method) VALUES ('publish');";
    client.batch_execute(renamed).await.expect("it is renamed");
    let back = "DELETE FROM centrifugo_outbox WHERE body IS NULL;
        ALTER TABLE centrifugo_outbox RENAME COLUMN body TO payload;
        ALTER TABLE centrifugo_outbox ALTER COLUMN payload SET NOT NULL;";
    client.batch_execute(back).await.expect("it is renamed");
    insert(&client, "news:x", 2).await;
    assert_eq!(listener.publication().await.1, 2);
    assert!(set_aside(&client, "error", 2).await.iter().all(|why| why.contains("payload")));
    shows_up(&relay, 1).await;
    relay.stop().await;
}

#[tokio::test]
async fn a_table_that_is_not_in_the_publication_is_shown_until_it_is() {
    let server = logical_server().await;
    let relay = relay(&server).await;
    shows_up(&relay, 1).await;
    let client = database(&server.url()).await.expect("it connects");
    let anew = "CREATE TABLE new (LIKE centrifugo_outbox INCLUDING ALL);
        DROP TABLE centrifugo_outbox CASCADE;
        ALTER TABLE new RENAME TO centrifugo_outbox;
        CREATE SEQUENCE numbers OWNED BY centrifugo_outbox.id;
        ALTER TABLE centrifugo_outbox ALTER COLUMN id SET DEFAULT nextval('numbers');";
    client.batch_execute(anew).await.expect("it is made anew");
    shows_up(&relay, 0).await;
    let added = "ALTER PUBLICATION folkmoot_relay ADD TABLE centrifugo_outbox";
    client.batch_execute(added).await.expect("it is added");
    let mut listener = Listener::subscribe(&relay, &["news:x"]).await;
    insert(&client, "news:x", 1).await;
    assert_eq!(listener.publication().await.1, 1);
    shows_up(&relay, 1).await;
    relay.stop().await;
}

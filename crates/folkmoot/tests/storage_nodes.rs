//! Two stores on one database, as two nodes of a server have them: each sees at once what the other
//! one has done, and of two that hold one room the later is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

#[path = "storage_support/postgres.rs"]
mod storage_postgres;
mod storage_support;
#[path = "storage_support/way.rs"]
mod way;

use std::time::Duration;

use althing_testkit::servers::PostgresServer;
use folkmoot::storage::{
    AppendError, ControlError, DatabaseAddress, Lsn, NodeName, OpenError, PageAnchor, Store,
    StoreAddress, StoreOptions, UnixMillis, UserId,
};
use storage_support::{ANA, ROOM, TestDirectory, account, message, populate};
use tokio_postgres::NoTls;
use way::Way;

fn node(directory: &TestDirectory, database: &DatabaseAddress, node: &str) -> StoreOptions {
    node_of("moot", directory, database, node)
}

fn node_of(
    cluster: &str,
    directory: &TestDirectory,
    database: &DatabaseAddress,
    node: &str,
) -> StoreOptions {
    let database = Some(StoreAddress::Postgres(database.clone()));
    let node = Some(NodeName { cluster: cluster.to_owned(), node: node.to_owned() });
    StoreOptions { database, node, ..directory.options() }
}

/// Two nodes, and their directories.
async fn two_nodes(test: &str) -> (DatabaseAddress, [TestDirectory; 2], [Store; 2]) {
    let database = storage_postgres::new_database().await;
    let directories = ["first", "second"].map(|name| TestDirectory::new(&format!("{test}-{name}")));
    let first = Store::open(&node(&directories[0], &database, "n1")).unwrap();
    let second = Store::open(&node(&directories[1], &database, "n2")).unwrap();
    populate(&first).await;
    (database, directories, [first, second])
}

/// Appends message `seq` in the epoch that the room's snapshot has on that node.
async fn say(store: &Store, seq: u64, body: &str) -> Result<Lsn, AppendError> {
    let appended = store.append(store.write_epoch(), &message(seq + 1, seq, body)).await?;
    Ok(appended.lsn)
}

async fn texts(store: &Store) -> Vec<String> {
    let page = store.history(ROOM, PageAnchor::Latest, 100, ANA).await.unwrap();
    page.messages.into_iter().map(|stored| stored.message.body).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_has_acknowledged_the_other_one_reads_and_numbers_follow_each_other() {
    let (_, _directories, [first, second]) = two_nodes("nodes-read").await;
    let mut last = Lsn(0);
    for seq in 1..=20 {
        let store = if seq % 2 == 0 { &first } else { &second };
        let lsn = say(store, seq, &format!("text {seq}")).await.unwrap();
        assert!(lsn > last, "{lsn} after {last}");
        last = lsn;
    }
    let said: Vec<String> = (1..=20).map(|seq| format!("text {seq}")).collect();
    assert_eq!((texts(&first).await, texts(&second).await), (said.clone(), said));
    let changes = second.message_changes(Lsn(0), 100).await.unwrap();
    assert_eq!((changes.messages.len(), changes.up_to), (20, last));
    let (new, device) = account(UserId::from_u64(7), "cleo");
    first.create_account(new, device).await.unwrap();
    let (new, device) = account(UserId::from_u64(8), "cleo");
    let taken = second.create_account(new, device).await.unwrap_err();
    assert!(matches!(taken, ControlError::NameTaken(_)), "{taken}");
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_nodes_that_hold_one_room_the_later_is_refused_with_all_behind_it() {
    let (_, _directories, [first, second]) = two_nodes("nodes-fence").await;
    say(&first, 1, "both know this").await.unwrap();
    let stale = second.write_epoch();
    say(&first, 2, "the second node does not know this").await.unwrap();
    say(&first, 3, "nor this").await.unwrap();
    // All of it is queued at once, and the third would fit by chance.
    let late: Vec<_> = (2..=5)
        .map(|seq| second.append(stale, &message(seq + 1, seq, "from the second node")))
        .collect();
    for append in late {
        let refused = append.await.unwrap_err();
        let is_named = matches!(refused, AppendError::OtherNode | AppendError::StaleEpoch { .. });
        assert!(is_named, "{refused}");
    }
    // Nothing more in that epoch, whatever its offset; then the room is loaded again.
    let refused = second.append(stale, &message(5, 4, "still stale")).await.unwrap_err();
    assert!(matches!(refused, AppendError::StaleEpoch { .. }), "{refused}");
    let loaded = second.load_room(ROOM, 10, UnixMillis::from_u64(9)).await.unwrap().unwrap();
    let next = message(5, 4, "now it knows");
    second.append(loaded.epoch, &next).await.unwrap();
    let refused = say(&first, 4, "the first does not").await.unwrap_err();
    assert_eq!(refused, AppendError::OtherNode);
    let said = ["both know this", "the second node does not know this", "nor this", "now it knows"];
    assert_eq!(texts(&first).await, said);
    assert_eq!(texts(&second).await, said);
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_two_clusters_keep_each_other_out_of_one_database() {
    let (database, directories, [first, second]) = two_nodes("nodes-clusters").await;
    let stranger = TestDirectory::new("nodes-clusters-stranger");
    let options = node_of("mott", &stranger, &database, "n3");
    let refused = Store::open(&options).unwrap_err();
    assert!(matches!(refused, OpenError::OtherCluster { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("folkmoot n") && text.contains("mott"), "{text}");
    first.close().await;
    let refused = Store::open(&options).unwrap_err();
    assert!(matches!(refused, OpenError::OtherCluster { .. }), "one is left: {refused}");
    second.close().await;
    // Once all of a cluster have stopped, it may have another name.
    let third = Store::open(&options).unwrap();
    let refused = Store::open(&node(&directories[0], &database, "n1")).unwrap_err();
    assert!(matches!(refused, OpenError::OtherCluster { .. }), "{refused}");
    third.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_a_server_alone_keep_each_other_out_and_so_do_two_of_one_name() {
    let (database, directories, [first, second]) = two_nodes("nodes-claim").await;
    let alone = TestDirectory::new("nodes-claim-alone");
    let options = StoreOptions { database: Some(database.clone().into()), ..alone.options() };
    let refused = Store::open(&options).unwrap_err();
    assert!(matches!(refused, OpenError::DatabaseInUse { .. }), "{refused}");
    let refused = Store::open(&node(&alone, &database, "n1")).unwrap_err();
    assert!(matches!(refused, OpenError::DatabaseInUse { .. }), "{refused}");
    first.close().await;
    second.close().await;
    let served = Store::open(&options).unwrap();
    let refused = Store::open(&node(&directories[0], &database, "n1")).unwrap_err();
    assert!(matches!(refused, OpenError::DatabaseInUse { .. }), "{refused}");
    say(&served, 1, "alone").await.unwrap();
    served.close().await;
    let again = Store::open(&node(&directories[0], &database, "n1")).unwrap();
    say(&again, 2, "a node again").await.unwrap();
    assert_eq!(texts(&again).await, ["alone", "a node again"]);
    again.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_sessions_were_cut_goes_on_and_one_that_was_replaced_does_not() {
    let (database, directories, [first, second]) = two_nodes("nodes-cut").await;
    let (admin, connection) = tokio_postgres::connect(&database.to_string(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE application_name LIKE 'folkmoot n1 %' AND datname = current_database()";
    for seq in 1..=5 {
        admin.batch_execute(cut).await.unwrap();
        say(&first, seq, &format!("text {seq}")).await.unwrap();
    }
    assert_eq!(texts(&second).await.len(), 5);
    // Another process of that name takes its place, as after a cut of the network.
    let replacing = TestDirectory::new("nodes-cut-replacing");
    admin
        .batch_execute("UPDATE folkmoot.writers SET number = number + 1 WHERE node = 'n1'")
        .await
        .unwrap();
    let refused = say(&first, 6, "late").await.unwrap_err();
    assert_eq!(refused, AppendError::TakenOver);
    say(&second, 6, "in time").await.unwrap();
    first.close().await;
    let again = Store::open(&node(&replacing, &database, "n1")).unwrap();
    say(&again, 7, "anew").await.unwrap();
    assert_eq!(texts(&second).await.len(), 7);
    again.close().await;
    second.close().await;
    drop(directories);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_whose_database_lacks_what_it_acknowledged_all_end_and_begin_one_new_epoch() {
    let mut server = tokio::task::block_in_place(PostgresServer::start);
    let database: DatabaseAddress = server.url().parse().unwrap();
    let directories = ["nodes-back-1", "nodes-back-2"].map(TestDirectory::new);
    let open = || {
        let first = Store::open(&node(&directories[0], &database, "n1")).unwrap();
        [first, Store::open(&node(&directories[1], &database, "n2")).unwrap()]
    };
    let [first, second] = open();
    let epoch = first.stream_epoch().to_owned();
    populate(&first).await;
    say(&first, 1, "kept").await.unwrap();
    tokio::task::block_in_place(|| server.keep());
    say(&first, 2, "lost").await.unwrap();
    tokio::task::block_in_place(|| server.go_back());
    let refused = say(&first, 3, "after it").await.unwrap_err().to_string();
    assert!(refused.contains("lacks"), "{refused}");
    // It has lost nothing of its own, and its clients have seen what the other one has lost.
    let (new, device) = account(UserId::from_u64(7), "cleo");
    let refused = second.create_account(new, device).await.unwrap_err();
    assert!(matches!(refused, ControlError::TakenOver), "{refused}");
    for store in [first, second] {
        let ends = tokio::time::timeout(Duration::from_secs(30), store.lost()).await;
        ends.expect("its server ends");
        store.close().await;
    }
    let [first, second] = open();
    assert_ne!(first.stream_epoch(), epoch);
    assert_eq!(first.stream_epoch(), second.stream_epoch());
    say(&second, 2, "anew").await.unwrap();
    assert_eq!(texts(&first).await, ["kept", "anew"]);
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_any_name_goes_on_though_its_session_stands_and_hears_nothing() {
    let server = tokio::task::block_in_place(PostgresServer::start);
    let (host, port) = server.address();
    let there = format!("{host}:{port}");
    let way = Way::to(&there).await;
    let database: DatabaseAddress = server.url().replace(&there, way.address()).parse().unwrap();
    let directory = TestDirectory::new("nodes-name");
    let name = format!("{}.example", "n".repeat(50));
    let store = Store::open(&node(&directory, &database, &name)).unwrap();
    populate(&store).await;
    way.silence_from(b"COMMIT\0");
    say(&store, 1, "heard").await.unwrap();
    assert_eq!(texts(&store).await, ["heard"]);
    store.close().await;
}

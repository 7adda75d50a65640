//! What was acknowledged and is gone, and what was done and not heard of.

use std::time::Duration;

use althing_testkit::servers::PostgresServer;
use folkmoot::storage::{ControlError, DatabaseAddress, Lost, OpenError, Store, UserId};
use tokio::task::block_in_place;

use super::{admin, append, numbers, options, said};
use crate::storage_support::{TestDirectory, account, populate};
use crate::way::Way;

const ENDS_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_lacks_what_it_acknowledged_ends_its_server_and_begins_a_new_epoch() {
    let mut server = block_in_place(PostgresServer::start);
    let database: DatabaseAddress = server.url().parse().unwrap();
    let directory = TestDirectory::new("pg-set-back");
    let store = directory.open_on(&database);
    let epoch = store.stream_epoch().to_owned();
    populate(&store).await;
    append(&store, 1).await.unwrap();
    block_in_place(|| server.keep());
    for seq in 2..=3 {
        append(&store, seq).await.unwrap();
    }
    // As a standby that was behind when it took over, or a machine that is set back.
    block_in_place(|| server.go_back());
    let refused = append(&store, 4).await.unwrap_err().to_string();
    assert!(refused.contains("lacks"), "{refused}");
    let (new, device) = account(UserId::from_u64(77), "late");
    let refused = store.create_account(new, device).await.unwrap_err().to_string();
    assert!(refused.contains("lacks"), "{refused}");
    let lost = tokio::time::timeout(ENDS_WITHIN, store.lost()).await.expect("its server ends");
    assert_eq!(lost, Lost::SetBack);
    store.close().await;
    let store = directory.open_on(&database);
    assert_ne!(store.stream_epoch(), epoch, "offsets are given out again in another epoch");
    append(&store, 2).await.unwrap();
    assert_eq!(numbers(&store).await, [1, 2]);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_from_before_its_server_began_is_told_from_one_that_was_taken_over() {
    let mut server = block_in_place(PostgresServer::start);
    let database: DatabaseAddress = server.url().parse().unwrap();
    let directory = TestDirectory::new("pg-from-before");
    let store = directory.open_on(&database);
    populate(&store).await;
    let epoch = store.stream_epoch().to_owned();
    store.close().await;
    block_in_place(|| server.keep());
    let store = directory.open_on(&database);
    append(&store, 1).await.unwrap();
    block_in_place(|| server.go_back());
    let refused = append(&store, 2).await.unwrap_err().to_string();
    assert!(refused.contains("lacks"), "{refused}");
    store.close().await;
    let store = directory.open_on(&database);
    assert_ne!(store.stream_epoch(), epoch);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_committed_though_the_answer_is_lost_is_there_once_and_acknowledged() {
    let server = block_in_place(PostgresServer::start);
    let (host, port) = server.address();
    let there = format!("{host}:{port}");
    let way = Way::to(&there).await;
    let database: DatabaseAddress = server.url().replace(&there, way.address()).parse().unwrap();
    let directory = TestDirectory::new("pg-muffled");
    let store = directory.open_on(&database);
    populate(&store).await;
    append(&store, 1).await.unwrap();
    way.silence_from(b"COMMIT\0");
    let written = store.append(store.write_epoch(), &said(2));
    let next = store.append(store.write_epoch(), &said(3));
    written.await.unwrap();
    next.await.unwrap();
    assert_eq!(numbers(&store).await, [1, 2, 3]);
    way.silence_from(b"COMMIT\0");
    let (new, device) = account(UserId::from_u64(77), "late");
    store.create_account(new, device).await.unwrap();
    let (new, device) = account(UserId::from_u64(78), "late");
    let taken = store.create_account(new, device).await.unwrap_err();
    assert!(matches!(taken, ControlError::NameTaken(_)), "{taken}");
    append(&store, 4).await.unwrap();
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_that_waits_for_a_standby_which_is_away() {
    let server = block_in_place(PostgresServer::start);
    let database: DatabaseAddress = server.url().parse().unwrap();
    let directory = TestDirectory::new("pg-no-standby");
    let store = directory.open_on(&database);
    populate(&store).await;
    append(&store, 1).await.unwrap();
    let admin = admin(&server.url()).await;
    let reload = "SELECT pg_reload_conf()";
    // Commits wait for a standby that never comes.
    admin.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await.unwrap();
    admin.batch_execute(reload).await.unwrap();
    while admin.query_one("SHOW synchronous_standby_names", &[]).await.unwrap().get::<_, &str>(0)
        != "nobody"
    {}
    tokio::time::sleep(Duration::from_millis(500)).await;
    let refused = append(&store, 2).await.unwrap_err().to_string();
    assert!(refused.contains("PostgreSQL"), "{refused}");
    admin.batch_execute("ALTER SYSTEM RESET synchronous_standby_names").await.unwrap();
    admin.batch_execute(reload).await.unwrap();
    // What was refused may have been written all the same.
    goes_on(&store).await;
    store.close().await;
}

/// The state of a process and its parent; `None` if it is gone.
fn process(id: i32) -> Option<(String, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // "id (name) state parent …"
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postmaster_that_is_killed_alone_loses_nothing_that_its_orphans_have_acknowledged() {
    let mut server = block_in_place(PostgresServer::start);
    let database: DatabaseAddress = server.url().parse().unwrap();
    let directory = TestDirectory::new("pg-postmaster");
    let store = directory.open_on(&database);
    populate(&store).await;
    let admin = admin(&server.url()).await;
    let sessions = admin.query("SELECT pid FROM pg_stat_activity", &[]).await.unwrap();
    let sessions: Vec<i32> = sessions.iter().map(|row| row.get(0)).collect();
    let (_, postmaster) = process(sessions[0]).unwrap();
    let mut waiting: Vec<_> =
        (1..=300).map(|seq| store.append(store.write_epoch(), &said(seq))).collect();
    let kill = ["-s", "KILL", &postmaster.to_string()];
    assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
    waiting.extend((301..=600).map(|seq| store.append(store.write_epoch(), &said(seq))));
    drop(admin);
    // They end once they look; the memory that they share is in use until then.
    while sessions.iter().any(|it| process(*it).is_some_and(|(state, _)| state != "Z")) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    block_in_place(|| server.start_again());
    let mut acknowledged = 0;
    for append in waiting {
        // On a busy machine it may have been away for too long.
        acknowledged += usize::from(append.await.is_ok());
    }
    goes_on(&store).await;
    assert!(numbers(&store).await.len() > acknowledged);
    store.close().await;
}

/// Appends the next message, whichever that is, once the store takes it.
async fn goes_on(store: &Store) {
    let ends = std::time::Instant::now() + ENDS_WITHIN;
    while std::time::Instant::now() < ends {
        let Ok(()) = store.ready().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let last = numbers(store).await.len() as u64;
        if append(store, last + 1).await.is_ok() {
            assert_eq!(numbers(store).await, (1..=last + 1).collect::<Vec<_>>());
            return;
        }
    }
    panic!("the store does not go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_is_found_in_place_of_its_server_is_left_once_the_server_is_there() {
    let (primary, mut standby) =
        block_in_place(|| (PostgresServer::start(), PostgresServer::start()));
    let [there, elsewhere] = [&primary, &standby].map(|server| {
        let (host, port) = server.address();
        format!("{host}:{port}")
    });
    // It has as much as the other one, and more transactions.
    let other = TestDirectory::new("pg-standby-fill");
    let store = other.open_on(&standby.url().parse::<DatabaseAddress>().unwrap());
    populate(&store).await;
    for seq in 1..=9 {
        append(&store, seq).await.unwrap();
    }
    store.close().await;
    block_in_place(|| standby.stand_by());
    let way = Way::to(&there).await;
    let database: DatabaseAddress = primary.url().replace(&there, way.address()).parse().unwrap();
    let directory = TestDirectory::new("pg-standby");
    let store = directory.open_on(&database);
    populate(&store).await;
    append(&store, 1).await.unwrap();
    way.lead_to(&elsewhere);
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
               WHERE application_name LIKE 'folkmoot%'";
    admin(&primary.url()).await.batch_execute(end).await.unwrap();
    let refused = append(&store, 2).await.unwrap_err().to_string();
    assert!(refused.contains("read-only"), "{refused}");
    // Who is connected stays with the standby.
    way.lead_to(&there);
    goes_on(&store).await;
    store.close().await;
    let standby: DatabaseAddress = standby.url().parse().unwrap();
    let refused = Store::open(&options(&directory, &standby)).unwrap_err();
    assert!(matches!(refused, OpenError::Standby { .. }), "{refused}");
}

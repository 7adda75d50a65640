//! The real binary on a Cassandra: the tasks of an administrator's, and a second server that takes
//! the keyspace over.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

#[path = "storage_support/cassandra.rs"]
mod storage_cassandra;
#[path = "storage_support/postgres.rs"]
mod storage_postgres;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use scylla::client::session_builder::SessionBuilder;
use storage_cassandra::{host, new_keyspace};
use storage_postgres::new_database;

fn folkmoot(data: &Path, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(data).args(["--store", store, "--log", "warn"]);
    command
}

fn task(data: &Path, store: &str, arguments: &[&str]) -> Output {
    folkmoot(data, store).args(arguments).output().expect("the binary was built")
}

/// What it says if it ends well.
fn done(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Expects a refusal in one line that contains `words`.
fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    let line = said.lines().last().unwrap_or_default();
    assert!(line.starts_with("folkmoot: "), "{said}");
    assert!(words.iter().all(|word| line.contains(word)), "{words:?} in {line}");
}

/// What each table has, as `migrate` says it.
fn tables(output: &Output) -> Vec<String> {
    let said = done(output);
    let lines: Vec<_> = said.lines().filter(|line| line.contains("checksum")).collect();
    assert!(lines.len() > 20, "{said}");
    lines.into_iter().map(ToOwned::to_owned).collect()
}

/// The address without what the command line does not show.
async fn keyspace() -> String {
    let name = new_keyspace().await.to_string();
    format!("{name}?replicas=1")
}

struct Running(Child);

impl Running {
    fn start(data: &Path, store: &str) -> Self {
        let mut process = folkmoot(data, store)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("listens on"), "{line}");
        Self(process)
    }

    /// Waits until it ends by itself; what it said then.
    fn ended(mut self) -> String {
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!self.0.wait().unwrap().success(), "{said}");
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SEED: [&str; 7] = ["seed", "--users", "300", "--room", "250:150", "--room", "2x3:7"];

#[tokio::test(flavor = "multi_thread")]
async fn the_circle_through_cassandra_and_postgresql_keeps_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let text = |name: &str| place(name).to_str().unwrap().to_owned();
    done(&task(&place("first"), "embedded", &SEED));
    let (keyspace, database) = (keyspace().await, new_database().await.to_string());
    let migrate = |from: &str, to: &str| task(&place("files"), "embedded", &["migrate", from, to]);
    let first = tables(&migrate(&text("first"), &keyspace));
    refused(&migrate(&text("first"), &keyspace), &["is not empty"]);
    let second = tables(&migrate(&keyspace, &database));
    let third = tables(&migrate(&database, &text("last")));
    assert_eq!(first, second);
    assert_eq!(first, third);
    assert!(
        done(&task(&place("files"), &keyspace, &["check"])).contains("171 messages in 4 rooms")
    );
    let empty = format!("cassandra://{}/nothing?replicas=1", host().await);
    refused(&migrate(&empty, &text("none")), &["holds no data of Folkmoot"]);
}

/// Migrates, and kills it once it has said a line of that sort, which is the last one.
fn migrate_killed_at(data: &Path, from: &str, to: &str, is_last: impl Fn(&str) -> bool) -> String {
    let mut command = folkmoot(data, "embedded");
    command.args(["migrate", from, to]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let is_reached = lines.any(|line| {
        let line = line.unwrap();
        said.push_str(&line);
        said.push('\n');
        is_last(&line)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_reached, "it ended before: {said}");
    said
}

/// Runs a command that fills a keyspace, and kills it as soon as that has a piece of the snapshot.
async fn killed_once_a_piece_is_there(mut command: Command, to: &str) {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let client = SessionBuilder::new().known_node(host().await).build().await.unwrap();
    let keyspace = to.split('?').next().unwrap().rsplit('/').next().unwrap();
    let pieces = format!("SELECT piece FROM {keyspace}.folkmoot_pieces");
    let mut child = command.spawn().unwrap();
    loop {
        // Before it has made its tables, that is an error.
        let found = client.query_unpaged(&*pieces, ()).await;
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        if found.is_ok_and(|found| found.into_rows_result().unwrap().rows_num() > 0) {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_into_a_keyspace_that_is_killed_goes_on_and_nothing_is_there_twice() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let text = |name: &str| place(name).to_str().unwrap().to_owned();
    let seed = ["seed", "--users", "6000", "--room", "6000:20000", "--room", "3x200:20"];
    done(&task(&place("first"), "embedded", &seed));
    let (from, keyspace, files) = (text("first"), keyspace().await, place("files"));
    let killed = |is_last: fn(&str) -> bool| migrate_killed_at(&files, &from, &keyspace, is_last);
    killed(|line| line.starts_with("members"));
    for _ in 0..2 {
        let said = killed(|line| line.starts_with("messages ") && line.contains('█'));
        assert!(said.contains("going on in table"), "{said}");
        assert!(!said.contains("\nusers  "), "none of its rows comes again: {said}");
    }
    let server = task(&files, &keyspace, &["--listen", "127.0.0.1:0"]);
    refused(&server, &["what was to fill the keyspace", "migrate"]);
    let mut command = folkmoot(&files, "embedded");
    command.args(["migrate", &from, &keyspace]);
    killed_once_a_piece_is_there(command, &keyspace).await;

    let output = task(&files, "embedded", &["migrate", &from, &keyspace]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("pieces that are in Cassandra"), "{said}");
    let into = tables(&output);
    assert!(into.iter().any(|line| line.starts_with("messages: 24000 rows")), "{into:?}");
    assert!(!files.join("migration").exists());
    let back = tables(&task(&files, "embedded", &["migrate", &keyspace, &text("back")]));
    assert_eq!(into, back);
    assert!(done(&task(&files, &keyspace, &["check"])).contains("24000 messages"));
    refused(&task(&files, "embedded", &["migrate", &from, &keyspace]), &["is not empty"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_into_a_keyspace_that_is_killed_is_begun_anew_and_no_server_takes_what_it_left() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let (first, restored, keyspace) = (place("first"), place("restored"), keyspace().await);
    let (file, mark) = (place("backup").to_str().unwrap().to_owned(), restored.join("RESTORING"));
    done(&task(&first, "embedded", &["seed", "--users", "6000", "--room", "6000:20000"]));
    done(&task(&first, "embedded", &["backup", &file]));
    let mut restore = folkmoot(&restored, &keyspace);
    restore.args(["restore", &file]);
    killed_once_a_piece_is_there(restore, &keyspace).await;

    assert!(mark.exists());
    let part = ["a part of a backup", "folkmoot restore"];
    refused(&task(&restored, &keyspace, &SEED), &part);
    refused(&task(&restored, &keyspace, &["--listen", "127.0.0.1:0"]), &part);
    done(&task(&restored, &keyspace, &["restore", &file]));
    assert!(!mark.exists());
    let is_whole = || {
        let checked = done(&task(&restored, &keyspace, &["check"]));
        assert!(checked.contains("20000 messages in 1 rooms"), "{checked}");
    };
    is_whole();

    // As one leaves it that is killed after all was there.
    std::fs::write(&mark, "").unwrap();
    refused(&task(&restored, &keyspace, &["restore", &file]), &["is not empty"]);
    is_whole();
    drop(Running::start(&restored, &keyspace));
    assert!(!mark.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_work_on_a_keyspace_or_say_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let (keyspace, other) = (keyspace().await, keyspace().await);
    let data = place("data");
    done(&task(&data, &keyspace, &SEED));
    refused(&task(&data, &keyspace, &SEED), &["seeded before"]);
    let whole = "171 messages in 4 rooms";
    assert!(done(&task(&data, &keyspace, &["check"])).contains(whole));

    let running = Running::start(&data, &keyspace);
    assert!(done(&task(&data, &keyspace, &["check"])).contains(whole), "beside a server");
    let file = place("backup");
    let file = file.to_str().unwrap();
    done(&task(&data, &keyspace, &["backup", file]));
    let retention = ["retention", "--messages", "100"];
    refused(&task(&data, &keyspace, &retention), &["folkmoot retention", "stop it first"]);
    drop(running);

    done(&task(&place("restored"), &other, &["restore", file]));
    assert!(done(&task(&place("restored"), &other, &["check"])).contains(whole));
    done(&task(&place("embedded"), "embedded", &["restore", file]));
    assert!(done(&task(&place("embedded"), "embedded", &["check"])).contains(whole));
    refused(&task(&place("again"), &other, &["restore", file]), &["is not empty"]);
    let deleted = done(&task(&data, &keyspace, &retention));
    assert!(deleted.contains("50 messages were deleted"), "{deleted}");
    assert!(done(&task(&data, &keyspace, &["check"])).contains("121 messages in 4 rooms"));

    let several = ["--cluster-name", "c", "--node", "a", "--cluster-certificates", "nowhere"];
    refused(&task(&data, &keyspace, &several), &["--store", "in Cassandra", "--cluster-name"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_keyspace_another_one_takes_over_says_so_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let keyspace = keyspace().await;
    let first = Running::start(&folder.path().join("first"), &keyspace);
    let _second = Running::start(&folder.path().join("second"), &keyspace);
    let said = tokio::task::spawn_blocking(|| first.ended()).await.unwrap();
    assert!(said.contains("another server has taken the store over, and this one stops"), "{said}");
}

//! `folkmoot migrate`: from a data directory into PostgreSQL and back, with everything and nothing
//! twice, however often it is killed on the way.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::furnished::Furnished;
use crate::storage_postgres::new_database;
use crate::support::{Scratch, Server};

fn folkmoot(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(data).args(arguments);
    command
}

fn migrate(data: &Path, from: &str, to: &str) -> Output {
    folkmoot(data, &["migrate", from, to]).output().expect("the binary was built")
}

/// What each table has, as the command says it.
fn tables(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = said.lines().filter(|line| line.contains("checksum")).collect();
    assert!(lines.len() > 20, "{said}");
    lines.into_iter().map(ToOwned::to_owned).collect()
}

/// Expects a refusal in one line that contains `words`.
fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    let line = said.lines().last().unwrap_or_default();
    assert!(line.starts_with("folkmoot: "), "{said}");
    assert!(words.iter().all(|word| line.contains(word)), "{words:?} in {line}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_circle_keeps_everything_and_each_store_begins_an_epoch_of_its_own() {
    let mut furnished = Furnished::stopped(Server::start().await).await;
    let database = new_database().await.to_string();
    let data = furnished.server.data();
    let (files, back) = (furnished.server.beside("files"), furnished.server.beside("back"));
    let there = tables(&migrate(&files, text(&data), &database));
    let again = migrate(&files, text(&data), &database);
    refused(&again, &["is not empty", "is there already"]);
    let here = tables(&migrate(&files, &database, text(&back)));
    assert_eq!(there, here, "the same rows after the whole circle");

    furnished.server.serve(files.clone(), &database).await;
    furnished.is_whole(20).await;
    furnished.server.stop().await;
    // Where the first circle ended nobody has written meanwhile.
    furnished.server.serve(back.clone(), "embedded").await;
    furnished.is_whole(20).await;
    furnished.server.stop().await;
    let last = furnished.server.beside("last");
    let here = tables(&migrate(&files, &database, text(&last)));
    assert_ne!(there, here, "a message more");
    furnished.server.serve(last.clone(), "embedded").await;
    furnished.is_whole(21).await;
    furnished.server.stop().await;
    let checked = folkmoot(&last, &["check"]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// Migrates, killed each time when it has carried one table more, until it is left alone.
fn migrate_killed_again_and_again(data: &Path, from: &str, to: &str) -> (usize, Output) {
    let (mut kills, mut went_on) = (0, 0);
    loop {
        let mut command = folkmoot(data, &["migrate", from, to]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut begun = lines.by_ref().map(Result::unwrap).inspect(|line| {
            went_on += usize::from(line.contains("going on in table"));
        });
        // The bar of a table that is all there is a line.
        let is_carried = begun.any(|line| line.contains(" of ") && line.contains('█'));
        if kills == 4 || !is_carried {
            begun.for_each(drop);
            let output = child.wait_with_output().unwrap();
            assert!(went_on >= 3, "{went_on} of {kills} went on");
            return (kills, output);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_is_killed_goes_on_and_nothing_is_there_twice() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    let (data, files, back) = (at("data"), at("files"), at("back"));
    let seed = ["seed", "--users", "6000", "--room", "6000:3000", "--room", "3x200:20"];
    let seeded = folkmoot(&data, &seed).output().unwrap();
    assert!(seeded.status.success(), "{}", String::from_utf8_lossy(&seeded.stderr));
    let database = new_database().await.to_string();

    let mut command = folkmoot(&files, &["migrate", text(&data), &database]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("users")));
    child.kill().unwrap();
    child.wait().unwrap();
    let server = folkmoot(&files, &["--store", &database, "--listen", "127.0.0.1:0"]);
    refused(&{ server }.output().unwrap(), &["holds a part of another store", "migrate"]);
    refused(&migrate(&files, &database, text(&back)), &["holds a part of another store"]);

    let (kills, output) = migrate_killed_again_and_again(&files, text(&data), &database);
    assert!(kills > 0);
    let there = tables(&output);
    assert!(there.iter().any(|line| line.starts_with("messages: 7000 rows")), "{there:?}");
    let (kills, output) = migrate_killed_again_and_again(&files, &database, text(&back));
    assert!(kills > 0);
    assert_eq!(there, tables(&output));
    let checked = folkmoot(&back, &["check"]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// Migrates until the users are there, and is killed then.
fn migrate_killed_early(data: &Path, from: &str, to: &str) {
    let mut child = folkmoot(data, &["migrate", from, to]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("users")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_whose_source_has_changed_since_it_was_killed_is_refused_by_name() {
    let scratch = Scratch::new();
    let at = |name: &str| scratch.path().join(name);
    let (data, to) = (at("data"), at("to"));
    let seed = ["seed", "--users", "6000", "--room", "6000:30000"];
    assert!(folkmoot(&data, &seed).output().unwrap().status.success());
    migrate_killed_early(&at("files"), text(&data), text(&to));
    let (mut child, server) = crate::process::listening(&data);
    crate::support::Account::sign_up(server, "late").await;
    child.kill().unwrap();
    child.wait().unwrap();
    let again = migrate(&at("files"), text(&data), text(&to));
    refused(&again, &["has changed since", "remove the directory"]);
    std::fs::remove_dir_all(&to).unwrap();
    let there = tables(&migrate(&at("files"), text(&data), text(&to)));
    assert!(there.iter().any(|line| line.starts_with("users: 6001 rows")), "{there:?}");
    assert!(folkmoot(&to, &["check"]).output().unwrap().status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_never_touches_what_is_served_or_full_or_of_a_later_version() {
    let mut furnished = Furnished::stopped(Server::start().await).await;
    let (database, other) = (new_database().await.to_string(), new_database().await.to_string());
    let data = furnished.server.data();
    let (from, files) = (text(&data).to_owned(), furnished.server.beside("files"));
    let beside = furnished.server.beside("beside");
    furnished.server.restart().await;
    refused(&migrate(&files, &from, &database), &["is in use by process"]);
    furnished.server.stop().await;

    // As it is, it would find the embedded store where files are to be.
    refused(&migrate(&data, &from, &database), &["--data", "another one"]);
    refused(&migrate(&files, &from, &from), &["onto itself"]);
    let none = furnished.server.beside("none");
    refused(&migrate(&files, text(&none), &database), &["holds no data"]);
    assert!(!none.exists());
    refused(&migrate(&files, &database, text(&beside)), &["holds no data"]);
    let wrong = "postgres://test:hush@127.0.0.1:1/x";
    let output = migrate(&files, &from, wrong);
    refused(&output, &["127.0.0.1:1"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hush"));

    tables(&migrate(&files, &from, &database));
    std::fs::create_dir_all(&beside).unwrap();
    std::fs::write(beside.join("letter.txt"), "mine").unwrap();
    refused(&migrate(&files, &database, text(&beside)), &["is not empty"]);
    refused(&migrate(&files, &database, &from), &["is not empty"]);

    furnished.server.serve(files.clone(), &database).await;
    let third = furnished.server.beside("third");
    let elsewhere = furnished.server.beside("elsewhere");
    refused(&migrate(&files, &database, text(&third)), &["is in use by"]);
    refused(&migrate(&elsewhere, &from, &database), &["is in use by"]);
    furnished.server.stop().await;

    let (client, connection) =
        tokio_postgres::connect(&database, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("UPDATE folkmoot.steps SET taken = 99").await.unwrap();
    refused(&migrate(&files, &database, text(&third)), &["schema 99"]);
    let database = rusqlite::Connection::open(data.join("folkmoot.sqlite")).unwrap();
    database.execute_batch("PRAGMA user_version = 99").unwrap();
    database.close().unwrap();
    refused(&migrate(&elsewhere, &from, &other), &["schema 99"]);
    std::fs::write(data.join("VERSION"), "9\n").unwrap();
    refused(&migrate(&elsewhere, &from, &other), &["format 9"]);
}

/// Both at once, into one store that is empty; how many went through.
fn migrate_both(scratch: &Scratch, from: &[std::path::PathBuf; 2], to: &str) -> usize {
    let begin = |(number, from): (usize, &std::path::PathBuf)| {
        let files = scratch.path().join(format!("files{number}"));
        let mut command = folkmoot(&files, &["migrate", text(from), to]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let begun: Vec<_> = from.iter().enumerate().map(begin).collect();
    let ended = begun.into_iter().map(|child| child.wait_with_output().unwrap());
    let (through, refusals): (Vec<_>, Vec<_>) = ended.partition(|output| output.status.success());
    for output in refusals {
        let said = String::from_utf8_lossy(&output.stderr);
        let words = ["is in use by", "is not empty", "another store", "other"];
        assert!(words.iter().any(|word| said.contains(word)), "{said}");
    }
    through.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_migrations_into_one_store_do_not_meet() {
    let scratch = Scratch::new();
    let from = ["one", "other"].map(|name| scratch.path().join(name));
    for from in &from {
        let seed = ["seed", "--users", "50", "--room", "50:2000"];
        assert!(folkmoot(from, &seed).output().unwrap().status.success());
    }
    let target = scratch.path().join("target");
    for _ in 0..3 {
        assert_eq!(migrate_both(&scratch, &from, text(&target)), 1);
        let checked = folkmoot(&target, &["check"]).output().unwrap();
        assert!(String::from_utf8_lossy(&checked.stdout).contains("2000 messages in 1 rooms"));
        std::fs::remove_dir_all(&target).unwrap();
    }
    let database = new_database().await.to_string();
    assert_eq!(migrate_both(&scratch, &from, &database), 1);
}

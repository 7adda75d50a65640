//! The tasks of an administrator's on a server whose data is in PostgreSQL: `check`, `backup`,
//! `restore`, `retention`, `seed`, and the size of the database.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::io;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::furnished::Furnished;
use crate::storage_postgres::new_database;
use crate::support::{Account, Server};

/// Runs a task on a store.
fn task(data: &Path, store: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(data).args(["--store", store]).args(arguments);
    command.output().expect("the binary was built")
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
    assert!(words.iter().all(|word| line.contains(word)), "{words:?} in {line}");
}

async fn sql(database: &str, statement: &str) {
    let (client, connection) =
        tokio_postgres::connect(database, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(statement).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_finds_gaps_and_references_to_nothing_and_nothing_in_a_whole_database() {
    let database = new_database().await.to_string();
    let mut furnished = Furnished::stopped(Server::on(&database).await).await;
    let data = furnished.server.data();
    let check = |database: &str| task(&data, database, &["check"]);
    furnished.server.restart().await;
    let whole = "20 messages in 1 rooms, 1 files";
    assert!(done(&check(&database)).contains(whole), "beside a server");
    furnished.server.stop().await;
    assert!(done(&check(&database)).contains(whole));
    let room = furnished.room.as_str();
    let cases: [(&str, &[&str]); 6] = [
        ("DELETE FROM messages WHERE seq IN (7, 8)", &[room, "messages 7 to 8 are missing"]),
        ("DELETE FROM messages WHERE seq = 20", &[room, "message 20 is missing"]),
        ("DELETE FROM room_events WHERE \"offset\" = 5", &[room, "events 1 to", "are there"]),
        ("DELETE FROM users", &[room, "message 2 is by an account that is not there"]),
        ("DELETE FROM attachments", &[room, "message 1 shows file", "not known"]),
        ("DELETE FROM rooms", &["message 2 is of room", room, "not there"]),
    ];
    for (number, (damage, words)) in cases.into_iter().enumerate() {
        // Of a copy each time.
        let copy = format!("{database}_damaged{number}");
        let (server, name) = database.rsplit_once('/').unwrap();
        let copy_name = copy.rsplit('/').next().unwrap();
        let made = format!("CREATE DATABASE {copy_name} TEMPLATE {name}");
        let postgres = format!("{server}/postgres");
        let (client, connection) =
            tokio_postgres::connect(&postgres, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        // Sessions end a moment after what had them.
        while client.batch_execute(&made).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        sql(&copy, &format!("SET search_path = folkmoot; {damage}")).await;
        let output = check(&copy);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{damage}: {said}");
        let is_named = |line: &str| words.iter().all(|word| line.contains(word));
        assert!(said.lines().any(is_named), "{words:?} in {said}");
    }
    let file = data.join("attachments/files").join(furnished.file["id"].as_str().unwrap());
    std::fs::remove_file(&file).unwrap();
    let output = check(&database);
    assert!(String::from_utf8_lossy(&output.stdout).contains("is missing"));
    let empty = new_database().await.to_string();
    refused(&check(&empty), &["holds no data"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_either_store_is_restored_into_either_while_the_server_goes_on() {
    let database = new_database().await.to_string();
    let mut furnished = Furnished::stopped(Server::on(&database).await).await;
    let data = furnished.server.data();
    let beside = |name: &str| furnished.server.beside(name);
    let (file, embedded, other) = (beside("monday"), beside("embedded"), beside("other"));
    let (second, last, mistyped) = (beside("tuesday"), beside("last"), beside("mistyped"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    furnished.server.restart().await;
    let said = done(&task(&data, &database, &["backup", &text(&file)]));
    assert!(said.contains("1 files"), "{said}");
    refused(&task(&data, &database, &["backup", &text(&file)]), &["is there already"]);
    // Its files would all be missing.
    let output = task(&mistyped, &database, &["backup", &text(&second)]);
    refused(&output, &["mistyped", "neither empty nor a data directory"]);
    assert!(!second.exists());
    furnished.server.stop().await;

    // PostgreSQL into a data directory, that into a backup, and this into another database.
    done(&task(&embedded, "embedded", &["restore", &text(&file)]));
    done(&task(&embedded, "embedded", &["backup", &text(&second)]));
    let restored = new_database().await.to_string();
    refused(&task(&other, &database, &["restore", &text(&second)]), &["is not empty"]);
    done(&task(&other, &restored, &["restore", &text(&second)]));
    let direct = new_database().await.to_string();
    done(&task(&last, &direct, &["restore", &text(&file)]));

    for (data, store) in [(&embedded, "embedded"), (&other, &*restored), (&last, &*direct)] {
        furnished.server.serve(data.clone(), store).await;
        furnished.is_whole(20).await;
        furnished.server.stop().await;
        done(&task(data, store, &["check"]));
    }
    // One that is damaged leaves nothing in the database.
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (empty, none) = (new_database().await.to_string(), furnished.server.beside("none"));
    refused(&task(&none, &empty, &["restore", &text(&file)]), &["damaged"]);
    refused(&task(&none, &empty, &["check"]), &["holds no data"]);
}

/// Another way to a database, on which the answer is lost that all rows are there.
async fn without_the_last_answer(database: &str) -> String {
    let (user, place) = database.split_once('@').unwrap();
    let (server, name) = place.split_once('/').unwrap();
    let server = server.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            tokio::spawn(pass(client, server));
        }
    });
    format!("{user}@{address}/{name}")
}

/// Passes on what both say, until the last commit of a copy is answered.
async fn pass(mut client: TcpStream, mut server: TcpStream) -> io::Result<()> {
    let has = |said: &[u8], word: &[u8]| said.windows(word.len()).any(|part| part == word);
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let mut is_last = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let said = &asked[..read?];
                is_last |= has(said, b"finished = 1");
                if said.is_empty() {
                    return Ok(());
                }
                server.write_all(said).await?;
            }
            read = server.read(&mut answered) => {
                let said = &answered[..read?];
                if said.is_empty() || is_last && has(said, b"COMMIT") {
                    return Ok(());
                }
                client.write_all(said).await?;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_has_not_heard_that_all_rows_are_there_leaves_the_files_of_their_server() {
    let database = new_database().await.to_string();
    let mut furnished = Furnished::stopped(Server::on(&database).await).await;
    let data = furnished.server.data();
    let (file, other) = (furnished.server.beside("monday"), furnished.server.beside("other"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    done(&task(&data, &database, &["backup", &text(&file)]));
    let restored = new_database().await.to_string();
    let deaf = without_the_last_answer(&restored).await;
    refused(&task(&other, &deaf, &["restore", &text(&file)]), &["cannot be reached"]);

    let checked = done(&task(&other, &restored, &["check"]));
    assert!(checked.contains("20 messages in 1 rooms, 1 files"), "{checked}");
    refused(&task(&other, &restored, &["restore", &text(&file)]), &["is not empty"]);
    furnished.server.serve(other.clone(), &restored).await;
    furnished.is_whole(20).await;
    furnished.server.stop().await;
    assert!(!other.join("RESTORING").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_set_beside_a_server_and_what_is_due_is_deleted_without_one() {
    let database = new_database().await.to_string();
    let mut furnished = Furnished::stopped(Server::on(&database).await).await;
    let data = furnished.server.data();
    let retention =
        |flags: &[&str]| done(&task(&data, &database, &[&["retention"], flags].concat()));
    furnished.server.restart().await;
    let said = retention(&["--messages", "5"]);
    assert!(said.contains("the newest 5 messages") && said.contains("a server runs"), "{said}");
    let room = furnished.room.clone();
    retention(&["--room", &room, "--messages", "7"]);
    furnished.server.stop().await;
    let said = retention(&[]);
    assert!(said.contains("13 messages were deleted"), "{said}");
    assert!(said.contains(&format!("{room} (Tea) keeps the newest 7 messages")), "{said}");
    assert!(done(&task(&data, &database, &["check"])).contains("7 messages in 1 rooms"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeded_database_serves_its_people_and_shows_its_size_and_is_not_seeded_twice() {
    let database = new_database().await.to_string();
    let mut server = Server::on(&database).await;
    let arguments = ["seed", "--users", "3000", "--room", "2500:300", "--room", "2x3:7"];
    refused(&task(&server.beside("elsewhere"), &database, &arguments), &["is in use by"]);
    server.stop().await;
    let said = done(&task(&server.data(), &database, &arguments));
    assert!(said.contains("3000 users, 4 rooms, 2506 memberships and 321 messages"), "{said}");
    refused(&task(&server.data(), &database, &arguments), &["seeded before"]);
    assert!(done(&task(&server.data(), &database, &["check"])).contains("321 messages in 4 rooms"));

    server.restart().await;
    let sign_in = json!({"name": "user000002", "password": "folkmoot-seed"}).to_string();
    let account = Account::of(&server.http("POST /api/v1/sessions", None, &sign_in).await);
    let mut user = server.connect(&account).await;
    let list = user.call("rooms.list", json!({})).await;
    let rooms = list["rooms"].as_array().unwrap();
    let large = rooms.iter().find(|room| room["members"] == 2_500).unwrap();
    let room = large["id"].as_str().unwrap().to_owned();
    assert_eq!(user.say(&room, "1", "hello @user000003").await, 301);
    let found = user.call("room.members", json!({"room": room, "prefix": "gar"})).await;
    let shown = found["members"][0]["display_name"].as_str().unwrap();
    assert!(shown.ends_with("García"), "{shown}");

    let admin = Account::of(&server.set_up("admin").await);
    let answer = server.http("GET /api/v1/admin/storage", Some(&admin.token), "").await.json();
    let parts = answer["parts"].as_array().unwrap();
    let size =
        |name: &str| parts.iter().find(|part| part["name"] == name).map(|part| &part["bytes"]);
    assert!(size("database").and_then(Value::as_u64).unwrap() > 1 << 20, "{parts:?}");
}

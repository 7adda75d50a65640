//! `backup` and `restore` that are killed, meet a full disk, a later version, or somebody else in the
//! directory.

#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::abuse::full_disk::must_mount;
use crate::process::listening_with;
use crate::storage_postgres::new_database;
use crate::support::Scratch;

/// Kills of each command; some come before it has begun, and some after its end.
const KILLS: u32 = 10;

fn folkmoot(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.arg("--data").arg(data).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our paths are text")
}

/// What it says if it ends well.
fn done(mut command: Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Expects a refusal in one line that contains `words`.
fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    let line = said.lines().last().unwrap_or_default();
    assert!(line.starts_with("folkmoot: "), "{said}");
    assert!(words.iter().all(|word| line.contains(word)), "{words:?} in {line}");
}

/// A data directory with a room of so many messages, and how its backup takes.
fn seeded(scratch: &Scratch, messages: u32) -> PathBuf {
    let data = scratch.path().join("data");
    let room = format!("200:{messages}");
    done(folkmoot(&data, &["seed", "--users", "200", "--room", &room]));
    data
}

/// What is in a directory.
fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Starts a command and kills it after a while; says whether it was killed amid its work.
fn kill_after(mut command: Command, wait: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(wait);
    let is_amid = child.try_wait().unwrap().is_none();
    end(&mut child);
    is_amid
}

fn end(child: &mut Child) {
    let _ = child.kill();
    child.wait().unwrap();
}

#[test]
fn a_backup_that_is_killed_leaves_nothing_that_looks_like_one_and_the_next_goes_through() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 60_000);
    let (place, file) = (scratch.path().join("backups"), scratch.path().join("backups/monday"));
    std::fs::create_dir(&place).unwrap();
    let began = Instant::now();
    done(folkmoot(&data, &["backup", text(&file)]));
    let takes = began.elapsed();
    std::fs::remove_file(&file).unwrap();
    let mut killed = 0;
    for kill in 1..=KILLS {
        let wait = takes * kill / (KILLS + 1);
        killed += u32::from(kill_after(folkmoot(&data, &["backup", text(&file)]), wait));
        if file.exists() {
            // It was ready: whole, and never a part of one.
            let other = scratch.path().join(format!("other{kill}"));
            done(folkmoot(&other, &["restore", text(&file)]));
            std::fs::remove_file(&file).unwrap();
        }
    }
    assert!(killed > 0, "it was never killed amid its work");
    let other = scratch.path().join("other");
    done(folkmoot(&data, &["backup", text(&file)]));
    assert_eq!(names(&place), ["monday"], "what was killed has left something");
    done(folkmoot(&other, &["restore", text(&file)]));
    let checked = done(folkmoot(&other, &["check"]));
    assert!(checked.contains("60000 messages in 1 rooms"), "{checked}");
}

#[test]
fn no_file_may_be_removed_from_the_beginning_of_a_backup_to_its_end() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 20_000);
    let file = scratch.path().join("monday");
    let lock = data.join("attachments/lock");
    let open = || File::options().create(true).append(true).open(&lock).unwrap();
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    drop(open());
    let mut backup = folkmoot(&data, &["backup", text(&file)]).spawn().unwrap();
    let (begun, mut kept) = (file.with_extension("unfinished"), 0);
    while backup.try_wait().unwrap().is_none() {
        // As a sweep does. It ends before the next look.
        if begun.exists() && open().try_lock().is_ok() {
            assert!(file.exists(), "a file could be removed amid a backup");
            break;
        }
        kept += u32::from(begun.exists());
    }
    assert!(backup.wait().unwrap().success() && kept > 0, "{kept}");
}

#[test]
fn two_backups_into_one_file_do_not_meet() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 60_000);
    let file = scratch.path().join("monday");
    let first = folkmoot(&data, &["backup", text(&file)]).spawn().unwrap();
    let second = folkmoot(&data, &["backup", text(&file)]).spawn().unwrap();
    let ended = [first, second].map(|child| child.wait_with_output().unwrap());
    let whole = ended.iter().filter(|output| output.status.success()).count();
    assert_eq!(whole, 1, "{ended:?}");
    done(folkmoot(&scratch.path().join("other"), &["restore", text(&file)]));
}

/// A pipe at that path, in the place of what may be there.
fn make_pipe(path: &Path) {
    let fresh = path.with_extension("fresh");
    let made = Command::new("mkfifo").arg(&fresh).status().unwrap();
    assert!(made.success(), "mkfifo: {made}");
    std::fs::rename(&fresh, path).unwrap();
}

/// Opens a pipe that another process reads; returns once it does.
fn into_pipe(path: &Path) -> File {
    std::fs::OpenOptions::new().write(true).open(path).unwrap()
}

/// Kills a restore that has checked a whole backup, and was given this much of it to write.
fn kill_amid_restore(other: &Path, backup: &[u8], given: usize) {
    let pipe = other.with_extension("pipe");
    make_pipe(&pipe);
    let mut command = folkmoot(other, &["restore", text(&pipe)]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut checks = into_pipe(&pipe);
    // Before it comes to its end: the second reading has a pipe of its own.
    make_pipe(&pipe);
    checks.write_all(backup).unwrap();
    drop(checks);
    let mut writes = into_pipe(&pipe);
    writes.write_all(&backup[..given]).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while given > 0 && names(&other.join("log")).is_empty() {
        assert!(Instant::now() < until, "it does not begin to write");
        std::thread::sleep(Duration::from_millis(1));
    }
    end(&mut child);
}

/// Kills a restore as soon as there is a file of that name.
fn kill_restore_at(other: &Path, backup: &Path, name: &str) {
    let mut command = folkmoot(other, &["restore", text(backup)]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !other.join(name).exists() && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    end(&mut child);
}

/// What a killed restore has left is no server's, and is taken by the next restore, once.
fn is_begun_anew(other: &Path, backup: &Path) {
    if !other.join("VERSION").exists() {
        let refusal = ["neither empty nor a data directory"];
        refused(&folkmoot(other, &["retention"]).output().unwrap(), &refusal);
        done(folkmoot(other, &["restore", text(backup)]));
    }
    let checked = done(folkmoot(other, &["check"]));
    assert!(checked.contains("20000 messages in 1 rooms"), "{checked}");
    refused(&folkmoot(other, &["restore", text(backup)]).output().unwrap(), &["is not empty"]);
}

#[test]
fn a_restore_that_is_killed_is_begun_anew_by_the_next_and_no_server_takes_what_it_left() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 20_000);
    let file = scratch.path().join("monday");
    done(folkmoot(&data, &["backup", text(&file)]));
    let backup = std::fs::read(&file).unwrap();
    for kill in 0..KILLS as usize {
        let other = scratch.path().join(format!("killed{kill}"));
        kill_amid_restore(&other, &backup, backup.len() * kill / KILLS as usize);
        assert!(!other.join("VERSION").exists(), "it was given a part and has a whole");
        assert!(other.join("RESTORING").exists(), "it has not begun");
        is_begun_anew(&other, &file);
        std::fs::remove_dir_all(&other).unwrap();
    }
    for name in ["lock", "RESTORING", "log", "folkmoot.sqlite", "VERSION"] {
        let other = scratch.path().join(format!("killed-{name}"));
        kill_restore_at(&other, &file, name);
        is_begun_anew(&other, &file);
        std::fs::remove_dir_all(&other).unwrap();
    }
}

/// A settings file for a server with its files outside its data directory.
fn files_at(scratch: &Scratch, files: &Path) -> PathBuf {
    scratch.file("folkmoot.toml", &format!("[attachments]\ndirectory = {files:?}\n"))
}

#[test]
fn what_a_killed_restore_has_left_of_files_elsewhere_goes_with_the_same_command() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 100);
    let at = |name: &str| scratch.path().join(name);
    let (file, files, other) = (at("monday"), at("files"), at("other"));
    done(folkmoot(&data, &["backup", text(&file)]));
    let settings = files_at(&scratch, &files);
    for directory in [&other, &files] {
        std::fs::create_dir_all(directory.join("files")).unwrap();
        std::fs::write(directory.join("RESTORING"), text(&other)).unwrap();
        std::fs::write(directory.join("files/half"), "ha").unwrap();
    }
    done(folkmoot(&other, &["--config", text(&settings), "restore", text(&file)]));
    for directory in [&other, &files] {
        assert!(!directory.join("RESTORING").exists() && !directory.join("files/half").exists());
    }

    // Killed before the mark was written out.
    std::fs::remove_dir_all(&files).unwrap();
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("RESTORING"), "").unwrap();
    done(folkmoot(&at("third"), &["--config", text(&settings), "restore", text(&file)]));
}

#[test]
fn a_restore_that_was_killed_at_its_end_has_no_other_one_empty_the_files_of_its_server() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 100);
    let at = |name: &str| scratch.path().join(name);
    let (file, files, first, second) = (at("monday"), at("files"), at("first"), at("second"));
    done(folkmoot(&data, &["backup", text(&file)]));
    let settings = files_at(&scratch, &files);
    let restore =
        |data: &Path| folkmoot(data, &["--config", text(&settings), "restore", text(&file)]);
    done(restore(&first));
    let marks = [&first, &files].map(|directory| directory.join("RESTORING"));
    for mark in &marks {
        std::fs::write(mark, text(&first)).unwrap();
    }
    let live = files.join("files/live");
    std::fs::write(&live, "what a server has taken meanwhile").unwrap();

    refused(&restore(&second).output().unwrap(), &[text(&files), "is not empty"]);
    refused(&restore(&first).output().unwrap(), &[text(&first), "is not empty"]);
    assert!(live.exists(), "a file of a server that is whole is gone");
    let (mut server, _) = listening_with(&first, &settings);
    end(&mut server);
    assert!(!marks.iter().any(|mark| mark.exists()), "a server that is whole is said not to be");
}

#[test]
fn nobody_takes_a_directory_while_it_is_restored() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 1_000);
    let (file, other) = (scratch.path().join("monday"), scratch.path().join("other"));
    done(folkmoot(&data, &["backup", text(&file)]));
    let version = other.join("VERSION");
    // As a server does that is started again and again until there is something to serve.
    let taking = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(60);
        while !version.exists() {
            assert!(Instant::now() < until, "it is never restored");
        }
        let lock = version.with_file_name("lock");
        let options = std::fs::OpenOptions::new().create(true).append(true).open(lock).unwrap();
        let is_taken = options.try_lock().is_ok();
        (options, is_taken)
    });
    let restored = folkmoot(&other, &["restore", text(&file)]).output().unwrap();
    let (lock, is_taken) = taking.join().unwrap();
    drop(lock);
    assert!(restored.status.success(), "{is_taken}: {restored:?}");
    let checked = done(folkmoot(&other, &["check"]));
    assert!(checked.contains("1000 messages in 1 rooms"), "{checked}");
}

#[test]
fn two_restores_into_one_directory_do_not_meet() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 20_000);
    let (file, other) = (scratch.path().join("monday"), scratch.path().join("other"));
    done(folkmoot(&data, &["backup", text(&file)]));
    for _ in 0..5 {
        let restores =
            [(); 2].map(|()| folkmoot(&other, &["restore", text(&file)]).spawn().unwrap());
        let ended = restores.map(|child| child.wait_with_output().unwrap());
        let whole = ended.iter().filter(|output| output.status.success()).count();
        assert_eq!(whole, 1, "{ended:?}");
        let checked = done(folkmoot(&other, &["check"]));
        assert!(checked.contains("20000 messages in 1 rooms"), "{checked}");
        std::fs::remove_dir_all(&other).unwrap();
    }
}

#[test]
fn a_directory_whose_data_is_in_a_database_is_said_to_be_that() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    std::fs::create_dir_all(data.join("log")).unwrap();
    std::fs::write(data.join("VERSION"), "1\n").unwrap();
    std::fs::write(data.join("POSTGRES"), "").unwrap();
    let file = scratch.path().join("monday");
    for task in [&["backup", text(&file)][..], &["check"], &["retention"]] {
        let output = folkmoot(&data, task).output().unwrap();
        refused(&output, &["its data in PostgreSQL: say where with --store"]);
    }
    assert!(!file.exists());
}

/// Runs a command in a directory that is a disk of its own; what it says, and what is left there.
fn on_a_disk(scratch: &Scratch, size: &str, command: &str) -> (bool, String) {
    let mount = scratch.path().join("disk");
    must_mount(&mount);
    let script = format!(
        r#"mount -t tmpfs -o "size={size}" tmpfs "$1" && cd "$1" && mkdir there && {command}
        code=$?; ls -A there; exit $code"#
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"])
        .arg(&mount)
        .env("FOLKMOOT", env!("CARGO_BIN_EXE_folkmoot"))
        .output()
        .unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let left = said(&output.stdout);
    assert_eq!(left, "", "something is left: {left}");
    (output.status.success(), said(&output.stderr))
}

#[test]
fn a_full_disk_is_named_and_nothing_half_done_is_left() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 60_000);
    let file = scratch.path().join("monday");
    done(folkmoot(&data, &["backup", text(&file)]));
    let bytes = std::fs::metadata(&file).unwrap().len();
    // From nearly nothing to nearly enough.
    for part in [1, 3, 5, 7, 9] {
        let size = bytes * part / 10;
        let backup = format!(r#""$FOLKMOOT" --data {} backup there/tuesday"#, text(&data));
        let (is_done, said) = on_a_disk(&scratch, &size.to_string(), &backup);
        assert!(!is_done && said.contains("folkmoot: "), "{said}");
        assert!(said.contains("full") || said.contains("No space left"), "{said}");
        let restore = format!(r#""$FOLKMOOT" --data there restore {}"#, text(&file));
        let (is_done, said) = on_a_disk(&scratch, &size.to_string(), &restore);
        assert!(!is_done && said.contains("folkmoot: "), "{said}");
        assert!(said.contains("full") || said.contains("No space left"), "{said}");
    }
}

/// A backup whose VERSION says something else.
fn of_version(backup: &[u8], version: &[u8; 2]) -> Vec<u8> {
    let mut bytes = backup.to_vec();
    assert_eq!(&bytes[49..51], b"1\n", "VERSION comes first");
    bytes[49..51].copy_from_slice(version);
    let head = crc32c::crc32c_append(crc32c::crc32c(&1_u64.to_le_bytes()), &[2]);
    bytes[45..49].copy_from_slice(&crc32c::crc32c_append(head, version).to_le_bytes());
    bytes
}

#[test]
fn a_backup_of_a_later_version_is_refused_and_nothing_is_written() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 100);
    let at = |name: &str| scratch.path().join(name);
    let (file, later, other) = (at("monday"), at("later"), at("other"));
    done(folkmoot(&data, &["backup", text(&file)]));
    let whole = std::fs::read(&file).unwrap();
    let restore = || folkmoot(&other, &["restore", text(&later)]).output().unwrap();

    std::fs::write(&later, of_version(&whole, b"9\n")).unwrap();
    refused(&restore(), &["format \"9\"", "format 1"]);
    assert!(!other.exists(), "it was refused after something was written");

    let mut bytes = whole;
    bytes[8] = 9;
    let head = crc32c::crc32c(&bytes[..12]).to_le_bytes();
    bytes[12..16].copy_from_slice(&head);
    std::fs::write(&later, bytes).unwrap();
    refused(&restore(), &["format 9", "newer folkmoot"]);
    assert!(!other.exists());

    let database = rusqlite::Connection::open(data.join("folkmoot.sqlite")).unwrap();
    database.execute_batch("PRAGMA user_version = 99").unwrap();
    database.close().unwrap();
    std::fs::remove_file(&later).unwrap();
    let _ = folkmoot(&data, &["backup", text(&later)]).output().unwrap();
    if later.exists() {
        refused(&restore(), &["schema 99"]);
        assert_eq!(names(&other), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_into_postgresql_that_is_killed_goes_through_when_it_is_given_again() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 30_000);
    let file = scratch.path().join("monday");
    done(folkmoot(&data, &["backup", text(&file)]));
    let at = |name: &str| scratch.path().join(name);
    let first = new_database().await.to_string();
    let restore = |data: &Path, store: &str| {
        let mut command = folkmoot(data, &["--store", store]);
        command.args(["restore", text(&file)]);
        command
    };
    let began = Instant::now();
    done(restore(&at("first"), &first));
    let takes = began.elapsed();
    let mut killed = 0;
    for kill in 1..=KILLS / 2 {
        let (store, other) = (new_database().await.to_string(), at(&format!("killed{kill}")));
        let wait = takes * kill / (KILLS / 2 + 1);
        if !kill_after(restore(&other, &store), wait) {
            continue;
        }
        killed += 1;
        if kill % 2 == 0 && other.join("RESTORING").exists() {
            // As a kill leaves it right before the database says that all rows are there.
            std::fs::write(other.join("POSTGRES"), "").unwrap();
            std::fs::write(other.join("VERSION"), "1\n").unwrap();
        }
        // The session of what was killed ends a moment later.
        let until = Instant::now() + Duration::from_secs(20);
        let mut again = restore(&other, &store).output().unwrap();
        while String::from_utf8_lossy(&again.stderr).contains("in use") && Instant::now() < until {
            again = restore(&other, &store).output().unwrap();
        }
        assert!(again.status.success(), "{again:?}");
        let mut check = folkmoot(&other, &["--store", &store]);
        check.arg("check");
        let checked = done(check);
        assert!(checked.contains("30000 messages in 1 rooms"), "{checked}");
        assert!(!names(&other).iter().any(|name| name == "restoring"), "{:?}", names(&other));
    }
    assert!(killed > 0, "it was never killed amid its work");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_into_a_database_that_a_migration_has_begun_to_fill_leaves_that_as_it_is() {
    let scratch = Scratch::new();
    let data = seeded(&scratch, 30_000);
    let at = |name: &str| scratch.path().join(name);
    let (file, files, other) = (at("monday"), at("files"), at("other"));
    done(folkmoot(&data, &["backup", text(&file)]));
    let store = new_database().await.to_string();
    let migrate = || folkmoot(&files, &["migrate", text(&data), &store]);
    let mut wait = Duration::from_millis(50);
    let has_rows = async || {
        let (client, connection) =
            tokio_postgres::connect(&store, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.query_one("SELECT table_name FROM folkmoot.migration", &[]).await.is_ok()
    };
    while !has_rows().await {
        assert!(kill_after(migrate(), wait), "it was never killed amid its work");
        wait += Duration::from_millis(50);
    }
    let mut restore = folkmoot(&other, &["--store", &store]);
    let output = restore.args(["restore", text(&file)]).output().unwrap();
    refused(&output, &["holds a part of what was carried from another store"]);
    assert!(has_rows().await, "the migration's part is gone");
    assert_eq!(names(&other), Vec::<String>::new());

    let restore = format!(r#""$FOLKMOOT" --data there --store {store} restore {}"#, text(&file));
    let (is_done, said) = on_a_disk(&scratch, "65536", &restore);
    assert!(!is_done && said.contains("holds a part of what was carried"), "{said}");
    assert!(has_rows().await, "the migration's part is gone from a full disk");
    done(migrate());
}

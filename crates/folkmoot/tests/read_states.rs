//! `folkmoot read-states` as a real process that is killed without warning: what it answered is
//! there afterwards.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use althing_testkit::servers::{CassandraServer, PostgresServer};
use folkmoot_read_states::wire::{Command, Mention, Outcome, Place, Reply, Request, get, put};
use folkmoot_read_states::{Change, Options, ReadStates, SqliteRows};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

const KILLS: u64 = 6;
const USERS: u64 = 50;
const ROOM: u64 = 3;
/// Messages without an answer. More of them would be refused by name while the disk is slow.
const UNANSWERED_MAX: usize = 1_000;

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(data: &Path) -> Self {
        Self::start_on(data, None)
    }

    fn start_on(data: &Path, rows: Option<&str>) -> Self {
        Self::run(Process::new(env!("CARGO_BIN_EXE_folkmoot")), data, rows)
    }

    /// On a disk of four megabytes, mounted there for it alone; from outside it is seen at `disk`.
    fn start_on_a_small_disk(mount: &Path) -> (Self, PathBuf) {
        let mut process = Process::new("unshare");
        let script = r#"mount -t tmpfs -o size=4m tmpfs "$1" && program=$2 && shift 2 && exec "$program" "$@""#;
        process.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
        process.arg(mount).arg(env!("CARGO_BIN_EXE_folkmoot"));
        let server = Self::run(process, mount, None);
        let disk = PathBuf::from(format!("/proc/{}/root", server.process.id()));
        (server, disk.join(mount.strip_prefix("/").unwrap()))
    }

    fn run(mut process: Process, data: &Path, rows: Option<&str>) -> Self {
        let mut process = process
            .args(["--data".as_ref(), data.as_os_str()])
            // Rounds of storing are as likely to be hit as anything else.
            .args(["read-states", "--at", "127.0.0.1:0", "--store-after", "1"])
            .args(rows.iter().flat_map(|url| ["--rows", url]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { process, address }
    }
}

impl Drop for Server {
    /// SIGKILL, at whatever moment that is.
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn frame(command: Command) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&Request { command: Some(command) }, &mut bytes);
    bytes
}

/// Mentions each user by one message after the other, until the server is gone. Returns how many
/// mentions of each were answered, and how many were sent.
async fn mention_until_killed(mut server: Option<Server>, from: u64) -> (u64, u64) {
    let address = server.as_ref().unwrap().address.clone();
    let (mut reader, mut writer) = TcpStream::connect(address).await.unwrap().into_split();
    let room = Arc::new(Semaphore::new(UNANSWERED_MAX));
    let for_sender = room.clone();
    let sending = tokio::spawn(async move {
        let mut sent = 0;
        loop {
            let Ok(permit) = for_sender.acquire().await else { return sent };
            permit.forget();
            let message = from + sent + 1;
            let users = (0..USERS).collect();
            let bytes = frame(Command::Mention(Mention { users, room: ROOM, message }));
            if writer.write_all(&bytes).await.is_err() {
                return sent;
            }
            sent += 1;
        }
    });
    let (mut answered, mut buffer) = (0, Vec::new());
    // Longer each time, so that kills meet different moments of a round.
    let enough = 200 + from % 700;
    while let Ok(Some(reply)) = get::<Reply>(&mut reader, &mut buffer).await {
        assert!(matches!(reply.outcome, Some(Outcome::Done(_))), "{reply:?}");
        answered += 1;
        room.add_permits(1);
        if answered == enough {
            server = None;
        }
    }
    drop(server);
    room.close();
    let sent = sending.await.unwrap();
    (answered, sent)
}

async fn mentions(server: &Server, user: u64) -> u64 {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    stream.write_all(&frame(Command::One(Place { user, room: ROOM }))).await.unwrap();
    let reply: Reply = get(&mut stream, &mut Vec::new()).await.unwrap().unwrap();
    let Some(Outcome::States(states)) = reply.outcome else { panic!("{reply:?}") };
    states.states[0].mentions.into()
}

#[tokio::test]
async fn nothing_that_was_answered_is_lost_or_doubled_when_the_process_is_killed() {
    survives_kills(None).await;
}

#[tokio::test]
async fn on_postgresql_nothing_that_was_answered_is_lost_or_doubled_when_the_process_is_killed() {
    let database = PostgresServer::start();
    survives_kills(Some(&database.url())).await;
}

#[tokio::test]
async fn on_cassandra_nothing_that_was_answered_is_lost_or_doubled_when_the_process_is_killed() {
    let database = CassandraServer::start();
    survives_kills(Some(&format!("cassandra://{}/chat?replicas=1", database.host()))).await;
}

async fn survives_kills(rows: Option<&str>) {
    let data = tempfile::tempdir().unwrap();
    let (mut at_least, mut at_most) = (0, 0);
    for kill in 0..KILLS {
        let (answered, sent) =
            mention_until_killed(Some(Server::start_on(data.path(), rows)), at_most + kill).await;
        at_least += answered;
        at_most += sent;
        let server = Server::start_on(data.path(), rows);
        let counted: Vec<_> =
            futures_util::future::join_all((0..USERS).map(|user| mentions(&server, user))).await;
        for (user, counted) in counted.iter().enumerate() {
            assert!(
                (at_least..=at_most).contains(counted),
                "kill {kill}: user {user} has {counted} mentions, {at_least} were answered, {at_most} sent"
            );
        }
        // A message mentions all of its users or, cut off by the kill, the first ones.
        let most = counted.iter().max().copied().unwrap();
        at_least = counted.iter().min().copied().unwrap();
        at_most = most;
    }
}

/// A mention of one user; whether it was answered as done, or what the refusal's text is.
async fn mention(stream: &mut TcpStream, message: u64) -> Result<(), String> {
    let command = Command::Mention(Mention { users: vec![1], room: ROOM, message });
    stream.write_all(&frame(command)).await.unwrap();
    let reply: Reply = get(stream, &mut Vec::new()).await.unwrap().unwrap();
    match reply.outcome {
        Some(Outcome::Done(_)) => Ok(()),
        Some(Outcome::Failure(failure)) => Err(failure.text),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_disk_that_was_full_for_a_while_loses_nothing_that_was_answered_and_is_used_again() {
    let (mount, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (server, disk) = Server::start_on_a_small_disk(mount.path());
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let (mut answered, mut sent) = (0, 0);
    for _ in 0..2 {
        let mut filler = File::create(disk.join("filler")).unwrap();
        for len in [1 << 16, 1 << 12, 1] {
            while filler.write_all(&vec![1; len]).is_ok() {}
        }
        drop(filler);
        loop {
            sent += 1;
            match mention(&mut stream, sent).await {
                Ok(()) => answered += 1,
                Err(text) => {
                    assert!(text.starts_with("the log of read states failed to write"), "{text}");
                    break;
                }
            }
        }
        std::fs::remove_file(disk.join("filler")).unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            sent += 1;
            match mention(&mut stream, sent).await {
                Ok(()) => break answered += 1,
                Err(text) => assert!(Instant::now() < until, "the disk has room: {text}"),
            }
        }
    }
    // What a crash would leave.
    let copied = Process::new("cp").arg("-r").arg(disk.join(".")).arg(after.path()).status();
    assert!(copied.unwrap().success());
    drop(server);
    let counted = mentions(&Server::start(after.path()), 1).await;
    assert!((answered..=sent).contains(&counted), "{counted} of {answered} answered, {sent} sent");
}

/// Changes go on while the database is away, and are in it once it is back.
#[tokio::test]
async fn what_was_answered_while_postgresql_was_away_reaches_it_and_another_process_reads_it() {
    let mut database = PostgresServer::start();
    let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut server = Server::start_on(data.path(), Some(&database.url()));
    database.kill();
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let users = (0..USERS).collect();
    let bytes = frame(Command::Mention(Mention { users, room: ROOM, message: 1 }));
    stream.write_all(&bytes).await.unwrap();
    let reply: Reply = get(&mut stream, &mut Vec::new()).await.unwrap().unwrap();
    assert!(matches!(reply.outcome, Some(Outcome::Done(_))), "{reply:?}");
    database.start_again();
    let stopped = Process::new("kill").arg(server.process.id().to_string()).status().unwrap();
    assert!(stopped.success());
    assert!(server.process.wait().unwrap().success());
    let successor = Server::start_on(other.path(), Some(&database.url()));
    assert_eq!(mentions(&successor, USERS - 1).await, 1, "its own directory has nothing of it");
}

/// Two million changes of a few users: what a minute of them leaves, or a day without the database.
#[tokio::test]
async fn a_long_log_is_replayed_in_little_memory() {
    const CHANGES: u64 = 2_000_000;
    let (before, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directory = data.path().join("read-states");
    std::fs::create_dir(&directory).unwrap();
    let store = Arc::new(SqliteRows::open(&before.path().join("read-states.db")).unwrap());
    let options = Options {
        log: Some(before.path().join("log")),
        store_after: Duration::from_secs(3_600),
        ..Options::default()
    };
    let states = ReadStates::open(store, options).await.unwrap();
    let mut last = None;
    for message in 1..=CHANGES {
        let read = Change::Acknowledge { message, mentions_left: 1 };
        last = Some(states.change(message % USERS, ROOM, read).unwrap());
    }
    states.durable(last.unwrap()).await.unwrap();
    let copied = Process::new("cp").arg("-r").arg(before.path().join(".")).arg(&directory).status();
    assert!(copied.unwrap().success());
    let begun = Instant::now();
    let server = Server::start(data.path());
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most_kib: u64 = most.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap();
    println!("{CHANGES} changes in {:?}, {} MiB", begun.elapsed(), most_kib / 1_024);
    assert!(most_kib / 1_024 < 200, "{} MiB", most_kib / 1_024);
    assert_eq!(mentions(&server, USERS - 1).await, 1);
}

#[tokio::test]
async fn two_processes_cannot_use_one_directory() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let second = Process::new(env!("CARGO_BIN_EXE_folkmoot"))
        .args(["--data".as_ref(), data.path().as_os_str()])
        .args(["read-states", "--at", "127.0.0.1:0"])
        .output()
        .unwrap();
    assert!(!second.status.success());
    let why = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(why.contains("another process"), "{why}");
    drop(server);
}

/// A stop stores everything: what is left of the log is empty.
#[tokio::test]
async fn a_stop_stores_everything() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(data.path());
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let users = (0..USERS).collect();
    let bytes = frame(Command::Mention(Mention { users, room: ROOM, message: 1 }));
    stream.write_all(&bytes).await.unwrap();
    let reply: Option<Reply> = get(&mut stream, &mut Vec::new()).await.unwrap();
    assert!(reply.is_some());
    let stopped = Process::new("kill").arg(server.process.id().to_string()).status().unwrap();
    assert!(stopped.success());
    assert!(server.process.wait().unwrap().success());
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    let log = data.path().join("read-states/log");
    let bytes: u64 =
        std::fs::read_dir(log).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(bytes, 0);
    assert_eq!(mentions(&Server::start(data.path()), USERS - 1).await, 1);
}

//! A disk that fills up while people chat, and has room again.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::process::address_of;
use crate::support::{Account, Client, Failure, PATIENT, Scratch};

/// A segment of the log, which is preallocated, the next one, and a database with what the first
/// holds.
const DISK: &str = "size=320m";
/// Attempts until the server has found the room that was made: it looks four times a second.
const ATTEMPTS_MAX: usize = 100_000;

const KILLS_ON_FULL: usize = 3;

struct Mounted {
    child: Child,
    /// Where the disk is seen from outside its namespace.
    disk: PathBuf,
}

/// A server whose data directory is a tmpfs that goes with it.
fn start(mount: &Path, settings: &Path) -> (Mounted, std::net::SocketAddr) {
    let script = r#"mount -t tmpfs -o "$1" tmpfs "$2" && exec "$3" --listen 127.0.0.1:0 --data "$2/data" --config "$4""#;
    let mut child = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", DISK])
        .arg(mount)
        .arg(env!("CARGO_BIN_EXE_folkmoot"))
        .arg(settings)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was there a moment ago");
    let address = address_of(&mut child);
    let disk = PathBuf::from(format!("/proc/{}/root", child.id()));
    let disk = disk.join(mount.strip_prefix("/").expect("an absolute path"));
    (Mounted { child, disk }, address)
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes until nothing more fits.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).expect("the disk is there");
    for len in [1 << 20, 4 << 10, 1] {
        while file.write_all(&vec![1; len]).is_ok() {}
    }
}

/// Fails where this system does not let a test mount a disk of its own: who wants to pass over that
/// says so to the test runner.
pub(crate) fn must_mount(mount: &Path) {
    std::fs::create_dir_all(mount).expect("the temporary directory is writable");
    let tried = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs"])
        .arg(mount)
        .output();
    let may = tried.as_ref().is_ok_and(|output| output.status.success());
    assert!(may, "a tmpfs in a user namespace (util-linux's unshare) cannot be mounted: {tried:?}");
}

/// Messages fit for a while into what is set aside for the log; then they are refused. Gives the
/// number of the last one that was acknowledged, and the refusal of the next.
async fn say_until_refused(client: &mut Client, room: &str, last: u64) -> (u64, Failure) {
    let body = "\u{1F469}".repeat(8_000);
    let mut said = last;
    loop {
        let message = json!({"room": room, "key": format!("full {said}"), "body": body});
        match client.rpc("message.send", message).await {
            Ok(sent) => {
                said += 1;
                assert_eq!(sent["seq"], said, "messages have no gaps in their numbers");
            }
            Err(refused) => return (said, refused),
        }
    }
}

/// The log finds the room that was made by itself, perhaps a moment after the database did; until
/// then it refuses. Gives the number of the message.
async fn say_once_writable(client: &mut Client, room: &str) -> u64 {
    say_key_once_writable(client, room, "1").await
}

async fn say_key_once_writable(client: &mut Client, room: &str, key: &str) -> u64 {
    let message = json!({"room": room, "key": key, "body": "after"});
    for _ in 0..ATTEMPTS_MAX {
        match client.rpc("message.send", message.clone()).await {
            Ok(sent) => return sent["seq"].as_u64().expect("a number"),
            Err(refused) => assert_eq!(refused.code, 503, "{refused:?}"),
        }
    }
    panic!("the log did not find the room that was made");
}

/// Nothing that was acknowledged is missing, and nothing that was refused is there.
async fn all_there(client: &mut Client, room: &str, said: u64) {
    let mut seq = said;
    while seq > 0 {
        let page = json!({"room": room, "before": seq + 1, "limit": 5});
        let page = client.call("history.get", page).await;
        let messages = page["messages"].as_array().expect("a list");
        assert!(!messages.is_empty(), "message {seq} was acknowledged, and is gone");
        for message in messages.iter().rev() {
            assert_eq!(message["seq"], seq);
            seq -= 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_with_its_reason_and_everything_goes_on_after_it() {
    let scratch = Scratch::new();
    must_mount(&scratch.path().join("disk"));
    let limits = "[limits]\nmessages_per_second = 0\nchanges_per_minute = 0\n\
        rooms_per_minute = 0\nquestions_per_minute = 0\n";
    let settings = scratch.file("folkmoot.toml", &format!("{limits}{PATIENT}"));
    let (mounted, server) = start(&scratch.path().join("disk"), &settings);
    let mut people = Vec::new();
    for name in ["anna", "bob"] {
        people.push(Account::sign_up(server, name).await);
    }
    let (mut anna, mut bob) = (Client::open(server).await, Client::open(server).await);
    anna.connect(&people[0].token).await.expect("the token is valid");
    bob.connect(&people[1].token).await.expect("the token is valid");
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    anna.say(&room, "0", "before").await;
    let ballast = mounted.disk.join("ballast");
    fill(&ballast);

    // Whatever needs room says so, until something has needed it; what was acknowledged counts.
    let mut acknowledged: Vec<Value> = Vec::new();
    let mut refused = None;
    for n in 0..ATTEMPTS_MAX {
        let room = anna.rpc("room.create", json!({"name": format!("Room {n}")})).await;
        match room {
            Ok(room) => acknowledged.push(room["id"].clone()),
            Err(failure) => {
                refused = Some(failure);
                break;
            }
        }
    }
    let refused = refused.expect("a full disk takes no rooms for ever");
    assert_eq!(refused.code, 503, "{refused:?}");
    assert!(refused.message.contains("disk is full"), "{refused:?}");
    // Reading goes on, and so does who is connected.
    let page = bob.call("history.get", json!({"room": room})).await;
    assert_eq!(page["messages"][0]["body"], "before");
    let (said, refused) = say_until_refused(&mut anna, &room, 1).await;
    assert_eq!(refused.code, 503, "{refused:?}");
    let wish = json!({"room": room});
    let refused = anna.rpc("room.delete", wish.clone()).await;
    assert!(refused.is_err_and(|failure| failure.code == 503), "a deletion needs room, too");

    std::fs::remove_file(ballast).expect("it is ours");
    let mut attempts = 0;
    while anna.rpc("room.create", json!({"name": "After"})).await.is_err() {
        attempts += 1;
        assert!(attempts < ATTEMPTS_MAX, "the server did not find the room that was made");
    }
    assert_eq!(say_once_writable(&mut anna, &room).await, said + 1);
    let last = bob.call("history.get", json!({"room": room, "limit": 1})).await;
    assert_eq!(last["messages"][0]["body"], "after");
    all_there(&mut bob, &room, said).await;
    for id in acknowledged {
        anna.call("room.get", json!({"room": id})).await;
    }
    // What waits in the log is moved a moment later, and a deletion waits for that.
    while let Err(refused) = anna.rpc("room.delete", wish.clone()).await {
        assert_eq!(refused.code, 503, "{refused:?}");
        attempts += 1;
        assert!(attempts < ATTEMPTS_MAX, "the log is not moved into the database any more");
    }
    assert_eq!(bob.fail("room.get", json!({"room": room})).await.code, 404);
}

/// A disk that outlives the servers that are killed on it.
struct Disk {
    holder: Child,
    mount: PathBuf,
}

impl Disk {
    fn new(mount: &Path) -> Self {
        let script = r#"mount -t tmpfs -o "$1" tmpfs "$2" && echo ready && exec sleep 3600"#;
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", DISK])
            .arg(mount)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was there a moment ago");
        let mut line = String::new();
        let said = holder.stdout.as_mut().expect("it is piped");
        BufReader::new(said).read_line(&mut line).expect("it says something");
        assert_eq!(line.trim(), "ready");
        Self { holder, mount: mount.to_owned() }
    }

    fn ballast(&self) -> PathBuf {
        let disk = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        disk.join(self.mount.strip_prefix("/").expect("an absolute path")).join("ballast")
    }

    /// Starts a server; `Err` with its last words if it does not begin.
    fn start(&self, settings: &Path) -> Result<(Child, std::net::SocketAddr), String> {
        let words = settings.with_extension("log");
        let log = std::fs::File::create(&words).expect("the temporary directory is writable");
        let mut child = Command::new("nsenter")
            .args(["--user", "--preserve-credentials", "--mount", "--target"])
            .arg(self.holder.id().to_string())
            .arg("--")
            .arg(env!("CARGO_BIN_EXE_folkmoot"))
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(self.mount.join("data"))
            .arg("--config")
            .arg(settings)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("nsenter of util-linux is there");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("it can be read");
        let address = line.trim().strip_prefix("Folkmoot listens on http://");
        if let Some(address) = address {
            return Ok((child, address.parse().expect("an address")));
        }
        child.wait().expect("it was not waited for");
        let said = std::fs::read_to_string(words).expect("it was made");
        Err(said.lines().last().unwrap_or_default().to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_on_a_full_disk_says_so_at_its_start_and_has_lost_nothing() {
    let scratch = Scratch::new();
    let mount = scratch.path().join("disk");
    must_mount(&mount);
    let limits = "[limits]\nmessages_per_second = 0\nquestions_per_minute = 0\n";
    let settings = scratch.file("folkmoot.toml", &format!("{limits}{PATIENT}"));
    let disk = Disk::new(&mount);
    let (mut server, address) = disk.start(&settings).expect("there is room");
    let anna = Account::sign_up(address, "anna").await;
    let mut client = Client::open(address).await;
    client.connect(&anna.token).await.expect("the token is valid");
    let room = client.create_room("Tea").await;
    let mut said = client.say(&room, "0", "before").await;
    for round in 0..KILLS_ON_FULL {
        fill(&disk.ballast());
        said = say_until_refused(&mut client, &room, said).await.0;
        server.kill().expect("our own child can be killed");
        server.wait().expect("it was not waited for");
        let refused = disk.start(&settings).expect_err("the log has more than the database");
        assert!(refused.contains("the disk is full") && refused.contains("make room"), "{refused}");
        std::fs::remove_file(disk.ballast()).expect("it is ours");
        let address;
        (server, address) = disk.start(&settings).expect("there is room");
        client = Client::open(address).await;
        client.connect(&anna.token).await.expect("the token is valid");
        // What was refused as the disk filled may have come there all the same.
        let last = client.call("room.get", json!({"room": room})).await["last_seq"].clone();
        let last = last.as_u64().expect("a number");
        assert!(last >= said, "{last} of {said}");
        all_there(&mut client, &room, last).await;
        said = say_key_once_writable(&mut client, &room, &format!("after {round}")).await;
        assert_eq!(said, last + 1);
    }
    server.kill().expect("our own child can be killed");
    server.wait().expect("it was not waited for");
}

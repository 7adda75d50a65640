//! A disk that fills up while people chat, and has room again.

use std::io::Write;
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
    let message = json!({"room": room, "key": "1", "body": "after"});
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

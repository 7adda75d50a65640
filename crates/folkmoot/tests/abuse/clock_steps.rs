//! The machine's clock is put back and forward while people chat, by hours and by weeks.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::process::address_of;
use crate::support::{Account, Client, PATIENT, Scratch};

/// Where the server's clock is put, in seconds beside the true time, one after the other.
const STEPS: [i64; 7] = [0, -3_600, 0, 86_400, -2_592_000, 1_728_000, -1];
/// More than a message takes, and less than the clock is ever put beside the true time.
const NEAR_MS: i64 = 600_000;
/// Messages after each step.
const SAID_EACH: u64 = 10;

/// A server whose clock goes by a file.
struct Clock {
    file: PathBuf,
    library: PathBuf,
}

impl Clock {
    /// # Panics
    /// Without the library that comes between a program and the clock.
    fn new(scratch: &Scratch) -> Self {
        let lib = std::fs::read_dir("/usr/lib").expect("it is there").flatten();
        let mut libraries = lib.map(|it| it.path().join("faketime/libfaketimeMT.so.1"));
        let library = libraries.find(|path| path.exists());
        let library = library.expect("libfaketime is installed: apt-get install faketime");
        Self { file: scratch.path().join("clock"), library }
    }

    fn put(&self, seconds: i64) {
        // Renamed into its place, so that the server never reads half of it.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}\n")).expect("there is room");
        std::fs::rename(&new, &self.file).expect("there is room");
    }

    fn start(&self, data: &Path, settings: &Path) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(data);
        command.arg("--config").arg(settings).stdout(Stdio::piped());
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", &self.file);
        // It reads the file whenever it is asked for the time. What only ever runs forward is true.
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let mut child = command.spawn().expect("the binary was built");
        let address = address_of(&mut child);
        Server { child, address }
    }
}

struct Server {
    child: Child,
    address: std::net::SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    async fn connect(&self, account: &Account) -> Client {
        let mut client = Client::open(self.address).await;
        client.connect(&account.token).await.expect("the device is signed in");
        client
    }
}

/// The true time.
fn now_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    i64::try_from(since_1970.as_millis()).expect("for millions of years")
}

/// All messages of a room, oldest first.
async fn history(client: &mut Client, room: &str) -> Vec<Value> {
    let (mut messages, mut before) = (Vec::new(), Value::Null);
    loop {
        let mut page = json!({"room": room, "limit": 50});
        if before.is_u64() {
            page["before"] = before;
        }
        let page = client.call("history.get", page).await;
        let page = page["messages"].as_array().expect("messages");
        let Some(first) = page.first() else { return messages };
        before = first["seq"].clone();
        messages.splice(0..0, page.iter().cloned());
    }
}

/// Anna says some messages, which Bob hears in order, and which show a time so many seconds beside
/// the true one. Gives how many were said in all.
async fn converse(anna: &mut Client, bob: &mut Client, room: &str, said: u64, shown: i64) -> u64 {
    for n in said..said + SAID_EACH {
        let seq = anna.say(room, &format!("key {n}"), &format!("said {n}")).await;
        assert_eq!(seq, n + 1, "{shown} s beside the true time");
        let heard = bob.message(room).await;
        assert_eq!(heard["body"], format!("said {n}"), "{shown} s beside the true time");
        // A server goes forward with its machine's clock, and back only when it starts anew.
        let beside = heard["at"].as_i64().expect("milliseconds") - now_ms() - shown * 1_000;
        assert!(beside.abs() < NEAR_MS, "{beside} ms beside the time that it should show");
    }
    // A retry is the same message, however old it has become.
    let last = said + SAID_EACH;
    let (key, body) = (format!("key {}", last - 1), format!("said {}", last - 1));
    let again = json!({"room": room, "key": key, "body": body});
    let again = anna.call("message.send", again).await;
    assert_eq!((&again["seq"], &again["duplicate"]), (&json!(last), &json!(true)), "{again}");
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_loses_doubles_and_reorders_nothing() {
    let scratch = Scratch::new();
    let (data, clock) = (scratch.path().join("data"), Clock::new(&scratch));
    let limits = "[limits]\nmessages_per_second = 0\n";
    let settings = scratch.file("folkmoot.toml", &format!("{limits}{PATIENT}"));
    clock.put(0);
    let server = clock.start(&data, &settings);
    let people = [
        Account::sign_up(server.address, "anna").await,
        Account::sign_up(server.address, "bob").await,
    ];
    let mut anna = server.connect(&people[0]).await;
    let mut bob = server.connect(&people[1]).await;
    let room = anna.create_room("Tea").await;
    anna.invite(&room, &mut bob).await;
    bob.subscribe(&room).await;

    let (mut said, mut server, mut shown) = (0, server, 0);
    for step in STEPS {
        // First under the feet of a server that runs, then for one that starts.
        clock.put(step);
        shown = step.max(shown);
        said = converse(&mut anna, &mut bob, &room, said, shown).await;
        drop(server);
        server = clock.start(&data, &settings);
        (anna, bob) = (server.connect(&people[0]).await, server.connect(&people[1]).await);
        bob.subscribe(&room).await;
        shown = step;
        said = converse(&mut anna, &mut bob, &room, said, shown).await;
    }

    let messages = history(&mut anna, &room).await;
    let seqs: Vec<_> = messages.iter().map(|it| it["seq"].as_u64().expect("a number")).collect();
    assert_eq!(seqs, (1..=said).collect::<Vec<_>>());
}

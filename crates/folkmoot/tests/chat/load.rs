//! `folkmoot load`: what it says of a real server, and that it notices a bad one.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::process::listening_with;
use crate::support::Scratch;

/// What every message of a load begins with.
const SAID: &[u8] = b"load 0 ";
/// The first messages, of a segment that is far longer.
const LOG_BYTES: u64 = 64 * 1024;
const SETTINGS: &str = "[limits]\nmessages_per_second = 0\n";

/// A server of its own process on a seeded directory; ended when dropped.
struct Seeded {
    scratch: Scratch,
    child: Child,
    address: String,
}

impl Seeded {
    fn new(seed: &[&str]) -> Self {
        let scratch = Scratch::new();
        let (data, tokens) = (scratch.path().join("data"), scratch.path().join("tokens"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
        command.arg("--data").arg(&data).arg("seed").args(seed).arg("--tokens").arg(&tokens);
        let output = command.output().expect("the binary was built");
        assert!(output.status.success(), "{output:?}");
        let settings = scratch.file("folkmoot.toml", SETTINGS);
        let (child, address) = listening_with(&data, &settings);
        Self { scratch, child, address: address.to_string() }
    }

    fn tokens(&self) -> PathBuf {
        self.scratch.path().join("tokens")
    }

    fn load(&self, arguments: &[&str]) -> Output {
        load(&self.address, &self.tokens(), arguments).output().expect("the binary was built")
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn load(address: &str, tokens: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.args(["load", "--server", address, "--tokens"]).arg(tokens).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The numbers of the line that begins so.
fn numbers(output: &Output, line: &str) -> Vec<f64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().find(|found| found.starts_with(line));
    let found = found.unwrap_or_else(|| panic!("no {line} in {text}"));
    found
        .split(|end: char| !end.is_ascii_digit() && end != '.')
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[test]
fn a_room_of_many_gets_every_message_once_and_in_order() {
    let server = Seeded::new(&["--users", "200", "--room", "200", "--room", "2"]);
    let process = server.child.id().to_string();
    let output = server.load(&[
        "--sockets",
        "200",
        "--room-of",
        "200",
        "--senders",
        "2",
        "--rate",
        "100",
        "--seconds",
        "2",
        "--server-pid",
        &process,
    ]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(numbers(&output, "connections")[0], 200.0);
    // It may be none: what the start of the server has freed is used again.
    assert_eq!(numbers(&output, "memory").len(), 1);
    let [sent, acknowledged, .., refused] = numbers(&output, "messages")[..] else {
        panic!("{output:?}");
    };
    assert!(sent >= 100.0, "{output:?}");
    assert_eq!((acknowledged, refused), (sent, 0.0));
    assert_eq!(numbers(&output, "deliveries")[0], 200.0 * sent);
    assert!(numbers(&output, "delivery")[1] > 0.0, "p50 in milliseconds: {output:?}");
    assert_eq!(numbers(&output, "lost"), [0.0; 6]);
}

#[test]
fn the_next_message_waits_until_all_have_the_one_before_and_json_says_what_came_of_it() {
    let server = Seeded::new(&["--users", "50", "--room", "50"]);
    let flags = ["--sockets", "50", "--senders", "3", "--in-flight", "1", "--seconds", "1"];
    let output = server.load(&[&flags[..], &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = &report["said"];
    let sent = said["sent"].as_u64().unwrap();
    assert!(sent > 3, "{report}");
    assert_eq!(said["delivered"].as_u64(), Some(50 * sent), "{report}");
    // One after the other: together the messages took no longer than the run.
    let [p50, .., max] = &said["to_last"].as_array().unwrap()[..] else { panic!("{report}") };
    let (p50, max) = (p50.as_f64().unwrap(), max.as_f64().unwrap());
    assert!(p50 <= max && p50 * sent as f64 / 2.0 <= said["took"].as_f64().unwrap(), "{report}");
    assert_eq!(report["troubles"]["lost"].as_u64(), Some(0), "{report}");
}

#[test]
fn all_leave_miss_something_and_come_back_with_all_of_it() {
    let server = Seeded::new(&["--users", "60", "--room", "6x50"]);
    let output = server.load(&[
        "--sockets",
        "60",
        "--rooms",
        "5",
        "--senders",
        "60",
        "--seconds",
        "1",
        "--reconnect",
        "20",
    ]);
    assert!(output.status.success(), "{output:?}");
    let [_, missed] = numbers(&output, "reconnection")[..] else { panic!("{output:?}") };
    assert_eq!(missed, 60.0 * 5.0 * 20.0);
    assert_eq!(numbers(&output, "lost"), [0.0; 6]);
}

#[test]
fn a_server_that_goes_away_and_rooms_that_are_not_there_are_failures() {
    let mut server = Seeded::new(&["--users", "20", "--room", "20"]);
    let output = server.load(&["--sockets", "20", "--rooms", "2"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("1 rooms of those wanted, not 2"), "{said}");
    // Killed as soon as it has acknowledged something.
    let arguments = ["--sockets", "20", "--senders", "20", "--seconds", "2"];
    let mut command = load(&server.address, &server.tokens(), &arguments);
    let mut loading = command.spawn().expect("the binary was built");
    let data = server.scratch.path().join("data");
    while !keeps_load(&data) {
        assert!(loading.try_wait().expect("it is our child").is_none(), "it ended too early");
        std::thread::yield_now();
    }
    server.child.kill().expect("our own child can be killed");
    let output = loading.wait_with_output().expect("it ends by itself");
    assert!(!output.status.success(), "{output:?}");
    let [.., broken, _] = numbers(&output, "lost")[..] else { panic!("{output:?}") };
    assert_eq!(broken, 20.0, "{output:?}");
}

/// Whether something that the load says is at the beginning of the log.
fn keeps_load(data: &Path) -> bool {
    let segments = std::fs::read_dir(data.join("log")).expect("a data directory has a log");
    segments.filter_map(Result::ok).any(|segment| {
        let Ok(file) = std::fs::File::open(segment.path()) else { return false };
        let mut begin = Vec::new();
        let _ = file.take(LOG_BYTES).read_to_end(&mut begin);
        begin.windows(SAID.len()).any(|bytes| bytes == SAID)
    })
}

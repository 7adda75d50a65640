//! Real processes of the example, and what their books say.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod cluster;
pub(crate) mod proxy;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use althing_cluster::{Authority, Tls};
use rustix::process::{Pid, Signal, kill_process};

/// Longer than a busy machine needs for anything; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The lease of the tests.
pub(crate) const LEASE: Duration = Duration::from_millis(1_500);

pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// The authority of a cluster that is called `test`, in plaintext, and the directory that has to
/// outlive it.
pub(crate) fn authority() -> (tempfile::TempDir, Authority) {
    authority_with(Tls::insecure_plaintext())
}

/// The same with certificates; its record is at `record` in the directory.
pub(crate) fn authority_with(tls: Tls) -> (tempfile::TempDir, Authority) {
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("record");
    let authority = Authority::start("test", &record, any_port(), LEASE, tls);
    (directory, authority.expect("it starts"))
}

/// A directory, and the authority of a cluster, in the test's own process.
pub(crate) struct Scene {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) authority: Option<Authority>,
    pub(crate) address: SocketAddr,
}

pub(crate) fn scene() -> Scene {
    scene_of(LEASE)
}

/// A scene with leases of that length.
pub(crate) fn scene_of(lease: Duration) -> Scene {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = serve(directory.path(), any_port(), lease);
    let address = authority.address();
    Scene { directory, authority: Some(authority), address }
}

fn serve(directory: &Path, listen: SocketAddr, lease: Duration) -> Authority {
    let tls = Tls::insecure_plaintext();
    Authority::start("example", &directory.join("authority"), listen, lease, tls)
        .expect("it starts")
}

impl Scene {
    /// Starts a node and waits until it is a member.
    pub(crate) fn node(&self, name: &str) -> Process {
        let mut process = self.start(name);
        process.hear("-", "joined");
        process
    }

    /// Starts a node.
    pub(crate) fn start(&self, name: &str) -> Process {
        Process::start(name, &self.address.to_string(), self.directory.path())
    }

    pub(crate) fn stop_authority(&mut self) {
        self.authority = None;
    }

    pub(crate) fn restart_authority(&mut self) {
        self.authority = Some(serve(self.directory.path(), self.address, LEASE));
    }

    /// What the book of an account says.
    pub(crate) fn book(&self, account: &str) -> Vec<Line> {
        let text = std::fs::read_to_string(self.directory.path().join(account));
        text.unwrap_or_default().lines().map(Line::read).collect()
    }

    /// A name of an account that the node owns.
    pub(crate) fn account_on(&self, process: &mut Process, skip: usize) -> String {
        let names = (0..200).map(|n| format!("account-{n}"));
        let name = process.name.clone();
        let mut on_it = names.filter(|account| {
            process.ask("add", &format!("{account} 0")).contains(&format!(" {name} "))
        });
        on_it.nth(skip).expect("one of 200 is there")
    }
}

/// One line of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) is_open: bool,
    pub(crate) epoch: u64,
    pub(crate) node: String,
    /// Who sent it, and the sender's number.
    pub(crate) sender: String,
    pub(crate) number: u64,
}

impl Line {
    pub(crate) fn read(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let word = |at: usize| words.get(at).map_or("", |word| word);
        Self {
            is_open: word(0) == "open",
            epoch: word(1).parse().expect("an epoch"),
            node: word(2).to_owned(),
            sender: word(4).to_owned(),
            number: word(5).parse().unwrap_or(0),
        }
    }
}

/// Epochs never fall, and each belongs to one node: the account never lived twice.
pub(crate) fn assert_one_life_at_a_time(book: &[Line]) {
    let mut owners = BTreeMap::new();
    for pair in book.windows(2) {
        assert!(pair[0].epoch <= pair[1].epoch, "{pair:?}");
    }
    for line in book {
        let owner = owners.entry(line.epoch).or_insert_with(|| line.node.clone());
        assert_eq!(*owner, line.node, "two owners of epoch {}", line.epoch);
    }
}

/// What a sender was told is accepted is there once and in order.
pub(crate) fn assert_whole(book: &[Line], sender: &str, count: u64) {
    let numbers = book.iter().filter(|line| !line.is_open && line.sender == sender);
    let numbers: Vec<_> = numbers.map(|line| line.number).collect();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "of {sender}");
}

/// What a sender sent is there at most once and in order.
pub(crate) fn assert_ordered(book: &[Line], sender: &str) {
    let numbers = book.iter().filter(|line| !line.is_open && line.sender == sender);
    let numbers: Vec<_> = numbers.map(|line| line.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "of {sender}: {numbers:?}");
}

/// A node in a process of its own; killed when this is dropped.
pub(crate) struct Process {
    pub(crate) name: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    heard: Vec<String>,
    asked: u32,
}

fn example() -> PathBuf {
    let tests = std::env::current_exe().expect("a test has a path");
    let build =
        tests.parent().and_then(Path::parent).expect("tests are two levels below the build");
    build.join("examples/node")
}

impl Process {
    pub(crate) fn start(name: &str, authority: &str, data: &Path) -> Self {
        Self::run(name, data, &["--name", name, "--authority", authority])
    }

    /// Runs the example with these arguments.
    pub(crate) fn run(name: &str, data: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(example())
            .args(arguments)
            .arg("--data")
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cargo has built the example");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        Self { name: name.to_owned(), child, input, lines, heard: Vec::new(), asked: 0 }
    }

    /// Gives a command; returns the word that its answer begins with.
    pub(crate) fn begin(&mut self, command: &str, arguments: &str) -> String {
        self.asked += 1;
        let word = format!("{}{}", self.name, self.asked);
        writeln!(self.input, "{word} {command} {arguments}").expect("it listens");
        word
    }

    /// Gives a command and returns its answer.
    pub(crate) fn ask(&mut self, command: &str, arguments: &str) -> String {
        let word = self.begin(command, arguments);
        self.hear(&word, "")
    }

    /// Waits for a line that begins with that word and goes on with that text; returns what follows
    /// the word.
    pub(crate) fn hear(&mut self, word: &str, text: &str) -> String {
        let start = format!("{word} {text}");
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.heard.iter().position(|line| line.starts_with(&start)) {
                return self.heard.remove(at)[word.len() + 1..].to_owned();
            }
            let rest = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(rest) {
                Ok(line) => self.heard.push(line),
                Err(_) => panic!("{} never said `{start}`: {:?}", self.name, self.heard),
            }
        }
    }

    /// Whether it has said such a line by now.
    pub(crate) fn has_said(&mut self, start: &str) -> bool {
        self.heard.extend(self.lines.try_iter());
        self.heard.iter().any(|line| line.starts_with(start))
    }

    /// Repeats a command until its answer holds that text.
    pub(crate) fn ask_until(&mut self, command: &str, arguments: &str, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(command, arguments);
            if answer.contains(text) {
                return answer;
            }
            assert!(Instant::now() < until, "{} never said `{text}`, but {answer}", self.name);
            std::thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("process ids are small");
        let id = Pid::from_raw(id).expect("it is no zero");
        kill_process(id, signal).expect("it is there");
    }

    /// Ends it at once, as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(&mut self) {
        assert!(self.child.wait().expect("it was started").success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

//! The binary: signals, a port in use, a data directory that is not ours.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::support::Scratch;

fn folkmoot(data: &std::path::Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.args(["--listen", listen, "--data"]).arg(data);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a server and waits until it says where it listens.
fn start(data: &std::path::Path) -> Child {
    let mut child = folkmoot(data, "127.0.0.1:0").spawn().expect("the binary was built");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("it says something");
    assert!(line.starts_with("Folkmoot listens on http://127.0.0.1:"), "{line:?}");
    child
}

/// Expects a failing start with one line that contains `words`.
fn refuses(mut command: Command, words: &[&str]) {
    let output = command.output().expect("the binary was built");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    let status = Command::new("kill").args(["-s", name, &id]).status().expect("kill exists");
    assert!(status.success());
}

#[test]
fn sigterm_and_sigint_stop_it_cleanly() {
    let scratch = Scratch::new();
    for name in ["TERM", "INT"] {
        let mut child = start(&scratch.path().join("data"));
        signal(&child, name);
        assert!(child.wait().expect("it ends").success(), "{name}");
    }
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let scratch = Scratch::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = scratch.path().join("data");
    refuses(folkmoot(&data, &address), &["cannot listen", &address]);
    assert!(!data.exists(), "a server that cannot listen leaves no data");
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let mut first = start(&data);
    let number = first.id().to_string();
    refuses(folkmoot(&data, "127.0.0.1:0"), &["in use", &number]);
    signal(&first, "TERM");
    assert!(first.wait().unwrap().success());
}

#[test]
fn data_of_another_version_or_of_somebody_else_is_refused() {
    let scratch = Scratch::new();
    let other = scratch.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.txt"), "do not lose").unwrap();
    refuses(folkmoot(&other, "127.0.0.1:0"), &["VERSION"]);
    assert_eq!(std::fs::read_to_string(other.join("thesis.txt")).unwrap(), "do not lose");
    let newer = scratch.path().join("newer");
    std::fs::create_dir(&newer).unwrap();
    std::fs::write(newer.join("VERSION"), "999\n").unwrap();
    refuses(folkmoot(&newer, "127.0.0.1:0"), &["format", "999"]);
}

#[test]
fn a_wrong_setting_is_named() {
    let scratch = Scratch::new();
    let file = scratch.file("folkmoot.toml", "[limits]\nmesages = 1\n");
    let mut command = folkmoot(&scratch.path().join("data"), "127.0.0.1:0");
    command.arg("--config").arg(file);
    refuses(command, &["mesages"]);
}

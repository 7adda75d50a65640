//! The binary: signals, a kill, a port in use, a data directory that is not ours.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::support::{Scratch, exchange};

fn folkmoot(data: &std::path::Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    command.args(["--listen", listen, "--data"]).arg(data);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a server and waits until it says where it listens.
fn start(data: &std::path::Path) -> Child {
    listening(data).0
}

pub(crate) fn listening(data: &std::path::Path) -> (Child, SocketAddr) {
    let mut child = folkmoot(data, "127.0.0.1:0").spawn().expect("the binary was built");
    let address = address_of(&mut child);
    (child, address)
}

/// The same with a settings file.
pub(crate) fn listening_with(data: &Path, settings: &Path) -> (Child, SocketAddr) {
    let mut command = folkmoot(data, "127.0.0.1:0");
    let mut child = command.arg("--config").arg(settings).spawn().expect("the binary was built");
    let address = address_of(&mut child);
    (child, address)
}

/// Where a server says that it listens.
pub(crate) fn address_of(child: &mut Child) -> SocketAddr {
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("it says something");
    let address = line.trim().strip_prefix("Folkmoot listens on http://");
    let address = address.and_then(|text| text.parse().ok());
    address.unwrap_or_else(|| panic!("no address in {line:?}"))
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

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_loses_no_file_that_was_acknowledged() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let (mut child, server) = listening(&data);
    let anna = json!({"name": "anna", "password": "correct horse"}).to_string();
    let signed = exchange(server, "POST /api/v1/accounts", None, &[], anna.as_bytes()).await;
    let token = signed.json()["token"].as_str().unwrap().to_owned();
    let call = async |server, line: &str, body: &str| {
        exchange(server, line, Some(&token), &[], body.as_bytes()).await
    };
    let room = call(server, "POST /api/v1/rooms", "{\"name\":\"Tea\"}").await.json();
    let room = format!("/api/v1/rooms/{}", room["id"].as_str().unwrap());
    let line = format!("POST {room}/attachments?name=a.txt");
    let file = call(server, &line, "acknowledged").await.json();
    let message = json!({"key": "k", "body": "", "attachments": [file["id"]]}).to_string();
    let sent = call(server, &format!("POST {room}/messages"), &message).await;
    assert_eq!(sent.status, 200);
    child.kill().unwrap();
    child.wait().unwrap();

    let (mut child, server) = listening(&data);
    let page = call(server, &format!("GET {room}/messages"), "").await.json();
    assert_eq!(page["messages"][0]["attachments"][0], file);
    let line = format!("GET {}", file["url"].as_str().unwrap());
    assert_eq!(call(server, &line, "").await.body, b"acknowledged");
    child.kill().unwrap();
    child.wait().unwrap();
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

#[test]
fn a_certificate_that_cannot_be_used_is_one_clear_line() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let certificate = scratch.file("cert.pem", "nonsense");
    let absent = scratch.path().join("absent.pem");
    for (key, words) in
        [(&absent, ["cannot read", "absent.pem"]), (&certificate, ["cert.pem", "no certificate"])]
    {
        let mut command = folkmoot(&data, "127.0.0.1:0");
        command.arg("--tls-cert").arg(&certificate).arg("--tls-key").arg(key);
        refuses(command, &words);
    }
    assert!(!data.exists(), "a server that cannot encrypt leaves no data");
    let file = scratch.file("folkmoot.toml", "tls_cert = 'cert.pem'\n");
    let mut command = folkmoot(&data, "127.0.0.1:0");
    command.arg("--config").arg(file);
    refuses(command, &["tls_key"]);
}

#[test]
fn a_directory_of_files_that_cannot_be_used_and_a_limit_beyond_the_protocols_are_named() {
    let scratch = Scratch::new();
    let taken = scratch.file("taken", "not a directory");
    let unusable = format!("[attachments]\ndirectory = {taken:?}\n");
    let beyond = "[attachments]\nfiles_per_message_max = 11\n";
    for (settings, words) in [
        (unusable.as_str(), ["attachment directory", "taken"]),
        (beyond, ["files_per_message_max", "limit of 10"]),
    ] {
        let file = scratch.file("folkmoot.toml", settings);
        let mut command = folkmoot(&scratch.path().join("data"), "127.0.0.1:0");
        command.arg("--config").arg(file);
        refuses(command, &words);
    }
}

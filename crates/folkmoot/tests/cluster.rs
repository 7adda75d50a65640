//! `folkmoot cluster`: what it writes is what nodes take.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use althing_cluster::{Member, MemberConfig, Tls};

/// Runs the command; returns what it says, and whether it succeeded.
fn folkmoot(directory: &Path, arguments: &[&str]) -> (String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    let [task, rest @ ..] = arguments else { panic!("a task") };
    let out = command.args(["cluster", task]).arg(directory).args(rest).output();
    let out = out.expect("it runs");
    let said = [out.stdout, out.stderr].concat();
    (String::from_utf8(said).expect("it is text"), out.status.success())
}

fn takes(directory: &Path, node: &str) -> bool {
    let tls = Tls::from_directory(directory, node);
    Member::bind(MemberConfig::new("shop", node, "127.0.0.1:1", tls)).is_ok()
}

#[test]
fn certificates_are_made_renewed_and_never_made_over_an_authority() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("tls");
    let init = ["init", "--cluster", "shop", "--node", "one", "--node", "two"];
    let (said, is_done) = folkmoot(&directory, &init);
    assert!(is_done && said.contains("two.key"), "{said}");
    assert!(takes(&directory, "one") && takes(&directory, "two"));
    for key in ["ca.key", "one.key", "two.key"] {
        let mode = directory.join(key).metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }

    let authority = std::fs::read(directory.join("ca.pem")).expect("it is there");
    let (said, is_done) = folkmoot(&directory, &init);
    assert!(!is_done && said.contains("is there already"), "{said}");
    let one = std::fs::read(directory.join("one.pem")).expect("it is there");
    let (_, is_done) = folkmoot(&directory, &["certify", "--node", "one", "--node", "three"]);
    assert!(is_done && takes(&directory, "one") && takes(&directory, "three"));
    assert_ne!(std::fs::read(directory.join("one.pem")).expect("it is there"), one);
    assert_eq!(std::fs::read(directory.join("ca.pem")).expect("it is there"), authority);

    let (said, is_done) = folkmoot(&directory, &["certify", "--node", "no de"]);
    assert!(!is_done && said.contains("`no de` cannot be a name"), "{said}");
    let (said, is_done) = folkmoot(place.path(), &["certify", "--node", "one"]);
    assert!(!is_done && said.contains("ca.pem"), "{said}");
}

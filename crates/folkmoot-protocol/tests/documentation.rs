//! `docs/protocol.md` is what authors of clients read: it has to name everything that the code
//! knows.

use std::fs;
use std::path::Path;

use folkmoot_protocol::rpc::Rpc;
use folkmoot_protocol::{DisconnectCode, ErrorCode};

fn documentation() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    fs::read_to_string(path).expect("the documentation is committed")
}

/// The text between a heading and the next one.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(heading).unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

#[test]
fn every_method_is_documented_and_none_besides() {
    let text = documentation();
    let documented: Vec<&str> = section(&text, "\n## rpc methods")
        .lines()
        .filter(|line| {
            line.contains(" → ") && line.starts_with(|first: char| first.is_ascii_lowercase())
        })
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(documented, Rpc::METHODS);
}

#[test]
fn every_code_is_documented() {
    let text = documentation();
    let errors = section(&text, "\n## Errors");
    for code in ErrorCode::ALL {
        assert!(errors.contains(&format!("| {} |", code.code())), "{code:?}");
    }
    for code in DisconnectCode::ALL {
        assert!(errors.contains(&code.code().to_string()), "{code:?}");
    }
}

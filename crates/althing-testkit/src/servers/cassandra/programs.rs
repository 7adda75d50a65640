//! Cassandra itself: its jars.

use std::fs;
use std::path::{Path, PathBuf};

use crate::servers::maven::{self, Artifact};

const CASSANDRA: Artifact =
    Artifact { group: "org.apache.cassandra", name: "cassandra-all", version: "5.0.5" };

/// A directory with all jars.
///
/// # Panics
/// If they are not there and cannot be brought.
pub(super) fn jars() -> PathBuf {
    maven::jars("cassandra", &[CASSANDRA])
}

/// The agent that measures objects, without which Cassandra does not start.
pub(super) fn agent(jars: &Path) -> PathBuf {
    let files = fs::read_dir(jars).expect("it is there").flatten();
    let is_agent = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("jamm"))
    };
    files.map(|file| file.path()).find(is_agent).expect("Cassandra depends on jamm")
}

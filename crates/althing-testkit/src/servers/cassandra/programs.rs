//! Cassandra itself: its jars, which Maven brings once into the user's cache.
//!
//! The directory of a version is made under another name and renamed when it is complete, so that
//! whoever finds it finds all of it, however many tests start at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VERSION: &str = "5.0.5";

/// The goal that copies a project's jars into a directory.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// A directory with all jars.
///
/// # Panics
/// If they are not there and cannot be brought.
pub(super) fn jars() -> PathBuf {
    let cache = cache();
    let jars = cache.join(format!("cassandra-{VERSION}"));
    if jars.is_dir() {
        return jars;
    }
    fs::create_dir_all(&cache).expect("the user's cache can be written");
    let made = tempfile::Builder::new()
        .prefix("cassandra-")
        .tempdir_in(&cache)
        .expect("the user's cache can be written");
    bring(made.path());
    // Somebody else may have been faster.
    if fs::rename(made.path().join("jars"), &jars).is_err() {
        assert!(jars.is_dir(), "{} cannot be made", jars.display());
    }
    jars
}

/// The agent that measures objects, without which Cassandra does not start.
pub(super) fn agent(jars: &Path) -> PathBuf {
    let files = fs::read_dir(jars).expect("it is there").flatten();
    let is_agent = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("jamm"))
    };
    files.map(|file| file.path()).find(is_agent).expect("Cassandra depends on jamm")
}

fn cache() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
    let cache = cache.map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cache")));
    cache.expect("the user has a home").join("althing-tests")
}

fn bring(directory: &Path) {
    let project = format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>althing</groupId><artifactId>tests</artifactId><version>1</version>
<packaging>pom</packaging>
<dependencies><dependency>
<groupId>org.apache.cassandra</groupId><artifactId>cassandra-all</artifactId>
<version>{VERSION}</version>
</dependency></dependencies>
</project>"#
    );
    fs::write(directory.join("pom.xml"), project).expect("there is room");
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", COPY, "-DincludeScope=runtime"]);
    maven.arg(format!("-DoutputDirectory={}", directory.join("jars").display()));
    let said = maven.current_dir(directory).stdin(Stdio::null()).output();
    let said = said.expect("Maven is installed: apt-get install maven");
    assert!(
        said.status.success(),
        "Maven does not bring Cassandra:\n{}",
        String::from_utf8_lossy(&said.stdout)
    );
}

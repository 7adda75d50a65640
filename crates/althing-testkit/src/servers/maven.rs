//! Servers that are written in Java: their jars, which Maven brings once into the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache::cached;

/// The goal that copies a project's jars into a directory.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// An artifact of Maven Central.
#[derive(Clone, Copy, Debug)]
pub(super) struct Artifact {
    pub(super) group: &'static str,
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// A directory with the jars of all these artifacts and of what they need. It is called by `name`
/// and the version of the first one.
///
/// # Panics
/// If they are not there and cannot be brought.
pub(super) fn jars(name: &str, artifacts: &[Artifact]) -> PathBuf {
    cached(&format!("{name}-{}", artifacts[0].version), |directory| {
        bring(directory, artifacts);
        directory.join("jars")
    })
}

fn bring(directory: &Path, artifacts: &[Artifact]) {
    let dependency = |Artifact { group, name, version }: &Artifact| {
        format!(
            "<dependency>
<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
</dependency>"
        )
    };
    let dependencies: String = artifacts.iter().map(dependency).collect();
    let project = format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>althing</groupId><artifactId>tests</artifactId><version>1</version>
<packaging>pom</packaging>
<dependencies>{dependencies}</dependencies>
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
        "Maven does not bring {}:\n{}",
        artifacts[0].name,
        String::from_utf8_lossy(&said.stdout)
    );
}

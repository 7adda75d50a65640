//! The bench program of another revision: a git worktree under `target/against`, built and kept.
//!
//! Never touches a checkout that is not exactly that revision, and removes nothing: whoever wants
//! the space back says `git worktree remove`.

use crate::build::{Launch, bench_directory};
use althing_bench_workloads::Mailbox;
use anyhow::{Context, Result, ensure};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Another revision, ready to run.
pub(crate) struct Revision {
    pub(crate) commit: String,
    pub(crate) launch: Launch,
}

/// Builds the bench program of `revision`, in the release profile of its own workspace.
pub(crate) fn build(revision: &str) -> Result<Revision> {
    let here = bench_directory();
    let full = git(&here, &["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?;
    let commit = git(&here, &["rev-parse", "--short", &full])?;
    let directory = target_directory()?.join("against").join(&commit);
    if directory.exists() {
        let present = git(&directory, &["rev-parse", "HEAD"])?;
        let changes = git(&directory, &["status", "--porcelain", "--untracked-files=no"])?;
        ensure!(
            present == full && changes.is_empty(),
            "{} is not a clean checkout of {commit}",
            directory.display()
        );
        eprintln!("using the checkout of {commit} in {}", directory.display());
    } else {
        eprintln!("checking {commit} out into {}", directory.display());
        let path = directory.to_str().context("the target directory's name is not UTF-8")?;
        // Forced, because after a `cargo clean` git still knows the checkout that was there.
        git(&here, &["worktree", "add", "--force", "--detach", path, &full])?;
    }
    eprintln!("building althing-bench of {commit}");
    let target = directory.join("target");
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--package", "althing-bench", "--target-dir"])
        .arg(&target)
        .current_dir(&directory)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "althing-bench of {commit} does not build");
    let launch = Launch {
        program: target.join("release/althing-bench").into(),
        arguments: vec!["once".into()],
        directory: directory.join("bench"),
        mailbox: Mailbox::Bounded.name(),
    };
    Ok(Revision { commit, launch })
}

/// The target directory that this program lies in, as `target/release/althing-bench`.
fn target_directory() -> Result<PathBuf> {
    let program = env::current_exe().context("cannot find the running program")?;
    let target = program.parent().and_then(Path::parent);
    Ok(target.context("a profile lies in the target directory")?.to_owned())
}

/// The trimmed output of a git command; its message is the error.
fn git(directory: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .output()
        .context("cannot run git")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), text.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_revision_is_refused_by_name() {
        let Err(error) = build("no-such-revision-7c1f") else { panic!("it was built") };
        assert!(error.to_string().contains("no-such-revision-7c1f"), "{error}");
    }
}

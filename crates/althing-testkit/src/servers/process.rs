//! Signals to processes that a test has started, and whom they run as.
//!
//! Children of a server are found through `/proc`, because those of PostgreSQL are in sessions of
//! their own.

use std::fs;
use std::process::Command;
use std::time::Duration;

/// Pause between two looks: only a parent is told of the end of a process.
const POLL: Duration = Duration::from_millis(2);

/// A user of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Whether this process may do anything; some servers refuse to run so.
pub(super) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

pub(super) fn user(name: &str) -> Option<User> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let [found, _, uid, gid] = [fields.next()?, fields.next()?, fields.next()?, fields.next()?];
        (found == name).then_some(User { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
    })
}

/// A process and its children.
pub(super) fn family(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    std::iter::once(parent).chain(ids.filter(|id| parent_of(*id) == Some(parent))).collect()
}

/// Waits until processes that were killed have ended; whether somebody has asked for their status
/// does not matter.
pub(super) fn wait_for_end(ids: &[u32]) {
    for id in ids {
        while stat(*id).is_some_and(|(state, _)| state != "Z") {
            std::thread::sleep(POLL);
        }
    }
}

fn parent_of(id: u32) -> Option<u32> {
    Some(stat(id)?.1)
}

/// State and parent of a process.
fn stat(id: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // "id (name) state parent …", and a name may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Sends a signal by its name. Whoever has ended meanwhile does not mind.
pub(super) fn signal(name: &str, ids: &[u32]) {
    let ids = ids.iter().map(ToString::to_string);
    let sent = Command::new("sh")
        .args(["-c", "for id in \"$@\"; do kill -s \"$0\" \"$id\" 2>/dev/null; done; true", name])
        .args(ids)
        .status();
    assert!(sent.is_ok_and(|status| status.success()), "signal {name} could not be sent");
}

//! A small process that ends a server once ours has ended, in whatever way.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A script for servers of one process, whose number is in the file `id` of their directory.
pub(super) const END_BY_ID: &str = r#"cat >/dev/null
server=$(cat "$0/id" 2>/dev/null) && kill -s KILL "$server" 2>/dev/null
while [ -n "$server" ] && kill -s 0 "$server" 2>/dev/null; do sleep 0.05; done
rm -rf "$0""#;

/// Dropped after the server was ended in order, it finds nothing left to do but its directory.
#[derive(Debug)]
pub(super) struct Watcher {
    process: Child,
    /// Ends with our process; `None` while this is dropped.
    pipe: Option<ChildStdin>,
}

impl Watcher {
    /// Starts a shell that runs `script` with the directory as `$0`. The script reads its input to
    /// the end first.
    pub(super) fn start(script: &str, directory: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(directory).stdin(Stdio::piped());
        // Apart from a terminal's interrupts, which end the test before the server.
        let mut process = command.process_group(0).spawn().expect("there is a shell");
        let pipe = process.stdin.take();
        Self { process, pipe }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.pipe.take());
        _ = self.process.wait();
    }
}

//! One life of a node, from outside: its process, what it says, and signals to it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

/// What a life has said so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// Where the node and its authority listen.
    pub(crate) ready: Option<(SocketAddr, SocketAddr)>,
    pub(crate) is_joined: bool,
    pub(crate) has_finished: bool,
}

/// Killed when it is dropped.
pub(crate) struct Process {
    /// `one.3`
    pub(crate) life: String,
    child: Child,
    pub(crate) heard: watch::Receiver<Heard>,
}

impl Process {
    /// Starts this program as a node. What it complains about is kept beside its diary.
    pub(crate) fn start(life: &str, directory: &Path, arguments: &[String]) -> io::Result<Self> {
        let log = std::fs::File::create(directory.join(format!("{life}.log")))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("node").args(arguments).args(["--life", life]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn()?;
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (says, heard) = watch::channel(Heard::default());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                says.send_modify(|heard| heard.take(&line));
            }
        });
        Ok(Self { life: life.to_owned(), child, heard })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Gives an order. One that has ended does not mind.
    pub(crate) fn tell(&mut self, order: &str) {
        _ = self.child.stdin.as_mut().map(|input| writeln!(input, "{order}"));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // It may have ended, and is not forgotten before it was waited for.
        _ = kill_process(id.expect("a child has a number"), signal);
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it is our child")
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Heard {
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["ready", node, authority] => {
                self.ready = node.parse().ok().zip(authority.parse().ok());
            }
            ["joined"] => self.is_joined = true,
            ["finished"] => self.has_finished = true,
            _ => println!("a node says: {line}"),
        }
    }
}

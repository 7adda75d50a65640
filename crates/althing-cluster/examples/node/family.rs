//! The other processes of a cluster that was started by one command. They end when this one does,
//! because their standard input does.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use crate::Options;

/// How the nodes after the first one are called.
const NAMES: [&str; 4] = ["two", "three", "four", "five"];

pub(crate) struct Family(Vec<(&'static str, Child)>);

impl Family {
    /// Starts the processes after the first one.
    pub(crate) fn start(options: &Options, authority: &str) -> io::Result<Self> {
        let mut others = Vec::new();
        for name in NAMES.into_iter().take(options.nodes.saturating_sub(1)) {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["--name", name, "--authority", authority, "--data"]).arg(&options.data);
            if let Some(directory) = &options.tls {
                command.arg("--tls").arg(directory);
            }
            others.push((name, command.stdin(Stdio::piped()).spawn()?));
        }
        Ok(Self(others))
    }

    /// Says what can be typed.
    pub(crate) fn greet(&self) {
        if self.0.is_empty() {
            return;
        }
        println!("Type `a who`, `b add apples 3`, `@two c add apples 4`, or `@three kill`.");
    }

    /// Hands a line on that is for another node; returns one for this node.
    pub(crate) fn take(&mut self, line: String) -> Option<String> {
        let Some((name, rest)) = line.strip_prefix('@').and_then(|line| line.split_once(' '))
        else {
            return Some(line);
        };
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some((_, child)) if rest.trim() == "kill" => {
                _ = child.kill();
                println!("{name} is killed");
            }
            Some((_, child)) => {
                let sent = child.stdin.as_mut().map(|input| writeln!(input, "{rest}"));
                if !matches!(sent, Some(Ok(()))) {
                    println!("{name} is gone");
                }
            }
            None => println!("there is no {name}"),
        }
        None
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            drop(child.stdin.take());
            _ = child.wait();
        }
    }
}

//! What a run prints: its seed, what it did, and each failure with its shrunk program.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::program::{Op, Program};
use crate::records::Violation;

/// What has been run.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) programs: usize,
    pub(crate) messages: usize,
    pub(crate) events: usize,
    kinds: BTreeMap<String, usize>,
    flavours: BTreeMap<String, usize>,
}

impl Tally {
    pub(crate) fn count(&mut self, program: &Program) {
        self.programs += 1;
        *self.flavours.entry(format!("{:?}", program.flavour)).or_default() += 1;
        for list in program.clone().lists() {
            self.count_ops(list);
        }
    }

    fn count_ops(&mut self, ops: &mut [Op]) {
        for op in ops {
            let printed = format!("{op:?}");
            let kind = printed.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            *self.kinds.entry(kind.to_owned()).or_default() += 1;
            for inner in op.inner() {
                self.count_ops(inner);
            }
        }
    }

    pub(crate) fn print(&self, failures: usize) {
        println!(
            "torture: {} programs, {} messages, {} events heard, {failures} failures",
            self.programs, self.messages, self.events
        );
        println!("  on {}", list(&self.flavours));
        println!("  instructions {}", list(&self.kinds));
    }
}

fn list(counts: &BTreeMap<String, usize>) -> String {
    counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// A failure as people read it.
pub(crate) fn describe(program: &Program, broken: &Violation, panics: &[String]) -> String {
    let mut text = String::new();
    let seed = program.seed;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "BROKEN: {}\n  {}", broken.promise, broken.details);
    let _ = writeln!(text, "seed {seed} on {:?}; again: TORTURE_SEED={seed}", program.flavour);
    for panic in panics.iter().take(3) {
        let _ = writeln!(text, "  panic: {}", panic.replace('\n', " "));
    }
    for (index, node) in program.nodes.iter().enumerate() {
        let _ = writeln!(text, "  node {index}: {node:?}");
    }
    for (index, actor) in program.actors.iter().enumerate() {
        let _ = writeln!(text, "  actor {index}: node {} {:?}", actor.node, actor.birth);
        let hooks = [
            ("started", &actor.started),
            ("stopping", &actor.stopping),
            ("terminated", &actor.terminated),
        ];
        for (hook, ops) in hooks {
            if !ops.is_empty() {
                let _ = writeln!(text, "    {hook}:");
                describe_ops(&mut text, ops, 3);
            }
        }
        if !actor.dropped.is_empty() || actor.fails_once {
            let _ =
                writeln!(text, "    at drop {:?}, fails once: {}", actor.dropped, actor.fails_once);
        }
    }
    for (index, topic) in program.topics.iter().enumerate() {
        let _ = writeln!(text, "  topic {index}: {topic:?}");
    }
    for client in &program.clients {
        let _ = writeln!(text, "  client {:?}:", client.place);
        describe_ops(&mut text, &client.ops, 2);
    }
    text
}

fn describe_ops(text: &mut String, ops: &[Op], depth: usize) {
    for op in ops {
        let mut bare = op.clone();
        let inner: Vec<Vec<Op>> = bare.inner().into_iter().map(std::mem::take).collect();
        let _ = writeln!(text, "{:indent$}{bare:?}", "", indent = depth * 2);
        for ops in inner {
            describe_ops(text, &ops, depth + 1);
        }
    }
}

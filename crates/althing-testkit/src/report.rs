//! What a world says when a test fails in it: the seed, how to run it again, the last steps, and
//! who waits for whom.

use std::fmt::Write;
use std::time::Duration;

use althing::Blocked;

use crate::core::Core;

/// Steps shown of a run that failed; the whole trace is there by `World::trace`.
const LINES_SHOWN: usize = 50;
/// Actors shown of those that wait.
const BLOCKED_SHOWN: usize = 50;

/// Prints the report if a panic passes by.
pub(crate) struct OnPanic<'a> {
    core: &'a Core,
    was_panicking: bool,
}

impl<'a> OnPanic<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        Self { core, was_panicking: std::thread::panicking() }
    }
}

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.was_panicking {
            eprintln!("{}", failure(self.core));
        }
    }
}

/// The last steps before a failure, and how to see it again.
fn failure(core: &Core) -> String {
    let trace = core.recorder.lock().trace().last(LINES_SHOWN);
    let mut text = format!("\nthe world failed with seed {}; its last steps:\n{trace}", core.seed);
    let _ = write!(text, "to run it again: {}", how_to_rerun(core));
    text
}

fn how_to_rerun(core: &Core) -> String {
    let thread = std::thread::current();
    // The test harness names its threads after tests.
    let test = thread.name().filter(|name| *name != "main").unwrap_or("<this test>");
    if core.is_swept {
        format!("{}={} cargo test {test}", crate::sweep::SEED_VARIABLE, core.seed)
    } else {
        format!("cargo test {test} (World::new({}) decides all)", core.seed)
    }
}

/// Everybody waits for ever.
pub(crate) fn standstill(core: &Core) -> ! {
    let who = who_waits(core);
    panic!("everybody waits for ever (seed {})\n{who}", core.seed)
}

/// The limit of virtual time is reached.
pub(crate) fn out_of_time(core: &Core, until: Duration) -> ! {
    let who = who_waits(core);
    panic!("the test has not ended by {until:?} of virtual time (seed {})\n{who}", core.seed)
}

/// The limit of polls is reached.
pub(crate) fn out_of_polls(core: &Core, span: &str, polls: u64) -> ! {
    let (at, who) = (core.clock.now(), who_waits(core));
    panic!("no end after {polls} polls {span}, {at:?} of virtual time (seed {})\n{who}", core.seed)
}

/// Rules for faults that no message has met.
pub(crate) fn unmet_faults(core: &Core) {
    let unmet = core.faults.unmet();
    assert!(
        unmet.is_empty(),
        "no message has met these faults, so the test proves nothing about them (seed {}): {}",
        core.seed,
        unmet.join("; ")
    );
}

fn who_waits(core: &Core) -> String {
    let mut lines = vec!["the test's future waits".to_owned()];
    let members = core.members.lock().clone();
    for member in members {
        let Some(node) = member.node() else { continue };
        let blocked = node.inspector().blocked();
        let name = member.name();
        lines.extend(blocked.iter().take(BLOCKED_SHOWN).map(|actor| describe(name, actor)));
        if blocked.len() > BLOCKED_SHOWN {
            lines.push(format!("{name}: and {} more", blocked.len() - BLOCKED_SHOWN));
        }
    }
    lines.join("\n")
}

fn describe(node: &str, actor: &Blocked) -> String {
    let mut text = format!("{node}: {}", actor.id);
    let waits_for: Vec<String> = actor.waits_for.iter().map(ToString::to_string).collect();
    text.push_str(match (actor.is_at_work, waits_for.is_empty()) {
        (true, true) => " is in a handler that waits",
        (true, false) => " waits for a reply of ",
        (false, _) => " is not at work",
    });
    text.push_str(&waits_for.join(", "));
    if actor.depth > 0 {
        let _ = write!(text, "; messages in its mailbox: {}", actor.depth);
    }
    text
}

//! Makes a failing program smaller: takes parts out, runs what is left a few times, and keeps what
//! still breaks the same promise.
//!
//! Interleavings vary, so a candidate that passes may only have been lucky: it is tried several
//! times, and what remains is small rather than smallest.

use std::time::{Duration, Instant};

use crate::program::{AfterPanic, ClientPlace, Flavour, Op, Program, ReplyPlan, Way};
use crate::records::Violation;
use crate::runtimes::run_beside_itself;

/// How long one program is shrunk.
const SHRINK_MAX: Duration = Duration::from_secs(30);
/// How often a candidate is run, at once, before it is taken for sound.
const TRIES: usize = 10;

/// The smallest program found that breaks the same promise, and how it did.
pub(crate) fn shrink(program: &Program, broken: &Violation) -> (Program, Violation) {
    let until = Instant::now() + SHRINK_MAX;
    let mut best = (program.clone(), broken.clone());
    loop {
        let Some(smaller) = pass(&best, until) else { return best };
        best = smaller;
    }
}

/// One pass over all that could be taken out; none if nothing could, or the time is over.
fn pass(best: &(Program, Violation), until: Instant) -> Option<(Program, Violation)> {
    let mut current = None;
    let mut step = 0;
    loop {
        let (program, broken) = current.as_ref().unwrap_or(best);
        let Some(candidate) = candidate(program, step) else { return current };
        if Instant::now() > until {
            return current;
        }
        // Unchanged is not smaller.
        let is_new = format!("{candidate:?}") != format!("{program:?}");
        match is_new.then_some(()).and_then(|()| still_breaks(&candidate, broken.promise)) {
            // The next part has moved to this place.
            Some(broken) => current = Some((candidate, broken)),
            None => step += 1,
        }
    }
}

fn still_breaks(program: &Program, promise: &str) -> Option<Violation> {
    run_beside_itself(program, TRIES).into_iter().find(|broken| broken.promise == promise)
}

/// The program without its part number `step`: first whole lists, then single instructions, then
/// properties.
fn candidate(program: &Program, step: usize) -> Option<Program> {
    let mut smaller = program.clone();
    let lists = smaller.lists().len();
    if step < lists {
        let mut all = smaller.lists();
        // A list of one is left to the next stage.
        let half = all[step].len() / 2;
        all[step].truncate(half);
        return Some(smaller);
    }
    let step = step - lists;
    let ops = program.len();
    if step < ops {
        let mut left = step;
        for list in smaller.lists() {
            if remove(list, &mut left) {
                break;
            }
        }
        return Some(smaller);
    }
    simplify(program, step - ops)
}

/// Takes out the instruction with that number, counted through all depths.
fn remove(ops: &mut Vec<Op>, left: &mut usize) -> bool {
    for index in 0..ops.len() {
        if *left == 0 {
            ops.remove(index);
            return true;
        }
        *left -= 1;
        for inner in ops[index].inner() {
            if remove(inner, left) {
                return true;
            }
        }
    }
    false
}

/// Gives one property its plainest value.
fn simplify(program: &Program, step: usize) -> Option<Program> {
    let mut plain = program.clone();
    let actors = plain.actors.len();
    match step {
        0 => plain.flavour = Flavour::CurrentThread,
        1 => plain.nodes.iter_mut().for_each(|node| node.mailbox = None),
        2 => plain.nodes.iter_mut().for_each(|node| node.after_panic = AfterPanic::Stop),
        3 => plain.nodes.iter_mut().for_each(|node| node.passivates = false),
        4 => plain.nodes.iter_mut().for_each(|node| node.batch_budget = 128),
        5 => plain.nodes.iter_mut().for_each(|node| node.counts = true),
        6 => plain.actors.iter_mut().for_each(|actor| actor.fails_once = false),
        7 => plain.actors.iter_mut().for_each(|actor| actor.dropped.clear()),
        8 => plain.clients.iter_mut().for_each(|client| {
            if let ClientPlace::Thread(node) = client.place {
                client.place = ClientPlace::Task(node);
            }
        }),
        9 => plain.clients.retain(|client| !client.ops.is_empty()),
        10 => each_send(&mut plain, |send| send.gated = false),
        11 => each_send(&mut plain, |send| send.reply = ReplyPlan::Now),
        12 => each_send(&mut plain, |send| send.way = Way::Write),
        13 => each_send(&mut plain, |send| send.dropped.clear()),
        14 => plain.topics.iter_mut().for_each(|topic| topic.replay = 0),
        15 => plain.topics.iter_mut().for_each(|topic| topic.subscribers.truncate(1)),
        16 => plain.topics.iter_mut().for_each(|topic| topic.subscribers.clear()),
        17 if actors > 1 && !names(&mut plain, actors - 1) => drop(plain.actors.pop()),
        17 => {}
        _ => return None,
    }
    Some(plain)
}

fn each_op(ops: &mut [Op], act: &mut impl FnMut(&mut Op)) {
    for op in ops {
        act(op);
        for inner in op.inner() {
            each_op(inner, act);
        }
    }
}

fn each_send(program: &mut Program, mut act: impl FnMut(&mut crate::program::Send)) {
    for list in program.lists() {
        each_op(list, &mut |op| op.sends().into_iter().for_each(&mut act));
    }
}

/// Whether some instruction names an actor; told by how it prints, which has all numbers in it.
fn names(program: &mut Program, actor: usize) -> bool {
    let mut printed = String::new();
    for list in program.lists() {
        printed.push_str(&format!("{list:?}"));
    }
    let topics: Vec<_> = program.topics.iter().map(|topic| &topic.subscribers).collect();
    printed.push_str(&format!("{topics:?}"));
    printed.push_str(&format!(
        "{:?}",
        program.actors.iter().map(|plan| &plan.dropped).collect::<Vec<_>>()
    ));
    printed.split(|c: char| !c.is_ascii_digit()).any(|number| number == actor.to_string())
}

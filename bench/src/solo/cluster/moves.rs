//! `move`: how long an actor pauses that is asked without pause while it is moved from one process to
//! another and back.
//!
//! The pause of a move is the longest time between two answers, of all askers together, from just
//! before the move until just after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use althing::ActorId;
use althing_bench_workloads::{Budget, Sample, percentile_ns};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::{KIND, PATIENCE, Resident, ResidentCalls, Stage, There, error, join, name};

const ASKERS: u64 = 4;

const MOVES: usize = 200;

/// Before and after each move.
const AROUND: Duration = Duration::from_millis(20);

pub(crate) fn run(_: Budget) -> Result<Vec<Sample>, String> {
    let stage = Stage::new()?;
    let (node, member) = stage.runtime.block_on(join("here", &stage.address()))?;
    let names = ["one", "two"];
    let nodes = names.map(|name| There::start(name, &stage.address()));
    let [one, two] = nodes;
    let ids = [one.as_ref().map_err(Clone::clone)?.id(), two.as_ref().map_err(Clone::clone)?.id()];
    let id = ActorId::named(KIND, name(0));
    stage.runtime.block_on(async {
        // Their shares come first.
        sleep(Duration::from_secs(3)).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let (answers, mut answered) = unbounded_channel();
        let askers: Vec<_> = (0..ASKERS)
            .map(|_| {
                let actor = node.get::<Resident>(name(0));
                tokio::spawn(ask(actor, answers.clone(), is_over.clone()))
            })
            .collect();
        // When all askers have failed, nobody is waited for.
        drop(answers);
        let (mut pauses, mut idle) = (Vec::new(), Vec::new());
        for turn in 0..MOVES {
            let to = turn % 2;
            sleep(AROUND).await;
            // The same without a move, in turn with it: what the machine does.
            idle.push(gap(&come(&mut answered)));
            member.move_to(&id, names[to]).await.map_err(error)?;
            let mut around = come(&mut answered);
            while around.last().is_none_or(|(_, process)| *process != ids[to]) {
                let answer = timeout(PATIENCE, answered.recv()).await.ok().flatten();
                around.push(answer.ok_or("it was moved, and never answers there")?);
            }
            sleep(AROUND).await;
            around.extend(come(&mut answered));
            pauses.push(gap(&around));
        }
        is_over.store(true, Ordering::Relaxed);
        for asker in askers {
            asker.await.map_err(error)??;
        }
        pauses.sort_unstable();
        idle.sort_unstable();
        let ms = |of: &[u32], share| percentile_ns(of, share) / 1e6;
        Ok(vec![
            Sample::new("p50", "ms", ms(&pauses, 0.5)),
            Sample::new("p99", "ms", ms(&pauses, 0.99)),
            Sample::new("longest", "ms", ms(&pauses, 1.0)),
            Sample::new("p99-without-move", "ms", ms(&idle, 0.99)),
        ])
    })
}

/// Asks without pause; an ask that fails fails the run.
async fn ask(
    actor: althing::ActorRef<Resident>,
    answers: UnboundedSender<(Instant, u32)>,
    is_over: Arc<AtomicBool>,
) -> Result<(), String> {
    while !is_over.load(Ordering::Relaxed) {
        let (process, _) = actor.here().await.map_err(error)?;
        _ = answers.send((Instant::now(), process));
    }
    Ok(())
}

/// The answers that have come, in the order of their times.
fn come(answered: &mut UnboundedReceiver<(Instant, u32)>) -> Vec<(Instant, u32)> {
    let mut all = Vec::new();
    while let Ok(answer) = answered.try_recv() {
        all.push(answer);
    }
    // Those of several tasks are told in any order.
    all.sort_unstable();
    all
}

/// The longest time between two answers, in nanoseconds.
fn gap(answers: &[(Instant, u32)]) -> u32 {
    let gaps = answers.windows(2).map(|pair| pair[1].0.saturating_duration_since(pair[0].0));
    u32::try_from(gaps.max().unwrap_or_default().as_nanos()).unwrap_or(u32::MAX)
}

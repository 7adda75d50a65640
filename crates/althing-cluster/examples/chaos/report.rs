//! What came of a run, for people.

use std::fmt;
use std::path::PathBuf;

use crate::checks;
use crate::faults::Injected;
use crate::history::{Deed, History};
use crate::plan::KINDS;

/// Broken promises that are printed.
const SHOWN_MAX: usize = 40;

pub(crate) struct Report {
    seed: u64,
    faults: Injected,
    lines: Vec<String>,
    broken: Vec<String>,
    diaries: Option<PathBuf>,
}

impl Report {
    pub(crate) fn new(
        seed: u64,
        faults: Injected,
        history: &History,
        broken: Vec<String>,
        diaries: Option<PathBuf>,
    ) -> Self {
        Self { seed, faults, lines: operations(history), broken, diaries }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.broken.is_empty()
    }
}

fn operations(history: &History) -> Vec<String> {
    let deeds = |deed| history.incidents.iter().filter(|incident| incident.deed == deed).count();
    let again = history.requests.iter().filter(|ack| ack.tries > 1).count();
    let epochs: usize = history
        .journals
        .values()
        .map(|journal| journal.chunk_by(|one, next| one.epoch == next.epoch).count())
        .sum();
    let entries: usize = history.journals.values().map(Vec::len).sum();
    let mut waits: Vec<i64> = history.requests.iter().map(|ack| ack.to - ack.from).collect();
    waits.sort_unstable();
    let wait = |share: usize| {
        let at = (waits.len() * share / 1_000).min(waits.len().saturating_sub(1));
        waits.get(at).map_or(0, |wait| wait / 1_000)
    };
    vec![
        format!("requests answered      {:8}, {again} of them after several tries", waits.len()),
        format!("  p50, p99, longest    {} ms, {} ms, {} ms", wait(500), wait(990), wait(1_000)),
        format!("looks answered         {:8}", history.looks.len()),
        format!("nodes' asks answered   {:8}", history.asks.len()),
        format!(
            "tells accepted         {:8}, {} handed back",
            history.told.len(),
            history.refused.len()
        ),
        format!("  lost with a node     {:8}", checks::lost(history)),
        format!(
            "entries in the store   {entries:8}, in {epochs} epochs of {} counters",
            history.journals.len()
        ),
        format!("activations            {:8}", history.activations.len()),
        format!(
            "lives of nodes         {:8}, {} evicted",
            deeds(Deed::Joined),
            deeds(Deed::Evicted)
        ),
        format!("nodes that could not join in time, started again: {}", deeds(Deed::NotJoined)),
        format!(
            "begun by a former owner just after SIGCONT, refused by the fence: {}",
            checks::activations_overlap(history).ran_on
        ),
    ]
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for kind in KINDS {
            let (count, time) = self.faults.get(kind).copied().unwrap_or_default();
            writeln!(f, "fault {kind:16} {count:8}, {:.1} s", time.as_secs_f64())?;
        }
        let all: u64 = self.faults.values().map(|(count, _)| count).sum();
        writeln!(f, "faults                 {all:8}")?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        write!(f, "violations             {:8}", self.broken.len())?;
        for broken in self.broken.iter().take(SHOWN_MAX) {
            write!(f, "\n  {broken}")?;
        }
        if let Some(diaries) = &self.diaries {
            write!(f, "\nthe diaries are in {}", diaries.display())?;
        }
        Ok(())
    }
}

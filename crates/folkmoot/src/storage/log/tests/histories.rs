//! Random histories of appends, faults and power cuts. Whatever happened, the log holds all that
//! was acknowledged, nothing twice, and everything in the order in which it was appended.

use std::io::ErrorKind;
use std::ops::Range;

use proptest::prelude::*;

use super::super::disk::faulty::Fault;
use super::faults::reopened;
use super::*;

/// What happens to a log.
#[derive(Clone, Debug)]
enum Step {
    /// So many records at once, as one caller pipelines them; all their answers are awaited.
    Append(u64),
    /// The next writes and syncs; a write keeps so many of its bytes.
    FailWrites(Vec<Option<usize>>),
    FailSyncs(Vec<bool>),
    /// The disk is full while this many records are tried.
    Full(u64),
    /// Power goes, and of what each file had not synced only these bytes stay.
    CutPower(Range<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    let kept = proptest::option::of(0_usize..200);
    prop_oneof![
        6 => (1_u64..20).prop_map(Step::Append),
        2 => proptest::collection::vec(kept, 1..4).prop_map(Step::FailWrites),
        2 => proptest::collection::vec(any::<bool>(), 1..4).prop_map(Step::FailSyncs),
        1 => (1_u64..5).prop_map(Step::Full),
        2 => (0_usize..400, 0_usize..400).prop_map(|(a, b)| Step::CutPower(a.min(b)..a.max(b))),
    ]
}

/// What was appended so far, and what of it was acknowledged.
#[derive(Default)]
struct History {
    appended: u64,
    acknowledged: Vec<u64>,
}

impl History {
    /// Appends records under one epoch, as a room does that was just loaded.
    async fn append(&mut self, log: &TestLog, count: u64) {
        let epoch = log.queue.epoch();
        let numbers = self.appended + 1..=self.appended + count;
        self.appended += count;
        let appends: Vec<_> =
            numbers.map(|number| (number, log.append_under(epoch, number))).collect();
        let mut failed = false;
        for (number, append) in appends {
            match append.await {
                Ok(_) => {
                    assert!(!failed, "record {number} was taken behind one that was refused");
                    self.acknowledged.push(number);
                }
                Err(_) => failed = true,
            }
        }
    }

    fn check(&self, found: &[u64]) {
        assert!(found.is_sorted_by(|a, b| a < b), "out of order or twice: {found:?}");
        assert!(found.last().is_none_or(|last| *last <= self.appended), "invented: {found:?}");
        for number in &self.acknowledged {
            assert!(found.binary_search(number).is_ok(), "lost record {number}: {found:?}");
        }
    }
}

async fn run(directory: &Path, steps: Vec<Step>) {
    let mut history = History::default();
    let mut log = TestLog::open(directory, 2_048);
    for step in steps {
        match step {
            Step::Append(count) => {
                reopened(&log.queue).await;
                history.append(&log, count).await;
            }
            Step::FailWrites(faults) => log.disk.plan_writes(faults.into_iter().map(fault)),
            Step::FailSyncs(faults) => {
                log.disk.plan_syncs(faults.into_iter().map(|fails| fault(fails.then_some(0))));
            }
            Step::Full(count) => {
                log.disk.set_broken(Some(ErrorKind::StorageFull));
                history.append(&log, count).await;
                log.disk.set_broken(None);
            }
            Step::CutPower(kept) => {
                let disk = log.disk.clone();
                log.close();
                disk.cut_power(&kept);
                history.check(&recover(directory).unwrap());
                log = TestLog::open(directory, 2_048);
            }
        }
    }
    log.close();
    history.check(&recover(directory).unwrap());
}

fn fault(kept: Option<usize>) -> Fault {
    kept.map_or(Fault::Pass, |kept| Fault::Fail { kind: ErrorKind::Other, kept })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_what_was_acknowledged(steps in proptest::collection::vec(step(), 1..25)) {
        let directory = TestDirectory::new("history");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(&directory.0, steps));
    }
}

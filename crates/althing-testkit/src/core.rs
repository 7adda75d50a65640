//! What all nodes of a world share, and the loop that runs it.
//!
//! The loop polls one ready task after the other, chosen by the seed; when nobody is ready, time
//! jumps to the next sleeper. It ends with the main future, or with a panic that names the seed:
//! when only housekeeping is left, or at a limit.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, Ground};
use crate::faults::Faults;
use crate::member::{Member, MemberId};
use crate::random::Random;
use crate::report;
use crate::tasks::{MAIN, TaskId, Tasks};
use crate::trace::Recorder;

/// How long housekeeping is watched after everybody else has come to a standstill: twice as long as
/// between two sweeps for idle actors, so that one of them has seen every actor as it is.
const STANDSTILL: Duration = Duration::from_secs(2);
/// Polls at one instant of virtual time: seconds of a core. Ends tasks that wake each other for
/// ever.
const POLLS_AT_ONCE_MAX: u64 = 1_000_000;
/// Polls in one run, far more than any test needs: ends what ticks every millisecond for a test
/// that waits for something else.
const POLLS_MAX: u64 = 20_000_000;

/// What all nodes of a world share.
pub(crate) struct Core {
    pub(crate) seed: u64,
    pub(crate) clock: Arc<Clock>,
    pub(crate) faults: Faults,
    pub(crate) tasks: Tasks,
    pub(crate) recorder: Mutex<Recorder>,
    /// Chooses tasks. Streams of their own, so that a draw of an actor, the test or a fault does
    /// not change the schedule.
    pub(crate) schedule: Mutex<Random>,
    /// What actors draw.
    pub(crate) random: Mutex<Random>,
    /// What the test draws.
    pub(crate) test_random: Mutex<Random>,
    /// Whether a fault strikes.
    pub(crate) fault_random: Mutex<Random>,
    pub(crate) members: Mutex<Vec<Arc<Member>>>,
    pub(crate) resident_bytes: Mutex<Option<u64>>,
    pub(crate) polls_at_once_max: AtomicU64,
    pub(crate) is_running: AtomicBool,
    /// Whether rules that met no message fail the test.
    pub(crate) checks_faults: AtomicBool,
    /// Whether the seed is one of many that are tried.
    pub(crate) is_swept: bool,
}

/// How one run is going.
struct Progress {
    /// When the run must be over.
    until: Duration,
    polls: u64,
    /// The polls when time last went on.
    polls_before: u64,
    /// Since when only housekeeping goes on.
    standstill_since: Option<Duration>,
}

impl Core {
    pub(crate) fn new(seed: u64, is_swept: bool) -> Self {
        Self {
            seed,
            clock: Arc::default(),
            faults: Faults::default(),
            tasks: Tasks::default(),
            recorder: Mutex::new(Recorder::new(seed)),
            schedule: Mutex::new(Random::new(seed, 0)),
            random: Mutex::new(Random::new(seed, 1)),
            test_random: Mutex::new(Random::new(seed, 2)),
            fault_random: Mutex::new(Random::new(seed, 3)),
            members: Mutex::default(),
            resident_bytes: Mutex::default(),
            polls_at_once_max: AtomicU64::new(POLLS_AT_ONCE_MAX),
            is_running: AtomicBool::new(false),
            checks_faults: AtomicBool::new(true),
            is_swept,
        }
    }

    pub(crate) fn add_member(self: &Arc<Self>, name: &str) -> Arc<Member> {
        let mut members = self.members.lock();
        let id = MemberId(u32::try_from(members.len()).expect("fewer than 2^32 nodes"));
        let member = Arc::new(Member::new(id, name, self.clone()));
        members.push(member.clone());
        member
    }

    /// Runs `future`, and whatever it starts, until it ends.
    pub(crate) fn run<T>(&self, limit: Duration, future: impl Future<Output = T>) -> T {
        let _report = report::OnPanic::new(self);
        let mut main = pin!(future);
        let until = self.clock.now().saturating_add(limit);
        let mut progress = Progress { until, polls: 0, polls_before: 0, standstill_since: None };
        self.tasks.begin_main();
        loop {
            let chosen = self.tasks.choose(&mut self.schedule.lock());
            match chosen {
                None => self.skip(&mut progress),
                Some(MAIN) => {
                    self.count(&mut progress, MAIN, Ground::Fore);
                    if let Poll::Ready(output) = self.poll_main(main.as_mut()) {
                        return output;
                    }
                }
                Some(id) => self.poll_task(id, &mut progress),
            }
        }
    }

    fn poll_main<T>(&self, main: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        let waker = self.tasks.main_waker();
        let _running = Running::begin(&self.is_running);
        main.poll(&mut Context::from_waker(&waker))
    }

    fn poll_task(&self, id: TaskId, progress: &mut Progress) {
        // It may have ended: what wakes it may come late.
        let Some(mut taken) = self.tasks.take(id) else { return };
        self.count(progress, id, taken.ground);
        let poll = {
            let _running = Running::begin(&self.is_running);
            taken.task.as_mut().poll(&mut Context::from_waker(&taken.waker))
        };
        if poll.is_ready() {
            self.tasks.forget(id);
            return;
        }
        // Whose node has crashed while it ran ends here.
        drop(self.tasks.put_back(id, taken.task));
    }

    fn count(&self, progress: &mut Progress, id: TaskId, ground: Ground) {
        self.recorder.lock().note(id.0);
        if ground == Ground::Fore {
            progress.standstill_since = None;
            self.clock.note_activity();
        }
        progress.polls += 1;
        let at_once_max = self.polls_at_once_max.load(Ordering::Relaxed);
        if progress.polls - progress.polls_before > at_once_max {
            report::out_of_polls(self, "at one instant", at_once_max);
        }
        if progress.polls > POLLS_MAX {
            report::out_of_polls(self, "in all", POLLS_MAX);
        }
    }

    /// Nobody is ready: goes on to the next sleeper, if that leads anywhere.
    fn skip(&self, progress: &mut Progress) {
        let due = match (self.clock.next_foreground(), self.clock.next_background()) {
            (Some(fore), back) => {
                progress.standstill_since = None;
                back.map_or(fore, |back| fore.min(back))
            }
            (None, Some(back)) => {
                let since = *progress.standstill_since.get_or_insert_with(|| self.clock.now());
                if back > since + STANDSTILL {
                    report::standstill(self);
                }
                back
            }
            (None, None) => report::standstill(self),
        };
        if due > progress.until {
            report::out_of_time(self, progress.until);
        }
        if due > self.clock.now() {
            progress.polls_before = progress.polls;
        }
        self.clock.skip_to(due);
        self.recorder.lock().note(u64::try_from(due.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Ends everything: nodes hold each other's world, so that nobody else would.
    pub(crate) fn end(&self) {
        let members = std::mem::take(&mut *self.members.lock());
        for member in members {
            member.crash();
        }
        self.tasks.drop_those_of(None);
    }
}

/// Says that a task of the world is being polled, until it drops: also if the task panics.
struct Running<'a>(&'a AtomicBool);

impl<'a> Running<'a> {
    fn begin(is_running: &'a AtomicBool) -> Self {
        is_running.store(true, Ordering::Relaxed);
        Self(is_running)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

//! `publish-contended-*`: four publishers of one topic at the same time, and how long one is held
//! up.
//!
//! Who publishes delivers, too, so one publisher may be left with everybody's events. Each
//! `publish` is timed; from the longest is taken what a publish takes alone, which leaves the time
//! spent on others. A batch is 200 events from each publisher, fewer in all than a mailbox holds,
//! and ends when every subscriber has heard every event.

use crate::measure::{Budget, Sample, percentile_ns};
use crate::system::{System, on_worker};
use crate::tally::Board;
use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

const PUBLISHERS: u64 = 4;
/// Events of one publisher in a batch: those of all four fit into a mailbox of 1,024.
const EVENTS: u64 = 200;
/// Events of one batch.
const BATCH: u64 = PUBLISHERS * EVENTS;
/// Counters that the subscribers' reports are spread over.
const SHARDS: usize = 256;

/// Where publishers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Tasks,
    Threads,
}

/// A topic with its subscribers.
struct Square<S: System> {
    system: Arc<S>,
    board: Arc<Board>,
    group: Arc<S::Group>,
    subscribers: usize,
}

/// What one way of publishing showed.
struct Seen {
    /// Sorted.
    publishes_ns: Vec<u32>,
    events: u64,
    elapsed: Duration,
}

pub(crate) fn run<S: System>(budget: Budget, subscribers: usize) -> Result<Vec<Sample>, String> {
    let square = Square::<S>::new(subscribers);
    let tasks_alone_ns = square.publish_alone(From::Tasks)?;
    let threads_alone_ns = square.publish_alone(From::Threads)?;
    let half = Budget { seconds: budget.seconds / 2.0, ..budget };
    let tasks = square.measure(half, From::Tasks)?;
    let threads = square.measure(half, From::Threads)?;
    let beyond = |metric, seen: &Seen, alone_ns: f64| {
        let longest = percentile_ns(&seen.publishes_ns, 1.0);
        // At least one: a ratio to nothing says nothing.
        Sample::new(metric, "ns", (longest - alone_ns).max(1.0))
    };
    let p99 =
        |metric, seen: &Seen| Sample::new(metric, "ns", percentile_ns(&seen.publishes_ns, 0.99));
    let rate = |metric, seen: &Seen| {
        Sample::new(metric, "1/s", seen.events as f64 / seen.elapsed.as_secs_f64())
    };
    Ok(vec![
        beyond("longest-tasks", &tasks, tasks_alone_ns),
        p99("p99-tasks", &tasks),
        rate("events-tasks", &tasks),
        beyond("longest-threads", &threads, threads_alone_ns),
        p99("p99-threads", &threads),
        rate("events-threads", &threads),
        Sample::new("alone-tasks", "ns", tasks_alone_ns),
        Sample::new("alone-threads", "ns", threads_alone_ns),
    ])
}

impl<S: System> Square<S> {
    fn new(subscribers: usize) -> Self {
        let system = Arc::new(S::start());
        let board = Board::new(SHARDS.min(subscribers));
        let tallies = board.tallies(subscribers, BATCH).collect();
        let spawner = Arc::clone(&system);
        let group = Arc::new(on_worker(&*system, async move { spawner.group(tallies).await }));
        Self { system, board, group, subscribers }
    }

    /// Median time of a publish while nobody else publishes, in nanoseconds.
    fn publish_alone(&self, from: From) -> Result<f64, String> {
        let mut alone = Vec::new();
        self.batch(from, 1, &mut alone)?;
        alone.sort_unstable();
        Ok(percentile_ns(&alone, 0.50))
    }

    fn measure(&self, budget: Budget, from: From) -> Result<Seen, String> {
        let mut publishes_ns = Vec::new();
        let warm_up = Instant::now() + Duration::from_secs_f64(budget.warm_up_seconds);
        while Instant::now() < warm_up {
            self.batch(from, PUBLISHERS, &mut publishes_ns)?;
        }
        publishes_ns.clear();
        let measured = Budget { warm_up_seconds: 0.0, ..budget };
        let durations = measured.run(|| self.batch(from, PUBLISHERS, &mut publishes_ns))?;
        publishes_ns.sort_unstable();
        let events = BATCH * durations.len() as u64;
        Ok(Seen { publishes_ns, events, elapsed: durations.iter().sum() })
    }

    /// Has so many publishers share the events of a batch.
    fn batch(
        &self,
        from: From,
        publishers: u64,
        publishes_ns: &mut Vec<u32>,
    ) -> Result<Duration, String> {
        let (tx, rx) = mpsc::channel();
        self.expect();
        let begun = match from {
            From::Tasks => self.publish_from_tasks(publishers, &tx),
            From::Threads => self.publish_from_threads(publishers, &tx),
        };
        drop(tx);
        let ended = self.check()?;
        publishes_ns.extend(rx.iter().flatten());
        Ok(ended.duration_since(begun))
    }

    fn publish_from_tasks(&self, publishers: u64, tx: &mpsc::Sender<Vec<u32>>) -> Instant {
        let begun = Instant::now();
        for _ in 0..publishers {
            let group = Arc::clone(&self.group);
            self.system.run_task(publish::<S>(group, BATCH / publishers, tx.clone()));
        }
        begun
    }

    fn publish_from_threads(&self, publishers: u64, tx: &mpsc::Sender<Vec<u32>>) -> Instant {
        let go = Arc::new(Barrier::new(publishers as usize + 1));
        for _ in 0..publishers {
            let (system, group) = (Arc::clone(&self.system), Arc::clone(&self.group));
            let (go, tx) = (Arc::clone(&go), tx.clone());
            // Detached on purpose: the batch ends with what the publishers send here at their end.
            thread::spawn(move || {
                go.wait();
                system.on_thread(publish::<S>(group, BATCH / publishers, tx));
            });
        }
        let begun = Instant::now();
        go.wait();
        begun
    }

    fn expect(&self) {
        self.board.sum.store(0, Ordering::Relaxed);
        self.board.handled.expect(self.subscribers);
    }

    /// Waits for the last subscriber, and checks that each heard every event once.
    fn check(&self) -> Result<Instant, String> {
        let ended = self.board.handled.wait().map_err(|error| error.to_string())?;
        let sum = self.board.sum.load(Ordering::Relaxed);
        let expected = self.subscribers as u64 * BATCH;
        if sum == expected {
            Ok(ended)
        } else {
            Err(format!("subscribers added up to {sum} instead of {expected}"))
        }
    }
}

/// Publishes ones, and sends how long each took.
async fn publish<S: System>(group: Arc<S::Group>, events: u64, tx: mpsc::Sender<Vec<u32>>) {
    let mut publishes_ns = Vec::with_capacity(events as usize);
    for _ in 0..events {
        let begun = Instant::now();
        S::publish(&group, 1).await;
        publishes_ns.push(u32::try_from(begun.elapsed().as_nanos()).unwrap_or(u32::MAX));
        yield_once().await;
    }
    // The receiver waits for every publisher.
    let _ = tx.send(publishes_ns);
}

/// Lets the other tasks of the worker run, so that publishers take turns.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

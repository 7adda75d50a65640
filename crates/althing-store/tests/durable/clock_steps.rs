//! The machine's clock is put forward and back while requests come again.
//!
//! The test runs once more, in a process of its own whose clock goes by a file.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use althing::{ActorError, Node, Start, Wire, actor};
use althing_store::{Memory, RequestId, Saved, State, Store};

/// Names the file in the process that goes by it.
const CLOCK: &str = "FAKETIME_TIMESTAMP_FILE";
const DAY: i64 = 86_400;

#[derive(Default, Wire)]
struct Count {
    done: u64,
}

impl State for Count {}

struct Counter {
    saved: Saved<Count>,
}

#[actor(name = "test.counter-by-a-clock", durable = saved)]
impl Counter {
    async fn count(&mut self, request: RequestId) -> u64 {
        self.saved.once(&request, |count| {
            count.done += 1;
            count.done
        })
    }
}

fn node(store: &Arc<dyn Store>) -> Node {
    let store = store.clone();
    let opening = move |start: Start<Counter>| {
        let store = store.clone();
        async move { Ok::<_, ActorError>(Counter { saved: Saved::load(store, &start).await? }) }
    };
    Node::builder("clock").actor(opening).build()
}

fn library() -> PathBuf {
    let lib = std::fs::read_dir("/usr/lib").expect("it is there").flatten();
    let mut libraries = lib.map(|it| it.path().join("faketime/libfaketimeMT.so.1"));
    let found = libraries.find(|path| path.exists());
    found.expect("libfaketime is installed: apt-get install faketime")
}

fn put(clock: &PathBuf, seconds: i64) {
    // Renamed into its place, so that nobody reads half of it.
    let new = clock.with_extension("new");
    std::fs::write(&new, format!("{seconds:+}\n")).expect("there is room");
    std::fs::rename(&new, clock).expect("there is room");
}

async fn requests_come_again(clock: PathBuf) {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let mut done = 0;
    for (life, steps) in
        [[DAY, 0, 20 * DAY], [-30 * DAY, 0, -DAY], [0, DAY, 2 * DAY]].iter().enumerate()
    {
        put(&clock, 0);
        let node = node(&store);
        let counter = node.get::<Counter>("c");
        for (n, step) in steps.iter().enumerate() {
            let ask = async |what: &str| {
                counter.count(RequestId::new(format!("{what} {life} {n}"))).await.expect("it runs")
            };
            assert_eq!(ask("before").await, done + 1);
            put(&clock, *step);
            // What its turn forgets is known with the next one.
            assert_eq!(ask("after").await, done + 2);
            assert_eq!(ask("before").await, done + 1, "it was done once, a moment ago");
            assert_eq!(ask("after").await, done + 2);
            done += 2;
        }
        node.kill();
    }
}

#[test]
fn a_request_that_comes_again_is_done_once_though_the_clock_is_put_forward_or_back() {
    let name = "clock_steps::\
        a_request_that_comes_again_is_done_once_though_the_clock_is_put_forward_or_back";
    if let Some(clock) = std::env::var_os(CLOCK) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        return runtime.block_on(requests_come_again(clock.into()));
    }
    let directory = tempfile::tempdir().expect("a directory");
    let clock = directory.path().join("clock");
    put(&clock, 0);
    let tests = std::env::current_exe().expect("a test has a path");
    let inside = Command::new(tests)
        .args([name, "--exact", "--nocapture"])
        .env("LD_PRELOAD", library())
        .env(CLOCK, &clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .output()
        .expect("it runs");
    let (said, why) =
        (String::from_utf8_lossy(&inside.stdout), String::from_utf8_lossy(&inside.stderr));
    assert!(inside.status.success() && said.contains("1 passed"), "{said}\n{why}");
}

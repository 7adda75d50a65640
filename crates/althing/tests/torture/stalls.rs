//! When the machine did not let this process run, or a runtime had its turn late: a promise with a
//! time in it is not judged across such a moment, as nobody can keep it.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{LazyLock, Once};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Between two looks at the clock.
const EVERY: Duration = Duration::from_millis(5);
/// How late a look is when the process was held up; others may have been held up for longer.
const LATE: Duration = Duration::from_millis(10);

/// As `LATE`, for a runtime, in which many programs wait for their turn at all times.
const RUNTIME_LATE: Duration = Duration::from_millis(25);

/// From this on somebody may be too late whose deadline is seconds away, because nothing comes to an
/// end in one turn.
const LONG: Duration = Duration::from_millis(500);

static START: LazyLock<Instant> = LazyLock::new(Instant::now);
/// The end of the last moment, in microseconds since the start.
static LAST_US: AtomicU64 = AtomicU64::new(0);
/// As above, of a long one.
static LAST_LONG_US: AtomicU64 = AtomicU64::new(0);

/// Starts the thread that looks at the clock, once for the process.
pub(crate) fn watch() {
    static THREAD: Once = Once::new();
    THREAD.call_once(|| {
        LazyLock::force(&START);
        std::thread::spawn(|| {
            let mut last = Instant::now();
            loop {
                std::thread::sleep(EVERY);
                last = look(last, LATE);
            }
        });
    });
}

/// Has a runtime look at the clock, too.
pub(crate) fn watch_in(runtime: &Handle) {
    runtime.spawn(async {
        let mut last = Instant::now();
        loop {
            tokio::time::sleep(EVERY).await;
            last = look(last, RUNTIME_LATE);
        }
    });
}

fn look(last: Instant, late: Duration) -> Instant {
    let now = Instant::now();
    let late_by = now - last;
    if late_by > EVERY + late {
        LAST_US.store(micros(now), SeqCst);
    }
    if late_by > LONG {
        LAST_LONG_US.store(micros(now), SeqCst);
    }
    now
}

fn micros(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(*START).as_micros()).unwrap_or(u64::MAX)
}

/// Whether the process was held up at some moment since then.
pub(crate) fn any_since(at: Instant) -> bool {
    LAST_US.load(SeqCst) >= micros(at)
}

/// Whether the process, or a runtime, was held up for long at some moment since then.
pub(crate) fn any_long_since(at: Instant) -> bool {
    LAST_LONG_US.load(SeqCst) >= micros(at)
}

//! How the system's scheduler treats our own threads, where the processors are busy with sockets.

use std::io;

/// A third of the processor time of a thread at the normal priority, while both want to run.
const NICENESS: i32 = 5;

/// A tenth of what Linux gives a thread at a time by default, or less.
#[cfg(target_os = "linux")]
const SHORT_SLICE_NS: u64 = 100_000;

/// Lowers the priority of the calling thread, and so of those that it starts: it gets what threads
/// of the normal priority leave, or a third of their time, and that in short pieces, so that nobody
/// waits long for it.
///
/// # Errors
/// If the system refuses it; then it may have done a part.
pub fn lower_priority() -> io::Result<()> {
    rustix::process::nice(NICENESS)?;
    run_soon()
}

/// Has the calling thread run soon after it is woken, for a short time each: for one that mostly
/// waits, and for which others wait. Linux before 6.12, and other systems, do as before.
///
/// # Errors
/// If the system refuses it; then all is as before.
#[cfg(target_os = "linux")]
pub fn run_soon() -> io::Result<()> {
    let mut attributes = attributes()?;
    attributes.sched_runtime = SHORT_SLICE_NS;
    // SAFETY: the pointer is to a structure that holds its own size, and is valid during the call;
    // 0 is the calling thread.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
pub fn run_soon() -> io::Result<()> {
    Ok(())
}

/// Policy, niceness and slice of the calling thread.
#[cfg(target_os = "linux")]
fn attributes() -> io::Result<libc::sched_attr> {
    let mut attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let (size, into) = (attributes.size, &raw mut attributes);
    // SAFETY: the pointer is to a structure of the size that is said, and valid during the call.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, into, size, 0) };
    if got == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_to_run_soon_has_a_short_slice_and_the_priority_it_had() {
        let thread = std::thread::spawn(|| {
            let before = attributes()?;
            run_soon()?;
            io::Result::Ok((before, attributes()?))
        });
        let (before, after) = thread.join().expect("it only asks").expect("no right is needed");
        assert_eq!(
            (after.sched_policy, after.sched_nice),
            (before.sched_policy, before.sched_nice)
        );
        // Older systems have one slice for all threads, and say 0 here.
        let expected = if before.sched_runtime == 0 { 0 } else { SHORT_SLICE_NS };
        assert_eq!(after.sched_runtime, expected);
    }
}

//! What follows a panic: a pure policy with a back-off and an intensity limit.
//!
//! `Restarts::decide` is a value function of its history and the time; the activation executes what
//! it says.

use std::collections::VecDeque;
use std::time::Duration;

/// Restarts allowed within [`RESTART_WINDOW_DEFAULT`] before supervision gives up (Erlang/OTP's
/// intensity, wider because our restarts back off).
pub const RESTARTS_MAX_DEFAULT: u32 = 10;
/// Window in which restarts are counted.
pub const RESTART_WINDOW_DEFAULT: Duration = Duration::from_secs(60);
/// Restarts that are remembered at most: one MiB. A policy that allows more within its window means
/// that there is no limit.
const RECENT_MAX: usize = 65_536;
/// Longest text of a failure that is kept: enough for a panic's message, little beside an actor.
const FAILURE_CHARS_MAX: usize = 500;

/// What follows a panic in a handler.
///
/// ```
/// use althing::{ActorOptions, AskError, Node, RestartPolicy, Supervision, actor};
///
/// #[derive(Default)]
/// struct Fragile(u32);
///
/// fn twice() -> ActorOptions {
///     let policy = RestartPolicy { restarts_max: 2, ..RestartPolicy::default() };
///     ActorOptions::default().supervision(Supervision::Restart(policy))
/// }
///
/// #[actor(name = "example.fragile", options = twice)]
/// impl Fragile {
///     async fn touch(&mut self) -> u32 {
///         self.0 += 1;
///         self.0
///     }
///
///     async fn hit(&mut self) {
///         panic!("broken");
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::builder("shelf").actor(async |_| Ok(Fragile::default())).build();
/// let vase = node.get::<Fragile>("vase");
/// vase.touch().await?;
/// assert_eq!(vase.hit().await, Err(AskError::HandlerPanicked(vase.id())));
/// assert_eq!(vase.touch().await?, 1, "built anew");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervision {
    /// Keep the state and go on with the next message.
    Resume,
    /// Drop the state and build it anew, unless that happens too often.
    Restart(RestartPolicy),
    /// Stop the actor.
    Stop,
    /// Stop the actor and fail its parent as if the parent had panicked: the parent's own
    /// supervision decides.
    Escalate,
}

impl Default for Supervision {
    fn default() -> Self {
        Self::Restart(RestartPolicy::default())
    }
}

/// Which children restart when one of them does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChildStrategy {
    /// The one that failed.
    #[default]
    OneForOne,
    /// All of them.
    AllForOne,
    /// The one that failed and those started after it.
    RestForOne,
}

/// How often and how fast an actor restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Restarts allowed within `window`; one more stops the actor.
    pub restarts_max: u32,
    /// Window in which restarts are counted.
    pub window: Duration,
    /// Pause before the second restart of a window; the first is at once. Doubles each time.
    pub backoff: Duration,
    /// Longest pause.
    pub backoff_max: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            restarts_max: RESTARTS_MAX_DEFAULT,
            window: RESTART_WINDOW_DEFAULT,
            backoff: Duration::from_millis(10),
            backoff_max: Duration::from_secs(5),
        }
    }
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Resume,
    RestartAfter(Duration),
    Stop,
    Escalate,
}

/// The restarts of one actor, kept only once it has failed.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    /// Of the present window, oldest first.
    recent: VecDeque<Duration>,
    /// All of them, by a sibling's failure too.
    total: u32,
    /// What the actor failed with last, as text: the error itself may hold something foreign.
    /// Boxed, because few ever fail.
    last: Option<Box<Failure>>,
}

/// A failure of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The panic's or the error's text, cut after 500 characters.
    pub text: String,
    /// When it was, in time since the node's start.
    pub at: Duration,
}

impl Failure {
    pub(crate) fn new(error: &impl std::fmt::Display, at: Duration) -> Self {
        Self { text: error.to_string().chars().take(FAILURE_CHARS_MAX).collect(), at }
    }
}

impl Restarts {
    /// Whether the actor has never failed or been restarted.
    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0 && self.last.is_none() && self.recent.is_empty()
    }

    /// Takes down what the actor fails with now.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.last = Some(Box::new(failure));
    }

    /// Counts a restart.
    pub(crate) fn count(&mut self) {
        self.total = self.total.saturating_add(1);
    }

    /// How often the actor was restarted.
    pub(crate) fn total(&self) -> u32 {
        self.total
    }

    /// What it failed with last.
    pub(crate) fn last(&self) -> Option<Failure> {
        self.last.as_deref().cloned()
    }

    /// Decides after a panic at `now` (time since the node started).
    pub(crate) fn decide(&mut self, policy: Supervision, now: Duration) -> Verdict {
        let policy = match policy {
            Supervision::Resume => return Verdict::Resume,
            Supervision::Stop => return Verdict::Stop,
            Supervision::Escalate => return Verdict::Escalate,
            Supervision::Restart(policy) => policy,
        };
        let is_over = |at: &Duration| now.saturating_sub(*at) >= policy.window;
        while self.recent.len() >= RECENT_MAX || self.recent.front().is_some_and(is_over) {
            self.recent.pop_front();
        }
        if self.recent.len() >= policy.restarts_max as usize {
            return Verdict::Stop;
        }
        let pause = match self.recent.len() {
            0 => Duration::ZERO,
            n => policy.backoff.saturating_mul(1 << (n - 1).min(20) as u32).min(policy.backoff_max),
        };
        self.recent.push_back(now);
        Verdict::RestartAfter(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(restarts_max: u32) -> Supervision {
        Supervision::Restart(RestartPolicy { restarts_max, ..RestartPolicy::default() })
    }

    #[test]
    fn restarts_back_off_and_then_stop() {
        let mut restarts = Restarts::default();
        let verdicts: Vec<_> =
            (0..4).map(|s| restarts.decide(policy(3), Duration::from_secs(s))).collect();
        assert_eq!(
            verdicts,
            [
                Verdict::RestartAfter(Duration::ZERO),
                Verdict::RestartAfter(Duration::from_millis(10)),
                Verdict::RestartAfter(Duration::from_millis(20)),
                Verdict::Stop
            ]
        );
    }

    #[test]
    fn a_policy_without_a_limit_remembers_a_bounded_number_of_restarts() {
        let policy = Supervision::Restart(RestartPolicy {
            restarts_max: u32::MAX,
            window: Duration::MAX,
            ..RestartPolicy::default()
        });
        let mut restarts = Restarts::default();
        for second in 0..3 * RECENT_MAX as u64 {
            let verdict = restarts.decide(policy, Duration::from_secs(second));
            assert!(matches!(verdict, Verdict::RestartAfter(_)));
        }
        assert_eq!(restarts.recent.len(), RECENT_MAX);
    }

    #[test]
    fn restarts_outside_the_window_are_forgotten() {
        let mut restarts = Restarts::default();
        restarts.decide(policy(1), Duration::ZERO);
        assert_eq!(restarts.decide(policy(1), Duration::from_secs(1)), Verdict::Stop);
        assert_eq!(
            restarts.decide(policy(1), Duration::from_secs(61)),
            Verdict::RestartAfter(Duration::ZERO)
        );
    }
}

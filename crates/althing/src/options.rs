//! Per-type settings: mailbox, supervision, passivation. Values only; the runtime reads them,
//! nothing here acts.

use std::time::Duration;

use crate::activation::supervision::{ChildStrategy, Supervision};

/// Messages that may wait in a mailbox by default.
pub const MAILBOX_LEN_MAX_DEFAULT: u32 = 1_024;
/// How long an ask waits for its reply, and a tell for room, unless told otherwise.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(5);
/// Messages run in one poll before other tasks get their turn.
pub const BATCH_BUDGET_DEFAULT: u32 = 128;

/// Settings of an actor type.
///
/// ```
/// use althing::{ActorOptions, MailboxKind, Node, actor};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor(name = "example.counter")]
/// impl Counter {
///     async fn add(&mut self, n: u64) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A node may replace the options that the type names itself.
/// let options = ActorOptions::default()
///     .mailbox(MailboxKind::Bounded(8))
///     .passivate_after(std::time::Duration::from_secs(600));
/// let node = Node::builder("shop").options::<Counter>(options).build();
/// let counter = node.spawn(Counter::default());
/// assert_eq!(counter.add(2).await?, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActorOptions {
    /// Which messages may wait, and how many.
    pub mailbox: MailboxKind,
    /// What follows a panic.
    pub supervision: Supervision,
    /// Which children restart when one of them does.
    pub children: ChildStrategy,
    /// Idle time after which an actor that can come back is unloaded; `None`: never.
    pub passivate_after: Option<Duration>,
    /// Default deadline of asks and waiting tells.
    pub deadline: Duration,
    /// Messages run in one poll before other tasks get their turn.
    pub batch_budget: u32,
}

impl Default for ActorOptions {
    fn default() -> Self {
        Self {
            mailbox: MailboxKind::Bounded(MAILBOX_LEN_MAX_DEFAULT),
            supervision: Supervision::default(),
            children: ChildStrategy::default(),
            passivate_after: None,
            deadline: DEADLINE_DEFAULT,
            batch_budget: BATCH_BUDGET_DEFAULT,
        }
    }
}

impl ActorOptions {
    /// Sets the mailbox.
    #[must_use]
    pub fn mailbox(mut self, mailbox: MailboxKind) -> Self {
        self.mailbox = mailbox;
        self
    }

    /// Sets what follows a panic.
    #[must_use]
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = supervision;
        self
    }

    /// Sets which children restart when one of them does.
    #[must_use]
    pub fn children(mut self, strategy: ChildStrategy) -> Self {
        self.children = strategy;
        self
    }

    /// Sets the idle time after which an actor is unloaded that can come back: it has a name, and
    /// its type a factory on its node. Others live until they are stopped.
    #[must_use]
    pub fn passivate_after(mut self, idle: Duration) -> Self {
        self.passivate_after = Some(idle);
        self
    }

    /// Sets the default deadline of asks and waiting tells.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets how many messages run in one poll.
    #[must_use]
    pub fn batch_budget(mut self, messages: u32) -> Self {
        self.batch_budget = messages.max(1);
        self
    }
}

/// How many messages may wait, and in which order they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxKind {
    /// At most this many wait; more are refused or wait for room.
    Bounded(u32),
    /// Without limit: memory is the bound. For trusted senders only.
    Unbounded,
}

impl MailboxKind {
    pub(crate) fn len_max(self) -> u32 {
        match self {
            Self::Bounded(len_max) => len_max.max(1),
            Self::Unbounded => u32::MAX,
        }
    }
}

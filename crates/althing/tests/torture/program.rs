//! A torture program as data: who is there, and what each is told to do.
//!
//! A program says nothing about the interleaving, which is the machine's. It never holds anything
//! of the runtime, so that it can be cloned, cut down and printed. Numbers that name actors, topics
//! and nodes are indices into the program's own lists; an instruction whose subject is not there
//! (yet, or any more) is passed over.

/// A whole program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) flavour: Flavour,
    pub(crate) nodes: Vec<NodePlan>,
    pub(crate) actors: Vec<ActorPlan>,
    pub(crate) topics: Vec<TopicPlan>,
    pub(crate) clients: Vec<ClientPlan>,
}

/// Which tokio runtimes the nodes of a program run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// A current-thread runtime of its own whose clock is virtual: long waits cost nothing.
    Paused,
    CurrentThread,
    TwoWorkers,
    ThreeWorkers,
    /// Each node on another runtime.
    Several,
}

/// A node and the options of the actors on it.
#[derive(Clone, Debug)]
pub(crate) struct NodePlan {
    /// `None` is unbounded.
    pub(crate) mailbox: Option<u32>,
    pub(crate) after_panic: AfterPanic,
    pub(crate) siblings: Siblings,
    pub(crate) batch_budget: u32,
    pub(crate) passivates: bool,
    pub(crate) has_factory: bool,
    pub(crate) counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterPanic {
    Restart,
    RestartOnce,
    Resume,
    Stop,
    Escalate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Siblings {
    Alone,
    All,
    Rest,
}

/// One actor, and what its hooks do.
#[derive(Clone, Debug)]
pub(crate) struct ActorPlan {
    pub(crate) node: usize,
    pub(crate) birth: Birth,
    pub(crate) started: Vec<Op>,
    pub(crate) stopping: Vec<Op>,
    pub(crate) terminated: Vec<Op>,
    /// What the drop of its first state does.
    pub(crate) dropped: Vec<DropOp>,
    /// Whether its factory fails at its first call.
    pub(crate) fails_once: bool,
}

/// How an actor comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Birth {
    Spawned,
    SpawnedWithFactory,
    /// By its first message.
    Named,
    SpawnedByName,
    /// By an instruction, as a child of whoever runs that.
    Later,
}

#[derive(Clone, Debug)]
pub(crate) struct TopicPlan {
    pub(crate) node: usize,
    pub(crate) replay: usize,
    /// Who is subscribed from the beginning.
    pub(crate) subscribers: Vec<usize>,
}

/// Somebody outside who sends.
#[derive(Clone, Debug)]
pub(crate) struct ClientPlan {
    pub(crate) place: ClientPlace,
    pub(crate) ops: Vec<Op>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientPlace {
    /// A task of that node's runtime.
    Task(usize),
    /// A thread of its own.
    Thread(usize),
}

/// A message to be made.
#[derive(Clone)]
pub(crate) struct Send {
    pub(crate) to: usize,
    pub(crate) way: Way,
    pub(crate) lane: Lane,
    /// Whether the receiver's guard stashes it while its gate is shut.
    pub(crate) gated: bool,
    pub(crate) reply: ReplyPlan,
    pub(crate) ops: Vec<Op>,
    pub(crate) dropped: Vec<DropOp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Write,
    Read,
    Delayed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Normal,
    High,
    Low,
}

/// What the handler of a delayed message does with the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyPlan {
    Now,
    /// Kept in the state until `Op::SettleReplies`.
    Keep,
    /// Sent by a detached task after some ticks.
    Detach(u16),
    Drop,
    /// Handed on to another actor, whose reply it is then.
    HandOn(usize),
}

/// How a tell meets a full mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Try,
    Wait,
    /// Through a `Recipient`, trying.
    Recipient,
}

/// One instruction. Times are in ticks: a millisecond, or a tenth of a second where the clock is
/// virtual.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// So many tells in a row.
    Tell(Send, Patience, u8),
    /// With a timeout of its own, if any.
    Ask(Send, Option<u16>),
    AskBoth(Send, Send),
    /// Polls an ask a number of times and drops it.
    PollAsk(Send, u8),
    /// Polls an ask once, then leaves it to a detached task.
    MoveAsk(Send),
    /// Asks until another task of the thread has run.
    AskInLoop(usize),
    Broadcast {
        node: usize,
    },
    Yield,
    Sleep(u16),
    Block,
    Panic,
    SettleReplies,
    Detach(Vec<Op>),
    Pipe(u16, Vec<Op>),
    After(u16, Vec<Op>),
    /// As `After`, and outlives unloading.
    WakeAfter(u16, Vec<Op>),
    AfterForever,
    /// Sends itself the items of a stream, which come after so many ticks each.
    Attach {
        items: Items,
        ticks: u16,
        ops: Vec<Op>,
    },
    Every {
        period: u16,
        clone_panics: bool,
    },
    CancelTimer,
    Subscribe {
        who: usize,
        topic: usize,
    },
    Unsubscribe {
        who: usize,
        topic: usize,
    },
    Publish {
        topic: usize,
        ops: Vec<Op>,
        dropped: Vec<DropOp>,
    },
    Replay {
        topic: usize,
    },
    /// Publishes as the topic's owner.
    Own {
        topic: usize,
        events: u8,
    },
    /// Publishes on threads of their own, in no runtime.
    PublishOnThreads {
        topic: usize,
        threads: u8,
        ops: Vec<Op>,
    },
    /// Reads so many events, beginning with some that have come already.
    Stream {
        topic: usize,
        back: u8,
        events: u8,
    },
    /// Begins to read; what came is looked at in the end.
    KeepStream {
        topic: usize,
    },
    Watch(usize),
    Unwatch(usize),
    Link(usize),
    Stop(usize),
    StopAndWait(usize),
    /// Polls `stopped` a number of times and drops it.
    PollStopped(usize, u8),
    Kill(usize),
    /// Ends a life as if another node owned the actor.
    Fence(usize),
    /// Holds an actor between two messages for some ticks; then it goes on, or is sent away.
    Seal {
        who: usize,
        ticks: u16,
        departs: bool,
    },
    /// Holds all actors of a node for some ticks.
    Freeze {
        node: usize,
        ticks: u16,
    },
    StopSelf,
    FailSelf,
    Passivate,
    Activate(usize),
    Spawn(usize),
    /// Starts an actor under its name, if that is free.
    SpawnNamed(usize),
    /// Finds an actor by its weak address.
    Upgrade(usize),
    /// A turn of a node's ledger, which is held until it is durable.
    Turn(TurnPlan),
    ShutGate,
    OpenGate,
    Blocking,
    Shutdown {
        node: usize,
    },
    KillNode {
        node: usize,
    },
}

/// A turn that is held, what it lets out, and what becomes of it.
#[derive(Clone, Debug)]
pub(crate) struct TurnPlan {
    pub(crate) node: usize,
    /// How long its handler waits, in ticks.
    pub(crate) waits: u16,
    /// How long its commit takes, in ticks.
    pub(crate) commits: u16,
    pub(crate) fails: bool,
    pub(crate) tells: Option<usize>,
    pub(crate) publishes: Option<usize>,
    pub(crate) then: Then,
}

/// What is done to the ledger once it was asked for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    Fence,
    Stop,
    Kill,
}

/// The items of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Items {
    Some(u8),
    /// It never has one, and never ends.
    Never,
}

/// What a drop does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropOp {
    /// Tells an actor twice.
    Tell(usize),
    Publish(usize),
    AskTopic(usize),
    Spawn(usize),
    Stop(usize),
    Kill(usize),
    Unsubscribe {
        who: usize,
        topic: usize,
    },
    Panic,
}

/// Says only what is not usual.
impl std::fmt::Debug for Send {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "to {}", self.to)?;
        if self.way != Way::Write {
            write!(f, " {:?}", self.way)?;
        }
        if self.way == Way::Delayed {
            write!(f, " {:?}", self.reply)?;
        }
        if self.lane != Lane::Normal {
            write!(f, " {:?}", self.lane)?;
        }
        if self.gated {
            write!(f, " gated")?;
        }
        if !self.dropped.is_empty() {
            write!(f, " at drop {:?}", self.dropped)?;
        }
        if !self.ops.is_empty() {
            write!(f, " {:?}", self.ops)?;
        }
        Ok(())
    }
}

impl Op {
    /// The instructions inside this one.
    pub(crate) fn inner(&mut self) -> Vec<&mut Vec<Op>> {
        match self {
            Self::Tell(send, ..)
            | Self::Ask(send, _)
            | Self::PollAsk(send, _)
            | Self::MoveAsk(send) => {
                vec![&mut send.ops]
            }
            Self::AskBoth(left, right) => vec![&mut left.ops, &mut right.ops],
            Self::Detach(ops)
            | Self::Pipe(_, ops)
            | Self::After(_, ops)
            | Self::WakeAfter(_, ops)
            | Self::Attach { ops, .. }
            | Self::PublishOnThreads { ops, .. }
            | Self::Publish { ops, .. } => vec![ops],
            _ => Vec::new(),
        }
    }

    /// The messages that this one sends.
    pub(crate) fn sends(&mut self) -> Vec<&mut Send> {
        match self {
            Self::Tell(send, ..)
            | Self::Ask(send, _)
            | Self::PollAsk(send, _)
            | Self::MoveAsk(send) => {
                vec![send]
            }
            Self::AskBoth(left, right) => vec![left, right],
            _ => Vec::new(),
        }
    }
}

impl Program {
    /// The outermost lists of instructions.
    pub(crate) fn lists(&mut self) -> Vec<&mut Vec<Op>> {
        let hooks = self
            .actors
            .iter_mut()
            .flat_map(|actor| [&mut actor.started, &mut actor.stopping, &mut actor.terminated]);
        hooks.chain(self.clients.iter_mut().map(|client| &mut client.ops)).collect()
    }

    /// How many instructions there are, at all depths.
    pub(crate) fn len(&self) -> usize {
        fn count(ops: &mut [Op]) -> usize {
            let inner = |op: &mut Op| op.inner().into_iter().map(|ops| count(ops)).sum::<usize>();
            ops.iter_mut().map(|op| 1 + inner(op)).sum()
        }
        self.clone().lists().into_iter().map(|ops| count(ops)).sum()
    }
}

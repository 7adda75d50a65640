//! The workloads by name: what they measure, how much by default, and which way is better.
//!
//! The loops themselves live in `althing-bench-workloads` (shared with the peers) and in `solo/`
//! (those that only make sense for Althing).

/// Which of two values wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Higher,
    Lower,
}

/// What a run of a workload starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Nothing but itself: part of `all`.
    OneProcess,
    /// Servers and load generators, for many seconds: part of `applications`.
    Services,
}

/// One named workload.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Messages per batch, or actors where actors are counted.
    pub(crate) messages: u64,
    pub(crate) better: Better,
    /// Whether peers are asked for it.
    pub(crate) shared: bool,
    pub(crate) scope: Scope,
    /// Workloads of one group do the same work, sent from threads or tasks; a ratio is taken
    /// against the best peer of the whole group.
    pub(crate) group: &'static str,
}

impl Better {
    /// Which way is better for one metric of a workload, whose metrics may point both ways; `None`
    /// for what only describes the run.
    pub(crate) fn of(metric: &str, unit: &str) -> Option<Self> {
        // `map-http` measures peers in the same run.
        if metric.starts_with("goakt") || metric.starts_with("protoactor") {
            return None;
        }
        match unit {
            "M/s" | "1/s" | "%" => Some(Self::Higher),
            "" | "vehicles" | "% of CPU" | "% above mean" => None,
            _ => Some(Self::Lower),
        }
    }
}

impl Workload {
    /// Whether senders may outrun the receiver, so that the kind of mailbox decides.
    pub(crate) fn fills_mailboxes(&self) -> bool {
        self.group.starts_with("tell-8")
    }
}

/// Enough to hide the start of a batch, few enough that the slowest peer takes two seconds.
const TELL_MESSAGES: u64 = 800_000;
const ACTORS: u64 = 200_000;

const fn shared(
    name: &'static str,
    group: &'static str,
    messages: u64,
    better: Better,
    about: &'static str,
) -> Workload {
    let scope = Scope::OneProcess;
    Workload { name, about, messages, better, shared: true, scope, group }
}

const fn solo(name: &'static str, better: Better, about: &'static str) -> Workload {
    let scope = Scope::OneProcess;
    Workload { name, about, messages: 1, better, shared: false, scope, group: name }
}

const fn application(name: &'static str, better: Better, about: &'static str) -> Workload {
    Workload { scope: Scope::Services, ..solo(name, better, about) }
}

/// With so many members, connections, people or reminders.
const fn rooms(name: &'static str, scale: u64, better: Better, about: &'static str) -> Workload {
    Workload { messages: scale, ..application(name, better, about) }
}

/// Every workload, in the order of the tables.
pub(crate) const CATALOGUE: &[Workload] = &[
    shared(
        "tell-8to1",
        "tell-8to1",
        TELL_MESSAGES,
        Better::Higher,
        "8 threads outside the runtime tell 1 actor (bounded, 1,024)",
    ),
    shared(
        "tell-8to1-tasks",
        "tell-8to1",
        TELL_MESSAGES,
        Better::Higher,
        "8 tasks inside the runtime tell 1 actor (bounded, 1,024)",
    ),
    shared(
        "tell-8to1-actors",
        "tell-8to1-actors",
        TELL_MESSAGES,
        Better::Higher,
        "8 actors tell 1 actor from their handlers",
    ),
    shared(
        "tell-8to8",
        "tell-8to8",
        TELL_MESSAGES,
        Better::Higher,
        "8 threads outside the runtime tell one actor each",
    ),
    shared(
        "tell-8to8-tasks",
        "tell-8to8",
        TELL_MESSAGES,
        Better::Higher,
        "8 tasks inside the runtime tell one actor each",
    ),
    shared("ask-1", "ask-1", 1, Better::Lower, "one client asks one actor, ns"),
    shared("ask-8", "ask-8", 1, Better::Higher, "8 clients ask one actor, asks per second"),
    shared("publish-1k", "publish-1k", 1, Better::Lower, "ns per subscriber, 1,000 subscribers"),
    shared(
        "publish-100k",
        "publish-100k",
        1,
        Better::Lower,
        "ns per subscriber, 100,000 subscribers",
    ),
    shared(
        "publish-1m",
        "publish-1m",
        1,
        Better::Lower,
        "ns per subscriber, 1,000,000 subscribers",
    ),
    shared("actor-memory", "actor-memory", ACTORS, Better::Lower, "bytes per idle actor"),
    shared("spawn", "spawn", ACTORS, Better::Lower, "ns per actor started"),
    shared("stop", "stop", ACTORS, Better::Lower, "ns per actor stopped"),
    shared(
        "tell-allocs",
        "tell-allocs",
        TELL_MESSAGES,
        Better::Lower,
        "heap allocations per message (Rust systems)",
    ),
    solo(
        "fairness",
        Better::Lower,
        "ns until a quiet actor answers while 100 hot ones are flooded",
    ),
    solo(
        "ask-block-on",
        Better::Lower,
        "ns per ask from the thread that blocks on main, beside a task",
    ),
    solo("ask-chain-100k", Better::Lower, "ns per link of 100,000 actors that ask each other"),
    solo(
        "publish-contended-500",
        Better::Lower,
        "ns that 1 of 4 publishers is held up beyond its own event, 500 subscribers",
    ),
    solo(
        "publish-contended-10k",
        Better::Lower,
        "ns that 1 of 4 publishers is held up beyond its own event, 10,000 subscribers",
    ),
    solo(
        "durable-commit",
        Better::Higher,
        "changes of saved states acknowledged per second, embedded store, fsync on",
    ),
    solo("durable-wake", Better::Lower, "ns to load a saved state and answer, embedded store"),
    solo(
        "read-states",
        Better::Higher,
        "read states changed or read per second, 8 million entries, 80 % changes",
    ),
    solo("relay-broadcast", Better::Lower, "one message into personal channels, until it is there"),
    shared(
        "remote-tell",
        "remote-tell",
        400_000,
        Better::Higher,
        "8 tasks tell 1 or 8 actors of another process",
    ),
    shared(
        "remote-ask",
        "remote-ask",
        1,
        Better::Lower,
        "ns per ask of another process, beside a plain socket; 64 tasks ask 8 actors there",
    ),
    solo(
        "remote-publish",
        Better::Lower,
        "ns per subscriber of 100,000 on three nodes, beyond what the way to one of each takes",
    ),
    solo("timers", Better::Lower, "ns per timer of 100,000: set, cancelled, fired"),
    solo("passivate", Better::Lower, "ns per named actor started, unloaded, and brought back"),
    rooms(
        "relay-channels",
        1_000_000,
        Better::Lower,
        "bytes of a channel, and ms until a quick reader has a message beside slow ones",
    ),
    rooms(
        "relay-histories",
        100_000,
        Better::Lower,
        "durable histories: ms to start with them, and to publish while their log is made smaller",
    ),
    rooms(
        "relay-idle",
        3_000,
        Better::Lower,
        "KiB of a quiet connection by SSE and by HTTP streaming, subscribed to one channel",
    ),
    application(
        "relay-modes",
        Better::Lower,
        "a message stored in PostgreSQL until it is at a member, by api, outbox, cdc and both",
    ),
    application(
        "takeover",
        Better::Lower,
        "ms from SIGKILL of a node until its actor answers elsewhere",
    ),
    application("move", Better::Lower, "ms that an actor pauses which is asked while it is moved"),
    application(
        "rolling-restart",
        Better::Lower,
        "ms that a socket of 3,000 is without its rooms while each of three nodes restarts",
    ),
    application(
        "chat-send-foreign",
        Better::Higher,
        "messages acknowledged per second through a node where no room lives, beside one node",
    ),
    rooms(
        "million",
        1_000_000,
        Better::Lower,
        "ms from SIGKILL of one of three nodes until its third of a million actors answers",
    ),
    application(
        "read-states-durable",
        Better::Higher,
        "changes of read states a second that a crash cannot undo, by the log with group sync",
    ),
    application(
        "read-states-paced",
        Better::Lower,
        "200,000 operations a second on read states while rows are stored, beside Go; --seconds 300",
    ),
    application(
        "store-append",
        Better::Higher,
        "messages that 64 writers append to Folkmoot's embedded store per second, fsync on",
    ),
    application("store-append-postgres", Better::Higher, "the same as store-append on PostgreSQL"),
    application(
        "store-append-cassandra",
        Better::Higher,
        "the same as store-append on one node of Cassandra, every write synced",
    ),
    rooms(
        "store-history",
        10_000_000,
        Better::Lower,
        "us to read the newest 50 messages of a room, of 10 million in 1,000 rooms",
    ),
    application(
        "treasure-3k",
        Better::Lower,
        "ms from a move to its event, 3,000 players at 10 a second",
    ),
    application(
        "treasure-50k",
        Better::Lower,
        "ms from a move to its event, 50,000 players at 1 a second",
    ),
    application(
        "chat-send",
        Better::Higher,
        "messages that Folkmoot acknowledges per second, fsync on",
    ),
    application("chat-send-postgres", Better::Higher, "the same as chat-send on PostgreSQL"),
    application(
        "chat-send-cassandra",
        Better::Higher,
        "the same as chat-send on one node of Cassandra, every write synced",
    ),
    application(
        "durable-commit-postgres",
        Better::Higher,
        "the same as durable-commit on PostgreSQL, fsync on",
    ),
    application(
        "durable-commit-cassandra",
        Better::Higher,
        "the same as durable-commit on one node of Cassandra, every write synced",
    ),
    rooms(
        "reminders",
        1_000_000,
        Better::Lower,
        "a million reminders, embedded store: s to set them, ms that they come late within a minute",
    ),
    rooms(
        "reminders-postgres",
        1_000_000,
        Better::Lower,
        "the same as reminders on PostgreSQL, fsync on",
    ),
    rooms(
        "room-members",
        100_000,
        Better::Lower,
        "a room of 100 to 100,000 members, one online: loading, delivery, history, recovery",
    ),
    rooms(
        "room-online",
        10_000,
        Better::Lower,
        "a room with 100 to 10,000 online: ms to the last of them, events a second to all",
    ),
    rooms(
        "rooms-small",
        10_000,
        Better::Lower,
        "1,000 rooms of 10 online, 8,000 messages a second: ms to each delivery",
    ),
    rooms(
        "idle-connections",
        5_000,
        Better::Lower,
        "KiB that a connection keeps of the server, subscribed to 1 room and to 50",
    ),
    rooms(
        "reconnect-storm",
        10_000,
        Better::Lower,
        "10,000 clients come back at once, each to 20 rooms and 100 missed events",
    ),
    rooms(
        "room-create",
        100_000,
        Better::Higher,
        "100,000 people join one room by invite while others talk",
    ),
    application(
        "map-http",
        Better::Higher,
        "answers of /vehicle per second over 1,000 connections, beside goakt and protoactor-go",
    ),
    application(
        "map-ingest",
        Better::Lower,
        "ms from MQTT to the event stream at 50,000 positions/s",
    ),
    application("map-million", Better::Lower, "resident MB with 1,000,000 known vehicles, asleep"),
];

/// The workload of that name.
pub(crate) fn find(name: &str) -> Option<&'static Workload> {
    CATALOGUE.iter().find(|workload| workload.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_better_when_higher_and_times_when_lower() {
        assert_eq!(Better::of("flood", "M/s"), Some(Better::Higher));
        assert_eq!(Better::of("p99", "ns"), Some(Better::Lower));
        assert_eq!(Better::of("goakt-p99", "ms"), None);
    }

    #[test]
    fn names_are_unique_and_every_group_is_named_by_a_member() {
        for (index, workload) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..index].iter().all(|other| other.name != workload.name));
            assert!(find(workload.group).is_some(), "{}", workload.group);
        }
    }
}

//! A parcel as it travels, and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use althing::remote::{Cargo, Message, Parcel, Reply};
use althing::{ActorId, Incarnation, Priority};

use crate::protocol::Packed;

/// Bytes of a tell beside its body and the names of its actor, at most: numbers, and the name of
/// the message, which is that of a method.
const OVERHEAD_LEN: usize = 512;

/// A parcel without its reply, which stays here.
pub(crate) fn pack(parcel: Parcel, epoch: u64) -> (Packed, Option<Reply>) {
    let Parcel { to, node, cargo } = parcel;
    let empty = |to: ActorId| Packed {
        epoch,
        to,
        node: node.map(|node| node.0),
        name: String::new(),
        body: Vec::new(),
        priority: 0,
        chain: Vec::new(),
        ask: None,
        control: None,
    };
    match cargo {
        Cargo::Control(control) => (Packed { control: Some(control), ..empty(to) }, None),
        Cargo::Message(Message { name, body, priority, chain, reply }) => {
            let priority = match priority {
                Priority::Normal => 0,
                Priority::High => 1,
                Priority::Low => 2,
            };
            (Packed { name, body, priority, chain, ..empty(to) }, reply)
        }
    }
}

/// Bytes of the longest tell that certainly goes to that actor in a frame of that length.
pub(crate) fn body_len_max(to: &ActorId, frame_len_max: usize) -> usize {
    let name = to.kind().as_str().len() + to.key().map_or(0, |key| key.len());
    frame_len_max.saturating_sub(name + OVERHEAD_LEN)
}

/// The parcel again; `answer` makes where the reply goes.
pub(super) fn unpack(packed: Packed, answer: impl FnOnce(u64) -> Reply) -> Parcel {
    let Packed { epoch: _, to, node, name, body, priority, chain, ask, control } = packed;
    let priority = match priority {
        1 => Priority::High,
        2 => Priority::Low,
        _ => Priority::Normal,
    };
    let cargo = match control {
        Some(control) => Cargo::Control(control),
        None => Cargo::Message(Message { name, body, priority, chain, reply: ask.map(answer) }),
    };
    Parcel { to, node: node.map(Incarnation), cargo }
}

/// Counts an ask that another node waits for, until it is dropped.
pub(super) struct Owed(Arc<AtomicUsize>);

impl Owed {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

//! A parcel as bytes.

use althing::remote::{Cargo, Control, Message, Parcel, Reply};
use althing::{ActorId, AskError, Incarnation, Priority, Wire};

/// What crosses the bridge; `control` or a message.
#[derive(Wire)]
pub(super) struct Frame {
    pub(super) to: ActorId,
    pub(super) node: Option<u64>,
    pub(super) from: u64,
    pub(super) name: String,
    pub(super) body: Vec<u8>,
    pub(super) priority: u32,
    pub(super) chain: Vec<ActorId>,
    pub(super) ask: Option<u64>,
    pub(super) control: Option<Control>,
}

/// What became of an ask.
#[derive(Wire)]
pub(super) enum Outcome {
    Replied(Vec<u8>),
    Failed(AskError),
}

impl Frame {
    /// A frame about that actor with nothing in it.
    pub(super) fn about(to: ActorId, node: Option<Incarnation>, from: Incarnation) -> Self {
        Self {
            to,
            node: node.map(|node| node.0),
            from: from.0,
            name: String::new(),
            body: Vec::new(),
            priority: 0,
            chain: Vec::new(),
            ask: None,
            control: None,
        }
    }

    pub(super) fn with_priority(self, priority: Priority) -> Self {
        let priority = match priority {
            Priority::Normal => 0,
            Priority::High => 1,
            Priority::Low => 2,
        };
        Self { priority, ..self }
    }

    /// The parcel again; `answer` makes where the reply goes.
    pub(super) fn unpack(self, answer: impl FnOnce(u64) -> Reply) -> Parcel {
        let Self { to, node, name, body, priority, chain, ask, control, .. } = self;
        let priority = match priority {
            1 => Priority::High,
            2 => Priority::Low,
            _ => Priority::Normal,
        };
        let cargo = match control {
            Some(control) => Cargo::Control(control),
            None => {
                let reply = ask.map(answer);
                Cargo::Message(Message { name, body, priority, chain, reply })
            }
        };
        Parcel { to, node: node.map(Incarnation), cargo }
    }
}

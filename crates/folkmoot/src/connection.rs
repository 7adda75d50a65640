//! A connection, as rooms and users reach it from the node that they live on.
//!
//! A session stays on the node of its socket and takes no messages from others. Where there are
//! several nodes it has an `Ear` beside it: the only actor of a connection that other nodes know.
//! On its own node nobody needs the ear, and a server without a cluster has none.

use std::sync::Arc;

use althing::wire::{Depth, WireField};
use althing::{
    Actor, ActorRef, Codecs, Context, Handler, Recipient, Remote, Wire, WireError, Write,
};
use folkmoot_gateway::Outbox;
use folkmoot_protocol::DisconnectCode;

use crate::stream::Presence;

/// Takes from other nodes what is for one connection.
#[derive(Debug)]
pub(crate) struct Ear {
    outbox: Arc<Outbox>,
    session: Recipient<Presence, ()>,
}

/// Ends the connection.
#[derive(Debug, Wire)]
pub(crate) struct HangUp {
    code: DisconnectCode,
}

/// What ends a connection, from wherever that is decided.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    /// Its socket is on this node.
    Here { outbox: Arc<Outbox>, ear: Option<ActorRef<Ear>> },
    /// Its socket is on another node.
    There(ActorRef<Ear>),
}

impl Ear {
    pub(crate) fn new(outbox: Arc<Outbox>, session: Recipient<Presence, ()>) -> Self {
        Self { outbox, session }
    }

    /// The life of the node that has the socket; 0 is none.
    pub(crate) fn node(ear: &ActorRef<Self>) -> u64 {
        ear.id().origin().map_or(0, |(node, _)| node.0)
    }
}

impl Actor for Ear {
    const NAME: &'static str = "folkmoot.ear";
    const CODECS: Option<fn(&mut Codecs<Self>)> = Some(Self::codecs);
}

impl Remote for Ear {
    fn codecs(codecs: &mut Codecs<Self>) {
        codecs.message::<Presence, Write>("presence");
        codecs.message::<HangUp, Write>("hang_up");
    }
}

impl Handler<Presence> for Ear {
    type Reply = ();

    async fn handle(&mut self, presence: Presence, _: &mut Context<Self>) {
        // A session without room for it is told with the next change.
        let _ = self.session.try_tell(presence);
    }
}

impl Handler<HangUp> for Ear {
    type Reply = ();

    async fn handle(&mut self, HangUp { code }: HangUp, _: &mut Context<Self>) {
        self.outbox.close(code);
    }
}

impl Line {
    /// The life of the other node that has the socket; `None`: this one has it.
    pub(crate) fn node(&self) -> Option<u64> {
        match self {
            Self::Here { .. } => None,
            Self::There(ear) => Some(Ear::node(ear)),
        }
    }

    /// The life of the node that has the socket; 0 on a server alone.
    pub(crate) fn home(&self) -> u64 {
        match self {
            Self::Here { ear, .. } => ear.as_ref().map_or(0, Ear::node),
            Self::There(ear) => Ear::node(ear),
        }
    }

    /// Whether the connection is known to have ended: on its own node.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self, Self::Here { outbox, .. } if outbox.is_closing())
    }

    /// Ends the connection. From another node it ends a moment later; if that node is gone, so is
    /// the connection.
    pub(crate) fn close(&self, code: DisconnectCode) {
        match self {
            Self::Here { outbox, .. } => outbox.close(code),
            Self::There(ear) => {
                let Err(refused) = ear.send(HangUp { code }).try_tell() else { return };
                let (ear, message) = (ear.clone(), refused.into_message());
                tokio::spawn(async move {
                    if ear.send(message).tell().await.is_err() {
                        tracing::warn!(ear = %ear.id(), "a connection elsewhere was not ended");
                    }
                });
            }
        }
    }
}

impl Wire for Line {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Here { ear: Some(ear), .. } | Self::There(ear) => ear.encode(out),
            // A server without other nodes, which encodes nothing; it would not decode.
            Self::Here { ear: None, .. } => {}
        }
    }

    fn decode_within(bytes: &[u8], depth: Depth) -> Result<Self, WireError> {
        ActorRef::decode_within(bytes, depth).map(Self::There)
    }
}

impl WireField for Line {}

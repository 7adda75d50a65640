//! Hands the durable channels of an owner over to the disk when it makes its log smaller: a portion
//! at a time, so that no publication waits for more than one portion to be written.
//!
//! A portion is handed over between two batches, and says of its channels exactly what all before it
//! in the log comes to. What is published into them afterwards stands behind it. A channel that is
//! made after the disk has asked is in the new part of the log from its beginning, and needs no
//! handing over.

use std::collections::HashSet;
use std::sync::Arc;

use althing::Context;

use super::keeping::owner_of;
use super::{Channels, channels_messages::Granted};
use crate::durable::{Portion, Turn};

/// About how much is handed over at once: a publication that comes then waits for as long as this
/// takes to be written.
const PORTION_BYTES: usize = 512 << 10;
/// What a channel takes beside its name and its payloads, about.
const CHANNEL_BYTES: usize = 64;

/// What an owner has still to hand over.
#[derive(Debug, Default)]
pub(super) struct HandingOver {
    /// The last time that the disk asked.
    call: u64,
    /// Of that time.
    left: Vec<Arc<str>>,
    /// Whether something is left, if it is only to say that nothing is.
    is_under_way: bool,
    /// Whether this owner waits for its turn among all.
    is_waiting: bool,
    /// It is this owner's turn.
    turn: Option<Turn>,
}

impl Channels {
    /// Looks whether the disk asks for all that is kept, and hands the next portion over if it may.
    pub(super) fn answer_disk(&mut self, ctx: &mut Context<Self>) {
        let Some(disk) = &self.keeper.disk else { return };
        let (call, handing) = (disk.calls(), &mut self.keeper.handing_over);
        if handing.call != call {
            let durable = self.channels.iter().filter(|(_, channel)| channel.is_durable);
            handing.left = durable.map(|(name, _)| name.clone()).collect();
            (handing.call, handing.is_under_way) = (call, true);
        }
        if handing.is_under_way && handing.turn.is_none() && !handing.is_waiting {
            handing.is_waiting = true;
            ctx.pipe(disk.turn(), |turn| Granted { turn });
        }
        self.hand_over(ctx);
    }

    /// It is this owner's turn to hand a portion over.
    pub(super) fn take_turn(&mut self, turn: Turn, ctx: &mut Context<Self>) {
        let handing = &mut self.keeper.handing_over;
        (handing.is_waiting, handing.turn) = (false, Some(turn));
        self.answer_disk(ctx);
    }

    /// Hands a portion over, unless a batch or a removal is under way: what is on its way to the disk
    /// is not in the channels yet and would be missing, or is still there and would come back.
    fn hand_over(&mut self, ctx: &mut Context<Self>) {
        let keeper = &mut self.keeper;
        if keeper.removals > 0 {
            return;
        }
        let (Some(disk), None) = (&keeper.disk, &keeper.in_flight) else { return };
        let handing = &mut keeper.handing_over;
        let Some(turn) = handing.turn.take() else { return };
        let (mut channels, mut bytes) = (Vec::new(), 0);
        let mut counted = HashSet::new();
        while bytes < PORTION_BYTES {
            let Some(name) = handing.left.pop() else { break };
            let saved = self.channels.get(&name).and_then(|channel| channel.saved());
            let Some(saved) = saved else { continue };
            bytes += CHANNEL_BYTES + name.len();
            for payload in &saved.history {
                // One that several channels share is written once.
                if counted.insert(Arc::as_ptr(payload).addr()) {
                    bytes += payload.encoded_len();
                }
            }
            bytes += saved.keys.iter().map(|(key, ..)| key.len()).sum::<usize>();
            channels.push((name, saved));
        }
        let is_last = handing.left.is_empty();
        handing.is_under_way = !is_last;
        let (owner, call) = (owner_of(ctx), handing.call);
        disk.hand_over(Portion { owner, call, channels, is_last }, turn);
        if !is_last {
            handing.is_waiting = true;
            ctx.pipe(disk.turn(), |turn| Granted { turn });
        }
    }
}

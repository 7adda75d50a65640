//! Brings players the news that their acts are durable: the log's thread hands over a batch, an
//! actor of the runtime delivers it.
//!
//! A player that is idle hears it in place, without a task of its own; one that waits for something
//! hears it later.

use althing::{ActorRef, Context, actor};

use super::at_once::at_once;
use super::player::{PlayerActor, PlayerActorCalls};
use super::settled::Done;

/// Deliveries in one message: a batch of the log is split, so that its work spreads over the cores.
pub const ROUND_LEN: usize = 32;

/// One of a few; which one brings the news does not matter.
#[derive(Debug)]
pub struct CourierActor;

#[actor(name = "hunt.courier")]
impl CourierActor {
    /// Tells each player what it waits for. One that cannot be told will be asked again by its
    /// client's connection.
    pub async fn deliver(
        &mut self,
        round: Vec<(ActorRef<PlayerActor>, Done)>,
        ctx: &mut Context<Self>,
    ) {
        for (player, done) in round {
            let told = async move { drop(player.settled(done).await) };
            if let Some(waiting) = at_once(told).await {
                ctx.detach(waiting);
            }
        }
    }
}

//! A session whose rooms and user live on other nodes: when one of them lives elsewhere, or anew on
//! another node after its own was lost, the session introduces itself there and goes on where its
//! client is. The client notices nothing, unless more was missed than can be made up for.

use std::sync::Arc;

use althing::{ActorRef, AskError, Context, Handler, Subscription};
use folkmoot_protocol::frame::Publication as Frame;
use folkmoot_protocol::{Channel, DisconnectCode};

use super::actor::Session;
use crate::connection::{Ear, Line};
use crate::room::{OnlineClient, RoomError};
use crate::server::Server;
use crate::storage::{DeviceId, Offset, UserId};
use crate::stream::{Attached, Missed, Place, Publication, Since};
use crate::user::{Attachment, UserCalls};

/// What the other nodes know of a connection.
#[derive(Debug)]
pub(crate) struct Abroad {
    pub(crate) ear: ActorRef<Ear>,
    pub(crate) device: DeviceId,
    pub(crate) name: Arc<str>,
    /// Ends when the session does.
    pub(super) _moves: Option<Subscription>,
}

impl Abroad {
    pub(crate) fn new(ear: ActorRef<Ear>, device: DeviceId, name: &str) -> Self {
        Self { ear, device, name: name.into(), _moves: None }
    }
}

/// How often an owner is asked that does not answer: one that is lost has a successor within the
/// lease, which each question waits for.
const TRIES_MAX: usize = 3;

/// How the new owner of a channel has taken a connection.
#[derive(Debug)]
pub(super) struct Reattached {
    channel: Channel,
    since: Offset,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Attached(Attached),
    /// The user is no member any more, or there is no such room.
    Refused,
    Failed,
}

impl Session {
    /// Asks the owner of a channel for what was missed, if it is another one than before. What is
    /// being asked for the first time is looked at once it is there.
    pub(super) fn catch_up(&mut self, channel: Channel, ctx: &mut Context<Self>) {
        let Some(abroad) = &self.abroad else { return };
        let home = self.server.home_of(channel);
        let Some(joined) = self.channels.get_mut(&channel) else { return };
        // Nobody's at the moment: its next owner changes the view again.
        if home.is_none() || joined.home == home {
            return;
        }
        let Some(since) = joined.cursor.rejoin() else { return };
        joined.home = home;
        let newcomer = Newcomer {
            server: self.server.clone(),
            client: self.client.clone(),
            user: self.user,
            name: abroad.name.clone(),
            device: abroad.device,
            line: Line::Here { outbox: self.outbox.clone(), ear: Some(abroad.ear.clone()) },
        };
        let asked = async move {
            let outcome = newcomer.attach(channel, since).await;
            Reattached { channel, since, outcome }
        };
        ctx.pipe(asked, |reattached| reattached);
    }

    fn make_up(&mut self, channel: Channel, since: Offset, missed: &[Frame]) {
        for frame in missed.iter().filter(|frame| frame.offset > since.as_u64()) {
            let place = Place::At(Offset::from_u64(frame.offset));
            let mut publication = Publication::new(channel, place, frame.data.clone());
            publication.by.clone_from(&frame.info);
            self.outbox.push(publication.encoded(self.format).clone());
        }
    }
}

impl Handler<Reattached> for Session {
    type Reply = ();

    async fn handle(&mut self, reattached: Reattached, ctx: &mut Context<Self>) {
        let Reattached { channel, since, outcome } = reattached;
        if !self.channels.contains_key(&channel) {
            return;
        }
        match outcome {
            Outcome::Attached(Attached { offset, missed: Missed::All(missed) }) => {
                self.make_up(channel, since, &missed);
                self.go_live(channel, offset, ctx).await;
            }
            Outcome::Refused => self.remove(channel, "not a member any more"),
            Outcome::Attached(_) | Outcome::Failed => {
                self.outbox.close(DisconnectCode::InsufficientState);
            }
        }
    }
}

/// A connection on its way to another owner.
struct Newcomer {
    server: Arc<Server>,
    client: Arc<str>,
    user: UserId,
    name: Arc<str>,
    device: DeviceId,
    line: Line,
}

impl Newcomer {
    async fn attach(self, channel: Channel, since: Offset) -> Outcome {
        for _ in 0..TRIES_MAX {
            if self.server.heard(channel).await.is_err() {
                continue;
            }
            let since = Since { offset: since, epoch: self.server.epoch().to_owned() };
            match self.ask(channel, since).await {
                Ok(outcome) => return outcome,
                Err(error) => tracing::debug!(%channel, %error, "a new owner did not answer"),
            }
        }
        Outcome::Failed
    }

    async fn ask(&self, channel: Channel, since: Since) -> Result<Outcome, AskError> {
        let client = self.client.clone();
        Ok(match channel {
            Channel::Room(room) => {
                let (user, name) = (self.user, self.name.clone());
                let client = OnlineClient { client, user, name, node: self.line.home() };
                match self.server.asked(room).attach(client, Some(since)).await? {
                    Ok(attached) => Outcome::Attached(attached),
                    Err(RoomError::Refused(_) | RoomError::NoSuchRoom) => Outcome::Refused,
                    Err(_) => Outcome::Failed,
                }
            }
            Channel::User(user) => {
                let (device, line) = (self.device, self.line.clone());
                let connection = Attachment { client, device, line };
                match self.server.user(user).attach(connection, Some(since)).await? {
                    Ok(attached) => Outcome::Attached(attached),
                    Err(_) => Outcome::Failed,
                }
            }
        })
    }
}

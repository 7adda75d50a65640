//! A session whose rooms and user live on other nodes: when one of them lives elsewhere, or anew on
//! another node after its own was lost, the session introduces itself there and goes on where its
//! client is. The client notices nothing, unless more was missed than can be made up for.

use std::collections::HashMap;
use std::sync::Arc;

use althing::{ActorRef, AskError, Context, Handler, Subscription};
use folkmoot_protocol::frame::Publication as Frame;
use folkmoot_protocol::{Channel, DisconnectCode};

use super::actor::{Session, detach};
use super::channels::{Question, life};
use crate::account::token::TokenHash;
use crate::connection::{Ear, Line};
use crate::room::{OnlineClient, RoomError, Screen};
use crate::server::Server;
use crate::storage::{DeviceId, Offset, UserId};
use crate::stream::{Attached, Missed, Place, Publication, Since};
use crate::user::{Attachment, UserCalls};

/// What the other nodes know of a connection.
#[derive(Debug)]
pub(crate) struct Abroad {
    pub(crate) ear: ActorRef<Ear>,
    pub(crate) device: DeviceId,
    pub(crate) token: TokenHash,
    pub(crate) name: Arc<str>,
    /// Whom the connection has on screen, by room.
    screens: HashMap<Channel, Vec<UserId>>,
    /// Ends when the session does.
    _moves: Option<Subscription>,
}

impl Abroad {
    pub(crate) fn new(ear: ActorRef<Ear>, device: DeviceId, token: TokenHash, name: &str) -> Self {
        Self { ear, device, token, name: name.into(), screens: HashMap::new(), _moves: None }
    }

    /// The same, with the subscription that tells the session of moves.
    pub(super) fn told_of(self, moves: Subscription) -> Self {
        Self { _moves: Some(moves), ..self }
    }
}

/// How often an owner is asked that does not answer: one that is lost has a successor within the
/// lease, which each question waits for.
const TRIES_MAX: usize = 3;

/// How the new owner of a channel has taken a connection.
#[derive(Debug)]
pub(super) struct Reattached {
    channel: Channel,
    question: Question,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Attached(Attached),
    /// The user is no member any more, or there is no such room.
    Refused,
    /// Whoever signed the device out may have told the user's lost actor only.
    SignedOut,
    Failed,
}

impl Session {
    /// Asks the owner of a channel for what was missed, if it is another one than before. What is
    /// being asked for the first time is looked at once it is there.
    pub(super) fn catch_up(&mut self, channel: Channel, ctx: &mut Context<Self>) {
        let Some(abroad) = &self.abroad else { return };
        // Nobody's at the moment: its next owner changes the view again.
        let Some(home) = life(self.server.home_of(channel)) else { return };
        let Some(question) = self.channels.rejoin(channel, home) else { return };
        let newcomer = Newcomer {
            server: self.server.clone(),
            client: self.client.clone(),
            user: self.user,
            name: abroad.name.clone(),
            device: abroad.device,
            token: abroad.token,
            line: Line::Here { outbox: self.outbox.clone(), ear: Some(abroad.ear.clone()) },
        };
        let asked = async move {
            let outcome = newcomer.attach(channel, question.since).await;
            Reattached { channel, question, outcome }
        };
        ctx.pipe(asked, |reattached| reattached);
    }

    /// Remembers whom the connection has on screen, if a room may forget it by moving.
    pub(super) fn note_screen(&mut self, channel: Channel, users: Vec<UserId>) {
        let Some(abroad) = &mut self.abroad else { return };
        if users.is_empty() {
            abroad.screens.remove(&channel);
        } else {
            abroad.screens.insert(channel, users);
        }
    }

    /// Tells a room's new owner whom the connection has on screen.
    fn show_again(&mut self, channel: Channel, ctx: &mut Context<Self>) {
        let (Some(abroad), Channel::Room(room)) = (&self.abroad, channel) else { return };
        let Some(users) = abroad.screens.get(&channel) else { return };
        let (users, told) = (users.clone(), abroad.ear.recipient());
        self.screens += 1;
        let screen = Screen { client: self.client.clone(), number: self.screens, told, users };
        let (server, user) = (self.server.clone(), self.user);
        ctx.detach(async move {
            if let Err(error) = server.asked(room).watch(user, screen).await {
                tracing::debug!(%room, %error, "a connection is not told of those on its screen");
            }
        });
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
        let Reattached { channel, question, outcome } = reattached;
        if !self.channels.is_asked(channel, question) {
            // It was left, perhaps before its owner was asked, who would keep the connection.
            if !self.channels.has(channel) {
                self.detach(channel);
            }
            return;
        }
        match outcome {
            Outcome::Attached(Attached { offset, missed: Missed::All(missed) }) => {
                self.make_up(channel, question.since, &missed);
                self.go_live(channel, offset, ctx).await;
                self.show_again(channel, ctx);
            }
            Outcome::SignedOut => self.outbox.close(DisconnectCode::InvalidToken),
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
    token: TokenHash,
    line: Line,
}

impl Newcomer {
    /// Introduces the connection. One that has ended meanwhile was taken back, perhaps before this
    /// owner was asked, who would keep it for as long as this node lives: it is taken back again.
    async fn attach(self, channel: Channel, since: Offset) -> Outcome {
        let outcome = self.introduce(channel, since).await;
        if self.line.has_ended() {
            detach(&self.server, channel, self.user, &self.client);
        }
        outcome
    }

    async fn introduce(&self, channel: Channel, since: Offset) -> Outcome {
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
                let node = self.line.home();
                let client = Arc::new(OnlineClient { client, user, name, node });
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
                    // Only now: from here on, who signs it out finds the connection.
                    Ok(attached) => match self.server.is_signed_in(self.token).await {
                        Ok(true) => Outcome::Attached(attached),
                        Ok(false) => Outcome::SignedOut,
                        Err(_) => Outcome::Failed,
                    },
                    Err(_) => Outcome::Failed,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;

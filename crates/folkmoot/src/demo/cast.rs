//! The bots and their rooms. Made at the first start, found again at every other.

use std::collections::HashMap;
use std::sync::Arc;

use folkmoot_protocol::chat::Status;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{ErrorCode, RoomId, UserId};

use super::history;
use super::script::{BOTS, Scene};
use crate::account::token::{Token, random_id};
use crate::chat::Identity;
use crate::chat::{control_failure, members, read_failure, room_answer};
use crate::room::OnlineClient;
use crate::server::Server;
use crate::storage::contract::{Directory, UserLog};
use crate::storage::{DeviceId, NewAccount, NewDevice, UnixMillis};

/// No password has this hash, so nobody can sign in as a bot; and a bot is told from a person by
/// it.
const NO_PASSWORD: &str = "!";
/// Conversations with newcomers in which the host is there after a restart; each stays in memory.
const GREETED_MAX: usize = 200;
/// Shown beside a bot's name and on its card, so that nobody takes it for a person.
const STATUS: (&str, &str) = ("🤖", "A bot of this demo");
/// Accounts of bots are a little older than their rooms.
const BOT_AGE_MS: u64 = 31 * 24 * 60 * 60 * 1_000;

/// Who owns the rooms and greets newcomers.
pub(super) const HOST: &str = BOTS[0].0;

pub(super) struct Cast {
    bots: HashMap<&'static str, Identity>,
}

impl Cast {
    /// The bots, with the accounts that are missing made.
    pub(super) async fn gather(server: &Arc<Server>) -> Result<Self, RpcError> {
        let mut bots = HashMap::new();
        for (name, display_name) in BOTS {
            bots.insert(*name, bot(server, name, display_name).await?);
        }
        Ok(Self { bots })
    }

    pub(super) fn identity(&self, name: &str) -> Result<&Identity, RpcError> {
        self.bots.get(name).ok_or_else(|| ErrorCode::Internal.into())
    }

    pub(super) fn bot(&self, name: &str) -> Result<UserId, RpcError> {
        self.identity(name).map(|bot| bot.user)
    }

    /// Whether somebody is one of the bots.
    pub(super) fn has(&self, user: UserId) -> bool {
        self.bots.values().any(|bot| bot.user == user)
    }

    pub(super) fn host(&self) -> UserId {
        self.bots[HOST].user
    }

    /// All bots are there in all rooms from now on, and the host where newcomers were greeted, which
    /// is returned.
    pub(super) async fn come_in(
        &self,
        server: &Server,
        rooms: &[RoomId],
    ) -> Result<Vec<RoomId>, RpcError> {
        let host = server.streams().load_user(self.host(), 0).await;
        let host = host.map_err(|error| read_failure(&error))?.ok_or(ErrorCode::Internal)?;
        let known = host.rooms.iter().map(|room| room.summary.id);
        let greeted = known.filter(|room| !rooms.contains(room)).take(GREETED_MAX);
        let greeted: Vec<_> = greeted.collect();
        let hosted = greeted.iter().map(|room| (HOST, *room));
        let names = self.bots.keys();
        let everywhere = names.flat_map(|name| rooms.iter().map(move |room| (*name, *room)));
        for (name, room) in everywhere.chain(hosted) {
            // A bot that was thrown out for good stays away, and the others talk.
            if let Err(error) = come_in(self.identity(name)?, name, room).await {
                tracing::debug!(%error, name, "a bot could not come in");
            }
        }
        Ok(greeted)
    }

    /// The room of each scene; one that is missing is made with its past.
    pub(super) async fn rooms(
        &self,
        server: &Server,
        scenes: &[Scene],
    ) -> Result<Vec<RoomId>, RpcError> {
        // From the store and not from actors: none may know a room before its past is written.
        let host = server.streams().load_user(self.host(), 0).await;
        let host = host.map_err(|error| read_failure(&error))?.ok_or(ErrorCode::Internal)?;
        let mut ids = Vec::new();
        for scene in scenes {
            let known = host.rooms.iter().find(|room| room.summary.name == scene.room);
            let Some(room) = known.map(|room| room.summary.id) else {
                ids.push(history::make_room(server, self, scene).await?);
                continue;
            };
            // A later version may have brought further bots.
            for bot in self.bots.values() {
                members::admit(bot, room).await?;
            }
            ids.push(room);
        }
        Ok(ids)
    }
}

/// Whoever talks in a room is there, as its members see it. A bot that is there already stays.
pub(super) async fn come_in(bot: &Identity, name: &str, room: RoomId) -> Result<(), RpcError> {
    let display_name = BOTS.iter().find(|(known, _)| *known == name).map_or(name, |bot| bot.1);
    let client = OnlineClient {
        // No connection of a person has such an id.
        client: format!("demo-{name}").into(),
        user: bot.user,
        name: display_name.into(),
        node: 0,
    };
    room_answer(bot.server.asked(room).attach(Arc::new(client), None).await).map(drop)
}

async fn bot(server: &Arc<Server>, name: &str, display_name: &str) -> Result<Identity, RpcError> {
    let found = server.directory().credentials(name.to_owned()).await;
    let (user, device) = match found.map_err(|error| read_failure(&error))? {
        Some((account, hash)) if hash == NO_PASSWORD => {
            if account.status.is_none() {
                say_what_it_is(server, account.id).await?;
            }
            (account.id, DeviceId::from_u64(0))
        }
        Some(_) => {
            let text = format!("{name} is a person here; a demo needs a data directory of its own");
            return Err(RpcError::new(ErrorCode::PermissionDenied, text));
        }
        None => make_bot(server, name, display_name).await?,
    };
    Ok(Identity::new(server.clone(), user, device))
}

async fn make_bot(
    server: &Server,
    name: &str,
    display_name: &str,
) -> Result<(UserId, DeviceId), RpcError> {
    let (user, device) = (UserId::from_u64(random_id()), DeviceId::from_u64(random_id()));
    let at = UnixMillis::from_u64(server.now().as_u64().saturating_sub(BOT_AGE_MS));
    let account = NewAccount {
        id: user,
        name: name.to_owned(),
        display_name: display_name.to_owned(),
        password_hash: NO_PASSWORD.to_owned(),
        at,
    };
    // Its token is forgotten here: a bot acts within the server.
    let token_hash = Token::random().hash();
    let signed_in = NewDevice { id: device, user, label: "demo".to_owned(), token_hash, at };
    let made = server.directory().create_account(account, signed_in).await;
    made.map_err(|error| control_failure(&error))?;
    say_what_it_is(server, user).await?;
    Ok((user, device))
}

/// Nobody is connected yet who would have to be told.
async fn say_what_it_is(server: &Server, user: UserId) -> Result<(), RpcError> {
    let (emoji, text) = (STATUS.0.to_owned(), STATUS.1.to_owned());
    let status = Some(Status { emoji, text, until: None });
    let set = server.directory().set_status(user, status).await;
    set.map(drop).map_err(|error| control_failure(&error))
}

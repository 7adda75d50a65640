//! `--demo`: a few rooms in which bots talk, so that a first look shows life. The bots use what
//! every client uses; new accounts are let into their rooms.

mod script;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::rpc::{MessageReact, MessageSend, RoomCreate, RpcError, TypingSet};
use folkmoot_protocol::{ErrorCode, RoomId};

use crate::account::password;
use crate::account::token::{Token, random_id};
use crate::server::Server;
use crate::session::Identity;
use crate::session::rpc::{control_failure, members, messages, read_failure, rooms};
use crate::storage::{DeviceId, NewAccount, NewDevice, UserId};
use script::{BOTS, SCENES, Scene};

/// Between two lines anywhere: lively, and slow enough to read along.
const PAUSE: Duration = Duration::from_secs(4);
/// How long a bot types.
const TYPING: Duration = Duration::from_millis(1_500);

/// The bots, and their rooms in the order of the script.
struct Cast {
    bots: HashMap<&'static str, Identity>,
    rooms: Vec<RoomId>,
}

/// Prepares rooms and bots; they talk until the server stops.
pub(crate) async fn start(server: &Arc<Server>) {
    let cast = match prepare(server).await {
        Ok(cast) => cast,
        Err(error) => {
            tracing::error!(%error, "the demo could not be prepared");
            return;
        }
    };
    server.open_to_all(cast.rooms.clone());
    let (server, mut stopping) = (server.clone(), server.stopping());
    tokio::spawn(async move {
        tokio::select! {
            () = talk(&server, &cast) => {}
            _ = stopping.changed() => {}
        }
    });
}

/// Lets a new account into the demo's rooms.
pub(crate) async fn welcome(newcomer: &Identity) -> Result<(), RpcError> {
    for room in newcomer.server.open_rooms() {
        members::admit(newcomer, room).await?;
    }
    Ok(())
}

async fn prepare(server: &Arc<Server>) -> Result<Cast, RpcError> {
    let mut bots = HashMap::new();
    for (name, display_name) in BOTS {
        bots.insert(*name, bot(server, name, display_name).await?);
    }
    let host = bots.get(BOTS[0].0).ok_or(ErrorCode::Internal)?;
    let known = rooms::list(host).await?.rooms;
    let mut ids = Vec::new();
    for scene in SCENES {
        let found = known.iter().find(|room| room.name == scene.room).map(|room| room.id);
        let id = match found {
            Some(id) => id,
            None => create(host, scene).await?,
        };
        for bot in bots.values() {
            members::admit(bot, id).await?;
        }
        ids.push(id);
    }
    Ok(Cast { bots, rooms: ids })
}

async fn create(host: &Identity, scene: &Scene) -> Result<RoomId, RpcError> {
    let topic = Some(scene.topic.to_owned());
    Ok(rooms::create(host, RoomCreate { name: scene.room.to_owned(), topic }).await?.id)
}

/// The account of a bot, made at the first start. Nobody knows its password.
async fn bot(server: &Arc<Server>, name: &str, display_name: &str) -> Result<Identity, RpcError> {
    let found = server.store.account_by_name(name.to_owned()).await;
    let (user, device) = match found.map_err(|error| read_failure(&error))? {
        Some(account) => (account.id, DeviceId::from_u64(0)),
        None => {
            let secret = Token::random();
            let (user, device) = (UserId::from_u64(random_id()), DeviceId::from_u64(random_id()));
            let token_hash = secret.hash();
            let password_hash =
                server.node().blocking(move || password::hash(secret.reveal())).await;
            let at = server.now();
            let account = NewAccount {
                id: user,
                name: name.to_owned(),
                display_name: display_name.to_owned(),
                password_hash,
                at,
            };
            let device = NewDevice { id: device, user, label: "demo".to_owned(), token_hash, at };
            let id = device.id;
            let made = server.store.create_account(account, device).await;
            made.map_err(|error| control_failure(&error))?;
            (user, id)
        }
    };
    Ok(Identity { server: server.clone(), user, device })
}

/// Goes round the rooms, one line at a time, and through each conversation again and again.
async fn talk(server: &Server, cast: &Cast) {
    for turn in 0usize.. {
        let place = turn % SCENES.len();
        let (scene, room) = (&SCENES[place], cast.rooms[place]);
        let (name, text) = scene.lines[(turn / SCENES.len()) % scene.lines.len()];
        let Some(bot) = cast.bots.get(name) else { continue };
        // A bot that was thrown out of its room, or a full disk, ends nothing.
        if let Err(error) = line(server, bot, room, text).await {
            tracing::debug!(%error, name, "a bot could not speak");
        }
        server.node().sleep(PAUSE).await;
    }
}

async fn line(server: &Server, bot: &Identity, room: RoomId, text: &str) -> Result<(), RpcError> {
    if let Some(emoji) = text.strip_prefix('+') {
        let seq = rooms::get(bot, room).await?.last_seq;
        let react = MessageReact { room, seq, emoji: emoji.to_owned(), on: true };
        return messages::react(bot, react).await;
    }
    messages::typing(bot, TypingSet { room, on: true }).await?;
    server.node().sleep(TYPING).await;
    messages::typing(bot, TypingSet { room, on: false }).await?;
    let key = format!("{:x}", random_id());
    let (body, attachments) = (text.to_owned(), Vec::new());
    messages::send(bot, MessageSend { room, key, body, reply_to: None, attachments }).await?;
    Ok(())
}

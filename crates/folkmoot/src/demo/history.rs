//! The month that a demo's room has behind it. The room's own state machine decides and numbers
//! every event, at the time that the script gives it: time is an argument of it everywhere. The
//! records go down the same road as all others, before anybody can reach the room.
//!
//! Only for a room that was made by the demo a moment ago, so no history of people is ever touched.

use folkmoot_protocol::chat::RoomAccess;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{ErrorCode, UserId};
use futures_util::future::try_join_all;

use super::cast::Cast;
use super::script::{Conversation, Line, Scene, When};
use crate::account::token::random_id;
use crate::chat::{append_failure, control_failure, read_failure};
use crate::room::command::Decision;
use crate::room::people::Facts;
use crate::room::state::RoomState;
use crate::room::{Command, Request, load, mentions};
use crate::server::Server;
use crate::storage::contract::{Directory, StreamLog};
use crate::storage::{
    Append, NewRoom, ReadError, Record, Role, RoomId, Seq, UnixMillis, WriteEpoch,
};

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// The rooms are as old as the oldest conversation, rounded up.
const AGE_DAYS: u64 = 30;

/// Writes one room's past.
struct Writer<'a, S> {
    store: &'a S,
    epoch: WriteEpoch,
    room: RoomState,
    cast: &'a Cast,
    pending: Vec<Append>,
}

/// Makes the room of a scene with all that was said in it; answers once it is on disk.
pub(super) async fn make_room(
    server: &Server,
    cast: &Cast,
    scene: &Scene,
) -> Result<RoomId, RpcError> {
    let (id, store, now) = (RoomId::from_u64(random_id()), server.streams(), server.now());
    let made_at = UnixMillis::from_u64(now.as_u64().saturating_sub(AGE_DAYS * DAY_MS));
    let (name, topic) = (scene.room.to_owned(), scene.topic.to_owned());
    let new = NewRoom { id, name, topic, owner: cast.host(), at: made_at };
    store.create_room(new).await.map_err(|error| control_failure(&error))?;
    let open = store.set_room_access(id, RoomAccess::Open, cast.host(), made_at).await;
    open.map_err(|error| control_failure(&error))?;
    let loaded = load::load(store, id, now).await.map_err(|error| read_failure(&error))?;
    let loaded = loaded.ok_or(ErrorCode::Internal)?;
    let (room, epoch) = (loaded.state, loaded.epoch);
    let mut writer = Writer { store, epoch, room, cast, pending: Vec::new() };
    let bots: Vec<UserId> =
        super::script::BOTS.iter().map(|(name, _)| cast.bot(name)).collect::<Result<_, _>>()?;
    writer.introduce(bots).await.map_err(|error| read_failure(&error))?;
    for (name, display_name) in super::script::BOTS {
        let (name, display_name) = ((*name).to_owned(), (*display_name).to_owned());
        let admit = Command::Admit { name: name.clone(), display_name, role: Role::Member };
        writer.apply(cast.bot(&name)?, admit, made_at)?;
    }
    for conversation in &scene.conversations {
        if let Some(at) = begin(conversation.when, now) {
            writer.hold(conversation, at, now)?;
        }
    }
    let durable = try_join_all(writer.pending).await;
    durable.map_err(|error| append_failure(&error))?;
    Ok(id)
}

/// When a conversation of the past began.
fn begin(when: When, now: UnixMillis) -> Option<UnixMillis> {
    let now = now.as_u64();
    let at = match when {
        When::Day { days_ago, minute } => {
            let midnight = now - now % DAY_MS;
            midnight.checked_sub(days_ago * DAY_MS)? + minute * MINUTE_MS
        }
        When::MinutesAgo(minutes) => now.checked_sub(minutes * MINUTE_MS)?,
        When::Live => return None,
    };
    Some(UnixMillis::from_u64(at))
}

/// How long people take for a line: to read the last one, to think, to type.
fn pause_ms(line: &Line, place: usize) -> u64 {
    let typing = line.text.chars().count() as u64 * 180;
    // No two pauses alike, and the same ones at every start.
    let thinking = (place as u64 * 37 + line.text.len() as u64 * 11) % 70;
    typing + (15 + thinking) * 1_000
}

impl<S: StreamLog> Writer<'_, S> {
    /// Tells the room all it could ask: nobody has said anything here yet.
    async fn introduce(&mut self, bots: Vec<UserId>) -> Result<(), ReadError> {
        let standings = self.store.standings(self.room.id, bots).await?;
        for standing in standings {
            let (as_of, keys) = (self.room.people.as_of(), Some((standing.user, Vec::new())));
            self.room.people.take_in(Facts { as_of, people: vec![standing], keys });
        }
        Ok(())
    }

    fn hold(
        &mut self,
        conversation: &Conversation,
        begins: UnixMillis,
        now: UnixMillis,
    ) -> Result<(), RpcError> {
        let mut at = begins;
        let mut numbers: Vec<Seq> = Vec::new();
        for (place, line) in conversation.lines.iter().enumerate() {
            // Nothing of the past may lie in the future.
            at = UnixMillis::from_u64((at.as_u64() + pause_ms(line, place)).min(now.as_u64()));
            let reply_to = line.reply_to.and_then(|place| numbers.get(place).copied());
            let seq = self.room.last_seq.next();
            let (key, body) = (format!("demo-{seq}"), line.text.clone());
            let send = Command::Send { key, body, reply_to, attachments: Vec::new() };
            self.apply(self.cast.bot(line.who)?, send, at)?;
            numbers.push(seq);
            for (who, emoji) in &line.reactions {
                let react = Command::React { seq, emoji: (*emoji).to_owned(), on: true };
                self.apply(self.cast.bot(who)?, react, at)?;
            }
        }
        Ok(())
    }

    /// Whom the names in a text belong to, if they are the demo's.
    fn named(&self, command: &Command) -> Option<Vec<(String, UserId)>> {
        let names = command.body().map(mentions::names).unwrap_or_default().into_iter();
        let known = names.filter_map(|name| {
            let user = self.cast.bot(&name).ok()?;
            Some((name, user))
        });
        Some(known.collect())
    }

    /// Has the room judge a command at a time of its past, and appends what it decides.
    fn apply(&mut self, by: UserId, command: Command, at: UnixMillis) -> Result<(), RpcError> {
        let request = Request { named: self.named(&command), ..Request::new(by, None, command) };
        let decision = self.room.decide(&request, at).map_err(|refusal| {
            RpcError::new(ErrorCode::Internal, format!("the script breaks a rule: {refusal}"))
        })?;
        if let Decision::Append(event) = decision {
            let record = Record::Room(self.room.commit(event, at));
            self.pending.push(self.store.append(self.epoch, &record));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_from_midnight_and_nothing_of_the_past_is_live() {
        let now = UnixMillis::from_u64(40 * DAY_MS + 5);
        let begins = |when| begin(when, now).map(UnixMillis::as_u64);
        let day = When::Day { days_ago: 2, minute: 90 };
        assert_eq!(begins(day), Some(38 * DAY_MS + 90 * MINUTE_MS));
        assert_eq!(begins(When::MinutesAgo(1)), Some(40 * DAY_MS + 5 - MINUTE_MS));
        assert_eq!(begins(When::Live), None);
    }
}

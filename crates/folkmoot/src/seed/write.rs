//! Writes a plan into a data directory.

use std::path::Path;

use super::names::{display_name, name, saying};
use super::plan::{RoomPlan, SeedPlan};
use super::progress::Bar;
use crate::account::password;
use crate::account::token::random_id;
use crate::room::idempotency::ContentHash;
use crate::storage::{
    AppendError, ControlError, Message, NewAccount, NewMember, NewRoom, Offset, OpenError,
    ReadError, Record, RoomEvent, RoomId, RoomRecord, Seq, Store, StoreOptions, UnixMillis, UserId,
};

/// Rows in one transaction: long enough that its sync does not count, short enough for the bar.
const ROWS_AT_ONCE: usize = 20_000;
/// Messages appended before they are awaited.
const MESSAGES_AT_ONCE: u64 = 4_096;
/// The past that messages are spread over.
const PAST_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// Why a directory was not filled; what is in it by then is whole.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The data directory cannot be used, or a server uses it.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// A name is taken: the directory was seeded before.
    #[error("{0}; was this directory seeded before?")]
    Control(#[from] ControlError),
    /// The log refused.
    #[error("{0}")]
    Append(#[from] AppendError),
    /// The database cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
}

/// What was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seeded {
    /// Accounts.
    pub users: u64,
    /// Rooms.
    pub rooms: u64,
    /// Memberships in all rooms.
    pub memberships: u64,
    /// Messages in all rooms.
    pub messages: u64,
}

/// Fills a data directory, which is made if it is missing.
///
/// # Errors
/// [`SeedError`]; what was written by then stays.
pub async fn seed(directory: &Path, plan: &SeedPlan, now: UnixMillis) -> Result<Seeded, SeedError> {
    let options = StoreOptions::new(directory);
    let store = tokio::task::spawn_blocking(move || Store::open(&options))
        .await
        .expect("opening a store does not panic")?;
    let seeded = write(&store, plan, now).await;
    // Also after a failure: what was acknowledged goes into the database.
    store.close().await;
    seeded
}

async fn write(store: &Store, plan: &SeedPlan, now: UnixMillis) -> Result<Seeded, SeedError> {
    let began = UnixMillis::from_u64(now.as_u64().saturating_sub(PAST_MS));
    let users = write_users(store, plan, began).await?;
    let mut seeded = Seeded { users: plan.users, ..Seeded::default() };
    let of =
        |count: fn(&RoomPlan) -> u64| plan.rooms.iter().map(|room| count(room) * room.rooms).sum();
    let mut bar = Bar::new("memberships", of(|room| room.members));
    let mut made = Vec::new();
    for room in &plan.rooms {
        for number in 1..=room.rooms {
            let id = write_room(store, room, number, &users, began, &mut bar).await?;
            made.push((id, room));
            seeded.rooms += 1;
            seeded.memberships += room.members;
        }
    }
    bar.end();
    let mut bar = Bar::new("messages", of(|room| room.messages.unwrap_or_default()));
    for (id, room) in made {
        let writer = Writer { store, room: id, users: &users[..room.members as usize], began, now };
        seeded.messages += writer.say(room.messages.unwrap_or_default(), &mut bar).await?;
    }
    bar.end();
    Ok(seeded)
}

/// Makes the accounts; gives their ids, by number.
async fn write_users(
    store: &Store,
    plan: &SeedPlan,
    at: UnixMillis,
) -> Result<Vec<UserId>, SeedError> {
    // One hash for all: made for each, it would take an hour.
    let password_hash = password::hash(&plan.password);
    // Rising, so that the table of accounts grows at its end.
    let mut ids: Vec<u64> = (0..plan.users).map(|_| random_id()).collect();
    ids.sort_unstable();
    let ids: Vec<UserId> = ids.into_iter().map(UserId::from_u64).collect();
    let mut bar = Bar::new("users", plan.users);
    for chunk in (1..).zip(ids.iter().copied()).collect::<Vec<_>>().chunks(ROWS_AT_ONCE) {
        let accounts = chunk.iter().map(|(number, id)| NewAccount {
            id: *id,
            name: name(*number),
            display_name: display_name(*number),
            password_hash: password_hash.clone(),
            at,
        });
        store.create_accounts(accounts.collect()).await?;
        bar.add(chunk.len() as u64);
    }
    bar.end();
    Ok(ids)
}

/// Makes a room with its members; the first of them owns it.
async fn write_room(
    store: &Store,
    plan: &RoomPlan,
    number: u64,
    users: &[UserId],
    at: UnixMillis,
    bar: &mut Bar,
) -> Result<RoomId, SeedError> {
    let id = RoomId::from_u64(random_id());
    let name = plan.name.clone().unwrap_or_else(|| format!("Room of {}", plan.members));
    let name = if plan.rooms > 1 { format!("{name} #{number}") } else { name };
    let topic = String::new();
    store.create_room(NewRoom { id, name, topic, owner: users[0], at }).await?;
    bar.add(1);
    let members: Vec<_> = (1..).zip(users).take(plan.members as usize).skip(1).collect();
    for chunk in members.chunks(ROWS_AT_ONCE) {
        let new = chunk.iter().map(|(number, user)| NewMember {
            user: **user,
            name: super::names::name(*number),
            display_name: display_name(*number),
        });
        store.add_members(id, new.collect(), at).await?;
        bar.add(chunk.len() as u64);
    }
    Ok(id)
}

/// Writes what was said in one room.
struct Writer<'a> {
    store: &'a Store,
    room: RoomId,
    users: &'a [UserId],
    began: UnixMillis,
    now: UnixMillis,
}

impl Writer<'_> {
    async fn say(&self, messages: u64, bar: &mut Bar) -> Result<u64, SeedError> {
        let members = self.users.len() as u64;
        let step = self.now.as_u64().saturating_sub(self.began.as_u64()) / (messages + 1);
        let epoch = self.store.write_epoch();
        let mut seq = 0;
        while seq < messages {
            self.store.ready().await?;
            let until = messages.min(seq + MESSAGES_AT_ONCE);
            let mut appends = Vec::new();
            while seq < until {
                seq += 1;
                let at = UnixMillis::from_u64(self.began.as_u64() + seq * step);
                let offset = Offset::from_u64(members + seq);
                let event = RoomEvent::Message(self.message(seq, members));
                let record = Record::Room(RoomRecord { room: self.room, offset, at, event });
                appends.push(self.store.append(epoch, &record));
            }
            bar.add(appends.len() as u64);
            for append in appends {
                append.await?;
            }
        }
        Ok(messages)
    }

    fn message(&self, seq: u64, members: u64) -> Message {
        // By the number of members and not by id, so that the same plan says the same each time.
        let (body, author) = saying(members, seq, members);
        Message {
            seq: Seq::from_u64(seq),
            user: self.users[author as usize],
            name: display_name(author + 1),
            key: String::new(),
            content_hash: ContentHash::of(body, None, &[]).0,
            body: body.to_owned(),
            reply_to: None,
            mentions: Vec::new(),
            mention_all: false,
            attachments: Vec::new(),
        }
    }
}

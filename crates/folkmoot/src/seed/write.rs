//! Writes a plan into a store that no server uses.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::names::{display_name, name, saying};
use super::plan::{RoomPlan, SeedPlan};
use crate::account::password;
use crate::account::token::{Token, random_id};
use crate::config::Config;
use crate::progress::Bar;
use crate::room::idempotency::ContentHash;
use crate::storage::{
    AppendError, ControlError, DeviceId, Message, NewAccount, NewDevice, NewMember, NewRoom,
    Offset, OpenError, ReadError, Record, RoomEvent, RoomId, RoomRecord, Seq, Store, StoreOptions,
    UnixMillis, UserId,
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
    /// The tokens cannot be written.
    #[error("cannot write {0}: {1}")]
    Tokens(PathBuf, io::Error),
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

/// Fills the data directory of `config`, which is made if it is missing, or its database.
///
/// # Errors
/// [`SeedError`]; what was written by then stays.
pub async fn seed(config: &Config, plan: &SeedPlan, now: UnixMillis) -> Result<Seeded, SeedError> {
    let database = config.database.clone();
    let options = StoreOptions { database, ..StoreOptions::new(config.data()) };
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
    if let Some(file) = &plan.tokens {
        sign_in(store, &users, file, now).await?;
    }
    let mut seeded = Seeded { users: plan.users, ..Seeded::default() };
    let of =
        |count: fn(&RoomPlan) -> u64| plan.rooms.iter().map(|room| count(room) * room.rooms).sum();
    let mut bar = Bar::new("memberships", of(|room| room.members));
    let mut made = Vec::new();
    for room in &plan.rooms {
        for number in 1..=room.rooms {
            let members = Members::of(room, number, &users);
            let id = write_room(store, room, number, members, began, &mut bar).await?;
            made.push((id, room, members));
            seeded.rooms += 1;
            seeded.memberships += room.members;
        }
    }
    bar.end();
    let mut bar = Bar::new("messages", of(|room| room.messages.unwrap_or_default()));
    for (id, room, members) in made {
        let writer = Writer { store, room: id, members, began, now };
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

/// Signs a device of each user in, and writes the tokens down in the order of their numbers.
async fn sign_in(
    store: &Store,
    users: &[UserId],
    file: &Path,
    at: UnixMillis,
) -> Result<(), SeedError> {
    let failed = |error| SeedError::Tokens(file.to_owned(), error);
    // For nobody else: each is as good as a password.
    let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
    let mut tokens = BufWriter::new(open.map_err(failed)?);
    let mut bar = Bar::new("devices", users.len() as u64);
    for chunk in users.chunks(ROWS_AT_ONCE) {
        let mut devices = Vec::with_capacity(chunk.len());
        for user in chunk {
            let token = Token::random();
            writeln!(tokens, "{}", token.reveal()).map_err(failed)?;
            let (id, label) = (DeviceId::from_u64(random_id()), "seed".to_owned());
            devices.push(NewDevice { id, user: *user, label, token_hash: token.hash(), at });
        }
        store.create_devices(devices).await?;
        bar.add(chunk.len() as u64);
    }
    bar.end();
    tokens.flush().map_err(failed)
}

/// Who is in a room: people one after the other, in a ring.
#[derive(Clone, Copy)]
struct Members<'a> {
    users: &'a [UserId],
    first: u64,
    len: u64,
}

impl<'a> Members<'a> {
    /// Of several rooms alike each begins where the one before it ends, so that all people are in
    /// about as many.
    fn of(room: &RoomPlan, number: u64, users: &'a [UserId]) -> Self {
        let first = (number - 1) * room.members % users.len() as u64;
        Self { users, first, len: room.members }
    }

    /// The member at a place: the number of their name, and their id.
    fn at(self, place: u64) -> (u64, UserId) {
        let index = (self.first + place) % self.users.len() as u64;
        (index + 1, self.users[index as usize])
    }
}

/// Makes a room with its members; the first of them owns it.
async fn write_room(
    store: &Store,
    plan: &RoomPlan,
    number: u64,
    members: Members<'_>,
    at: UnixMillis,
    bar: &mut Bar,
) -> Result<RoomId, SeedError> {
    let id = RoomId::from_u64(random_id());
    let name = plan.name.clone().unwrap_or_else(|| format!("Room of {}", plan.members));
    let name = if plan.rooms > 1 { format!("{name} #{number}") } else { name };
    let topic = String::new();
    store.create_room(NewRoom { id, name, topic, owner: members.at(0).1, at }).await?;
    bar.add(1);
    let others: Vec<_> = (1..members.len).map(|place| members.at(place)).collect();
    for chunk in others.chunks(ROWS_AT_ONCE) {
        let new = chunk.iter().map(|(number, user)| NewMember {
            user: *user,
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
    members: Members<'a>,
    began: UnixMillis,
    now: UnixMillis,
}

impl Writer<'_> {
    async fn say(&self, messages: u64, bar: &mut Bar) -> Result<u64, SeedError> {
        let members = self.members.len;
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
        let (number, user) = self.members.at(author);
        Message {
            seq: Seq::from_u64(seq),
            user,
            name: display_name(number),
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

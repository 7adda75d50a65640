//! Random programs of several people, some of it allowed and most of it not, against a server with
//! its actors and its store, and against a room as one would explain it. Both have to agree on
//! every answer, and on what everybody sees in the end, from memory and from the disk.
//!
//! `ROOM_FUZZ_SEED` chooses other programs than each time, `ROOM_FUZZ_PROGRAMS` how many. A failure
//! is shrunk and printed with what differs.

mod model;
mod step;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folkmoot_protocol::chat::{MemberView, MessageView, Role, RoomView};
use folkmoot_protocol::rpc::{
    HistoryGet, MessageDelete, MessageEdit, MessagePin, MessageReact, MessageSend, RoomAdd,
    RoomArchive, RoomBan, RoomCreate, RoomKick, RoomLeave, RoomMembers, RoomMute, RoomSetRole,
    RoomUpdate, RpcError,
};
use proptest::collection::vec;
use proptest::test_runner::{
    Config as ProptestConfig, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner,
};

use super::{Identity, members, messages, pins, rooms};
use crate::attachment::Attachments;
use crate::config::{Config, Flags};
use crate::server::{Beginning, Server};
use crate::storage::{
    DeviceId, NewAccount, NewDevice, RoomId, Seq, Store, StoreOptions, UnixMillis, UserId,
};
use model::Model;
use step::{PEOPLE, Rank, Step, any_step, name};

/// Programs of a run that nobody waits for.
const PROGRAMS: u32 = 32;
const STEPS: usize = 60;
const FIRST_NAME: &str = "Hall";
/// Long after every test.
const MUTED_UNTIL: UnixMillis = UnixMillis::from_u64(32_503_680_000_000);
const NO_LIMITS: &str = "[limits]\nmessages_per_second = 0\nedits_per_minute = 0\n\
    reactions_per_minute = 0\nrooms_per_minute = 0\ninvites_per_minute = 0\n\
    questions_per_minute = 0\nchanges_per_minute = 0\n";

/// A server with people on it; each program gets a room of its own.
struct House {
    directory: PathBuf,
    server: Arc<Server>,
    people: Vec<Identity>,
}

impl House {
    async fn open(test: &str) -> Self {
        let name = format!("folkmoot-fuzz-{test}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let settings = directory.join("folkmoot.toml");
        std::fs::write(&settings, NO_LIMITS).unwrap();
        let data = directory.join("data");
        let store = Store::open(&StoreOptions::small(&data)).unwrap();
        let flags = Flags { data: Some(data), config: Some(settings), ..Flags::default() };
        let config = Config::load(flags).unwrap();
        let attachments = Attachments::open(&config.attachments).unwrap();
        let server = Server::new(config, store, None, attachments, Beginning::default());
        let mut people = Vec::new();
        for user in 0..PEOPLE {
            people.push(person(&server, user).await);
        }
        Self { directory, server, people }
    }

    async fn close(self) {
        self.server.close().await;
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn id(user: usize) -> UserId {
    UserId::from_u64(user as u64 + 1)
}

async fn person(server: &Arc<Server>, user: usize) -> Identity {
    let at = server.now();
    let (display_name, password_hash) = (name(user).to_uppercase(), String::new());
    let account = NewAccount { id: id(user), name: name(user), display_name, password_hash, at };
    let (device, label) = (DeviceId::from_u64(user as u64 + 1), "fuzz".to_owned());
    let token_hash = [user as u8; 32];
    let new = NewDevice { id: device, user: id(user), label, token_hash, at };
    server.embedded().create_account(account, new).await.unwrap();
    Identity::new(server.clone(), id(user), device)
}

/// A program being played.
struct Play<'a> {
    house: &'a House,
    room: RoomId,
    model: Model,
}

impl<'a> Play<'a> {
    async fn begin(house: &'a House, model: Model) -> Self {
        let create = RoomCreate { name: FIRST_NAME.to_owned(), topic: None };
        let room = rooms::create(&house.people[0], create).await.unwrap().id;
        Self { house, room, model }
    }

    /// Plays all of it; says what the server did that it must not do.
    async fn program(mut self, steps: &[Step]) -> Result<(), String> {
        for (at, step) in steps.iter().enumerate() {
            let expected = self.model.take(step);
            let found = self.take(step).await.map_err(|error| error.code);
            if found != expected {
                return Err(format!("step {at}, {step:?}: {found:?} instead of {expected:?}"));
            }
            self.compare_numbers()
                .await
                .map_err(|why| format!("after step {at}, {step:?}: {why}"))?;
        }
        self.compare().await.map_err(|why| format!("in the end: {why}"))?;
        self.forget().await;
        self.compare().await.map_err(|why| format!("from the disk: {why}"))
    }

    async fn take(&self, step: &Step) -> Result<(), RpcError> {
        let room = self.room;
        let by = |user: &usize| &self.house.people[*user];
        match step {
            Step::Send { by: user, key, body, reply_to } => {
                let key = key.map(|key| format!("key {key}")).unwrap_or_default();
                let (body, reply_to) = (body.clone(), reply_to.map(Seq::from_u64));
                let send = MessageSend { room, key, body, reply_to, attachments: Vec::new() };
                messages::send(by(user), send).await.map(drop)
            }
            Step::Edit { by: user, seq, body } => {
                let edit = MessageEdit { room, seq: Seq::from_u64(*seq), body: body.clone() };
                messages::edit(by(user), edit).await.map(drop)
            }
            Step::Delete { by: user, seq } => {
                messages::delete(by(user), MessageDelete { room, seq: Seq::from_u64(*seq) }).await
            }
            Step::React { by: user, seq, emoji, on } => {
                let (seq, emoji, on) = (Seq::from_u64(*seq), (*emoji).to_owned(), *on);
                messages::react(by(user), MessageReact { room, seq, emoji, on }).await
            }
            Step::Pin { by: user, seq, on } => {
                let pin = MessagePin { room, seq: Seq::from_u64(*seq), on: *on };
                pins::pin(by(user), pin).await
            }
            Step::Add { by: user, user: other } => {
                members::add(by(user), RoomAdd { room, user: id(*other) }).await
            }
            Step::Leave { by: user } => members::leave(by(user), RoomLeave { room }).await,
            Step::Kick { by: user, user: other } => {
                members::kick(by(user), RoomKick { room, user: id(*other) }).await
            }
            Step::Ban { by: user, user: other, on } => {
                members::ban(by(user), RoomBan { room, user: id(*other), on: *on }).await
            }
            Step::Mute { by: user, user: other, on } => {
                let until = on.then_some(MUTED_UNTIL);
                members::mute(by(user), RoomMute { room, user: id(*other), until }).await
            }
            Step::SetRole { by: user, user: other, rank } => {
                let role = role(*rank);
                members::set_role(by(user), RoomSetRole { room, user: id(*other), role }).await
            }
            Step::Rename { by: user, name } => {
                let update = RoomUpdate { room, name: Some((*name).to_owned()), topic: None };
                rooms::update(by(user), update).await.map(drop)
            }
            Step::Archive { by: user, on } => {
                rooms::archive(by(user), RoomArchive { room, on: *on }).await.map(drop)
            }
            Step::Forget => {
                self.forget().await;
                Ok(())
            }
        }
    }

    async fn forget(&self) {
        self.house.server.room(self.room).stop().await;
    }

    /// How many events and messages there are, and that strangers are told nothing.
    async fn compare_numbers(&self) -> Result<(), String> {
        for user in 0..PEOPLE {
            let seen = rooms::get(&self.house.people[user], self.room).await;
            let Some(member) = self.model.members.get(&user) else {
                if seen.is_ok() {
                    return Err(format!("{user} is no member, and sees the room"));
                }
                continue;
            };
            let seen = seen.map_err(|error| format!("{user} sees nothing: {error}"))?;
            let RoomView { offset, last_seq, members, role: is, archived, name, .. } = seen;
            let found = (offset.as_u64(), last_seq.as_u64(), members as usize, is, archived);
            let model = &self.model;
            let (messages, people) = (model.messages.len() as u64, model.members.len());
            let wanted = (model.events, messages, people, role(member.rank), model.is_archived);
            if found != wanted || name != model.name {
                return Err(format!("{user} sees {found:?} {name}, not {wanted:?} {}", model.name));
            }
        }
        Ok(())
    }

    async fn compare(&self) -> Result<(), String> {
        self.compare_numbers().await?;
        let Some(viewer) = self.model.members.keys().next() else { return Ok(()) };
        let viewer = &self.house.people[*viewer];
        let list = RoomMembers { room: self.room, after: None, prefix: None, limit: None };
        let page = members::list(viewer, list).await.map_err(|error| error.to_string())?;
        let mut found: Vec<_> = page.members.iter().map(member).collect();
        found.sort_unstable();
        let wanted = self.model.members.iter();
        let wanted: Vec<_> =
            wanted.map(|(user, member)| (id(*user), role(member.rank), member.is_muted)).collect();
        if found != wanted {
            return Err(format!("members {found:?}, not {wanted:?}"));
        }
        let (before, after, around) = (None, None, None);
        let history = HistoryGet { room: self.room, before, after, around, limit: Some(100) };
        let page = messages::history(viewer, history).await.map_err(|error| error.to_string())?;
        if page.messages.len() != self.model.messages.len() {
            return Err(format!("{} messages", page.messages.len()));
        }
        for (number, (found, wanted)) in (1..).zip(page.messages.iter().zip(&self.model.messages)) {
            let is_right = found.seq.as_u64() == number && self.is_right(found, wanted);
            if !is_right {
                return Err(format!("message {number} is {found:?}, not {wanted:?}"));
            }
        }
        Ok(())
    }

    fn is_right(&self, found: &MessageView, wanted: &model::Message) -> bool {
        if wanted.is_deleted {
            return found.deleted
                && !found.pinned
                && found.body.is_empty()
                && found.user == id(wanted.by);
        }
        let mentions: Vec<UserId> = wanted.mentions.iter().map(|user| id(*user)).collect();
        let mut found_mentions = found.mentions.clone();
        found_mentions.sort_unstable();
        let reactions = wanted.reactions.iter().filter(|(_, users)| !users.is_empty());
        let reactions: Vec<_> =
            reactions.map(|(emoji, users)| (*emoji, users.len() as u32)).collect();
        let mut found_reactions: Vec<_> =
            found.reactions.iter().map(|given| (&*given.emoji, given.count)).collect();
        found_reactions.sort_unstable();
        let quote = found.reply_to.as_ref();
        // What is quoted goes with the message that it is of.
        let is_quote_right = quote.is_none_or(|quote| {
            let original = &self.model.messages[quote.seq.as_u64() as usize - 1];
            quote.user == id(original.by) && quote.body.is_empty() == original.is_deleted
        });
        !found.deleted
            && found.pinned == wanted.is_pinned
            && found.user == id(wanted.by)
            && found.body == wanted.body
            && found.edited_at.is_some() == wanted.is_edited
            && quote.map(|quote| quote.seq.as_u64()) == wanted.reply_to
            && is_quote_right
            && found_mentions == mentions
            && (wanted.is_edited || found.mention_all == wanted.mentions_all)
            && found_reactions == reactions
    }
}

fn member(view: &MemberView) -> (UserId, Role, bool) {
    (view.user, view.role, view.muted_until.is_some())
}

fn role(rank: Rank) -> Role {
    match rank {
        Rank::Member => Role::Member,
        Rank::Moderator => Role::Moderator,
        Rank::Owner => Role::Owner,
    }
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

/// Plays programs; gives the first that fails, as short as it was found, and why it does.
fn play(test: &str, programs: u32, model: fn() -> Model) -> Result<(), (Vec<Step>, String)> {
    let seed = setting("ROOM_FUZZ_SEED").unwrap_or(1);
    println!("ROOM_FUZZ_SEED={seed} ROOM_FUZZ_PROGRAMS={programs}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config =
        ProptestConfig { cases: programs, failure_persistence: None, ..Default::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let house = runtime.block_on(House::open(test));
    let played = AtomicU64::new(0);
    let outcome = runner.run(&vec(any_step(), 1..STEPS), |steps| {
        played.fetch_add(1, Ordering::Relaxed);
        let program = async { Play::begin(&house, model()).await.program(&steps).await };
        runtime.block_on(program).map_err(TestCaseError::fail)
    });
    runtime.block_on(house.close());
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, steps)) => Err((steps, why.message().to_owned())),
        Err(TestError::Abort(why)) => panic!("nothing was tried: {why}"),
    }
}

#[test]
fn rooms_do_what_one_would_explain_whatever_people_try() {
    let programs = setting("ROOM_FUZZ_PROGRAMS").map_or(PROGRAMS, |programs| programs as u32);
    if let Err((steps, why)) = play("rooms", programs, || Model::new(FIRST_NAME)) {
        panic!("{why}\nin the program\n{steps:#?}");
    }
}

/// Programs that once ended differently, each with what it takes.
fn once_different() -> Vec<Vec<Step>> {
    let send = |reply_to| {
        let body = "why 0".to_owned();
        Step::Send { by: 0, key: Some(2), body, reply_to }
    };
    // A reply to nothing under the key of the same words without a reply.
    vec![vec![send(None), send(Some(0))]]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_once_differed_does_so_no_more() {
    let house = House::open("once").await;
    for steps in once_different() {
        let play = Play::begin(&house, Model::new(FIRST_NAME)).await;
        play.program(&steps).await.unwrap_or_else(|why| panic!("{why}\nin {steps:#?}"));
    }
    house.close().await;
}

#[test]
fn a_difference_is_found_and_shrunk_to_what_it_takes() {
    let wrong = || {
        let mut model = Model::new(FIRST_NAME);
        model.forgets_mutes = true;
        model
    };
    let (steps, why) = play("wrong", 256, wrong).expect_err("who is muted may not speak");
    assert!(why.contains("Err(PermissionDenied) instead of Ok(())"), "{why}");
    let [Step::Add { user: added, .. }, Step::Mute { user: muted, on: true, .. }, last] =
        &steps[..]
    else {
        panic!("{steps:?}");
    };
    assert_eq!(added, muted);
    assert!(matches!(last, Step::Send { by, .. } if by == muted), "{last:?}");
}

//! `--demo`: rooms in which bots have talked for a month and go on talking, so that a first look
//! shows life. The bots use what every client uses; new accounts are let into their rooms and
//! greeted, and answered where they say hello.

mod answers;
mod cast;
mod direct;
mod history;
mod script;

use std::sync::Arc;
use std::time::Duration;

use folkmoot_protocol::RoomId;
use folkmoot_protocol::rpc::{
    DirectOpen, HistoryGet, MessageReact, MessageSend, RpcError, TypingSet,
};
use tokio::sync::mpsc;

use crate::account::token::random_id;
use crate::chat::Identity;
use crate::chat::{members, messages, rooms, search, users};
use crate::open_rooms::{OpenRooms, Said};
use crate::server::Server;
use crate::storage::{DeviceId, Seq};
use answers::{Answer, Answers, Heard};
use cast::Cast;
use direct::Direct;
use script::{Line, Scene, When, scenes};

/// Between two lines anywhere, in turn: calm enough to read along in all rooms, and no clockwork.
const PAUSES_S: [u64; 5] = [6, 10, 7, 12, 5];
/// Until somebody presses a reaction.
const REACTING: Duration = Duration::from_millis(1_500);
/// How long a bot types for each character, and at least, and at most: a guest waits for it.
const TYPING: Patience = Patience { letter_ms: 18, min_ms: 700, max_ms: 2_600 };
/// How long a bot reads what a guest said.
const READING: Patience = Patience { letter_ms: 15, min_ms: 500, max_ms: 1_500 };

/// What a newcomer finds in the first direct conversation.
const GREETING: &str = "Welcome! Everybody in these rooms is a bot, so try whatever you like: \
     answer with a quote, react, edit, delete, throw me out.\n\nPress **Alt+H** for the keys, \
     and **Ctrl+K** to jump to a room.";

/// What takes longer for longer texts.
struct Patience {
    letter_ms: u64,
    min_ms: u64,
    max_ms: u64,
}

impl Patience {
    fn of(&self, text: &str) -> Duration {
        let wanted = self.letter_ms * text.chars().count() as u64;
        Duration::from_millis(wanted.clamp(self.min_ms, self.max_ms))
    }
}

/// Prepares rooms and bots; they talk until the server stops.
pub(crate) async fn start(server: &Arc<Server>) {
    let scenes = scenes();
    let prepared = async {
        let cast = Cast::gather(server).await?;
        let rooms = cast.rooms(server, &scenes).await?;
        let greeted = cast.come_in(server, &rooms).await?;
        Ok::<_, RpcError>((cast, rooms, greeted))
    };
    let (cast, rooms, greeted) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => {
            tracing::error!(%error, "the demo could not be prepared");
            return;
        }
    };
    // Whoever comes first finds what was said before.
    if let Some(index) = &server.search
        && let Err(error) = search::catch_up(server, index).await
    {
        tracing::debug!(%error, "the search finds the past a moment later");
    }
    let (open, hearing) = OpenRooms::new(rooms.clone(), cast.host());
    greeted.into_iter().for_each(|room| open.add_direct(room));
    server.open_to_all(open);
    let (server, mut stopping) = (server.clone(), server.stopping());
    tokio::spawn(async move {
        tokio::select! {
            () = talk(&server, &cast, &scenes, &rooms) => {}
            () = answer(&server, &cast, (&scenes, &rooms), hearing) => {}
            _ = stopping.changed() => {}
        }
    });
}

/// Lets a new account into the demo's rooms, if there is a demo; returns the one to begin in.
pub(crate) async fn welcome(newcomer: &Identity) -> Result<Option<RoomId>, RpcError> {
    let Some(open) = newcomer.server.open_rooms() else { return Ok(None) };
    for room in &open.rooms {
        members::admit(newcomer, *room).await?;
    }
    let server = newcomer.server.clone();
    let host = Identity::new(server, open.host, DeviceId::from_u64(0));
    let direct = rooms::open_direct(&host, DirectOpen { user: newcomer.user }).await?;
    cast::come_in(&host, cast::HOST, direct.id).await?;
    say(&host, direct.id, GREETING.to_owned(), None).await?;
    open.add_direct(direct.id);
    Ok(open.first())
}

/// Answers guests in the rooms and in their conversations with the host.
async fn answer(
    server: &Server,
    cast: &Cast,
    (scenes, rooms): (&[Scene], &[RoomId]),
    mut hearing: mpsc::Receiver<Said>,
) {
    let (mut answers, direct) = (Answers::new(), Direct::new());
    while let Some(said) = hearing.recv().await {
        if cast.has(said.user) {
            continue;
        }
        let place = rooms.iter().position(|room| *room == said.room);
        let answered = match place {
            Some(place) => {
                answer_one(server, cast, (&mut answers, scenes[place].room), &said).await
            }
            None => answer_alone(server, cast, &direct, &said).await,
        };
        if let Err(error) = answered {
            tracing::debug!(%error, "a bot could not answer");
        }
    }
}

async fn answer_one(
    server: &Server,
    cast: &Cast,
    (answers, name): (&mut Answers, &str),
    Said { room, user, seq, body }: &Said,
) -> Result<(), RpcError> {
    let account = users::account(server, *user).await?;
    let heard = Heard { guest: *user, name: &account.display_name, seq: *seq, body, room: name };
    for answer in answers.to(&heard) {
        server.node().sleep(READING.of(body)).await;
        give(server, cast, (*room, *seq), Some(*seq), answer).await?;
    }
    Ok(())
}

/// Where two talk, it is plain what is answered.
async fn answer_alone(
    server: &Server,
    cast: &Cast,
    direct: &Direct,
    Said { room, user, seq, body }: &Said,
) -> Result<(), RpcError> {
    let account = users::account(server, *user).await?;
    let heard = Heard { guest: *user, name: &account.display_name, seq: *seq, body, room: "" };
    server.node().sleep(READING.of(body)).await;
    give(server, cast, (*room, *seq), None, direct.to(&heard)).await
}

/// Answers a message, with or without quoting it.
async fn give(
    server: &Server,
    cast: &Cast,
    (room, seq): (RoomId, Seq),
    reply_to: Option<Seq>,
    answer: Answer,
) -> Result<(), RpcError> {
    match answer {
        Answer::Say { who, text } => {
            typed(server, cast, who, room, &text).await?;
            say(cast.identity(who)?, room, text, reply_to).await.map(drop)
        }
        Answer::React { who, emoji } => react(cast, who, room, seq, emoji).await,
    }
}

/// Goes round the rooms, one line at a time, and through their conversations again and again.
async fn talk(server: &Server, cast: &Cast, scenes: &[Scene], rooms: &[RoomId]) {
    let mut talks: Vec<Talk<'_>> = scenes.iter().zip(rooms).map(Talk::new).collect();
    for talk in &mut talks {
        // What cannot be read is begun anew.
        if let Ok(said) = said_last(cast, talk.room).await {
            talk.go_on_after(&said);
        }
    }
    for turn in 0usize.. {
        server.node().sleep(Duration::from_secs(PAUSES_S[turn % PAUSES_S.len()])).await;
        let place = turn % talks.len();
        let talk = &mut talks[place];
        let Some(line) = talk.next() else { continue };
        // A bot that was thrown out of its room, or a full disk, ends nothing.
        if let Err(error) = talk.speak(server, cast, line).await {
            tracing::debug!(%error, name = line.who, "a bot could not speak");
        }
    }
}

/// What was said last in a room, the newest at the end.
async fn said_last(cast: &Cast, room: RoomId) -> Result<Vec<String>, RpcError> {
    let last = HistoryGet { room, before: None, after: None, around: None, limit: None };
    let page = messages::history(cast.identity(cast::HOST)?, last).await?;
    Ok(page.messages.into_iter().map(|message| message.body).collect())
}

/// Where a room is in its conversations.
struct Talk<'a> {
    room: RoomId,
    conversations: Vec<&'a [Line]>,
    conversation: usize,
    line: usize,
    /// The numbers of this conversation's lines so far, for answers.
    numbers: Vec<Option<Seq>>,
}

impl<'a> Talk<'a> {
    fn new((scene, room): (&'a Scene, &RoomId)) -> Self {
        // What was written for now comes first, then what was said long ago, the oldest first: by
        // the time that anything is said again, the first time is several screens up.
        // Guests would be called to what is not about them.
        let said_now = scene.conversations.iter().filter(|talk| !talk.calls_everyone());
        let (live, past): (Vec<_>, Vec<_>) = said_now.partition(|talk| talk.when == When::Live);
        let conversations =
            live.into_iter().chain(past).map(|talk| talk.lines.as_slice()).collect();
        Self { room: *room, conversations, conversation: 0, line: 0, numbers: Vec::new() }
    }

    /// Goes on behind what was said last, the newest at the end: a server that starts again finds
    /// its bots where they were.
    fn go_on_after(&mut self, said: &[String]) {
        let place_of = |text: &String| {
            let mut talks = self.conversations.iter().enumerate();
            talks.find_map(|(talk, lines)| {
                Some((talk, lines.iter().position(|line| line.text == *text)?))
            })
        };
        if let Some((conversation, line)) = said.iter().rev().find_map(place_of) {
            self.conversation = conversation;
            self.line = line + 1;
            self.numbers = vec![None; self.line];
        }
    }

    fn next(&mut self) -> Option<&'a Line> {
        if self.conversations.get(self.conversation)?.len() == self.line {
            self.conversation = (self.conversation + 1) % self.conversations.len();
            self.line = 0;
            self.numbers.clear();
        }
        let line = self.conversations[self.conversation].get(self.line);
        self.line += 1;
        line
    }

    async fn speak(&mut self, server: &Server, cast: &Cast, line: &Line) -> Result<(), RpcError> {
        let (room, reply_to) = (self.room, line.reply_to);
        let reply_to = reply_to.and_then(|place| self.numbers.get(place).copied().flatten());
        // Counted also when nobody could speak, so that later answers find their lines.
        self.numbers.push(None);
        typed(server, cast, line.who, room, &line.text).await?;
        let seq = say(cast.identity(line.who)?, room, line.text.clone(), reply_to).await?;
        if let Some(number) = self.numbers.last_mut() {
            *number = Some(seq);
        }
        for (who, emoji) in &line.reactions {
            server.node().sleep(REACTING).await;
            react(cast, who, room, seq, emoji).await?;
        }
        Ok(())
    }
}

/// A bot writes what it is about to say.
async fn typed(
    server: &Server,
    cast: &Cast,
    who: &str,
    room: RoomId,
    text: &str,
) -> Result<(), RpcError> {
    let bot = cast.identity(who)?;
    // Thrown out and let in again, it is there again.
    cast::come_in(bot, who, room).await?;
    messages::typing(bot, TypingSet { room, on: true }).await?;
    server.node().sleep(TYPING.of(text)).await;
    messages::typing(bot, TypingSet { room, on: false }).await
}

async fn react(
    cast: &Cast,
    who: &str,
    room: RoomId,
    seq: Seq,
    emoji: &str,
) -> Result<(), RpcError> {
    let react = MessageReact { room, seq, emoji: emoji.to_owned(), on: true };
    messages::react(cast.identity(who)?, react).await
}

async fn say(
    bot: &Identity,
    room: RoomId,
    body: String,
    reply_to: Option<Seq>,
) -> Result<Seq, RpcError> {
    let (key, attachments) = (format!("{:x}", random_id()), Vec::new());
    let sent = messages::send(bot, MessageSend { room, key, body, reply_to, attachments }).await?;
    Ok(sent.seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that a window shows.
    const SCREEN: usize = 24;

    #[test]
    fn nothing_is_said_twice_on_one_screen() {
        for scene in scenes() {
            let room = RoomId::from_u64(1);
            let mut talk = Talk::new((&scene, &room));
            let said: Vec<&str> =
                (0..300).map(|_| talk.next().map_or("", |line| line.text.as_str())).collect();
            for window in said.windows(SCREEN) {
                let (last, before) = window.split_last().expect("a screen has lines");
                assert!(!before.contains(last), "{}: {last:?} again too soon", scene.room);
            }
        }
    }

    #[test]
    fn guests_are_called_to_nothing() {
        for scene in scenes() {
            let room = RoomId::from_u64(1);
            let mut talk = Talk::new((&scene, &room));
            for line in (0..300).filter_map(|_| talk.next()) {
                assert!(!line.calls_everyone(), "{}: {:?}", scene.room, line.text);
            }
        }
    }

    #[test]
    fn nothing_is_said_again_because_the_server_was_started_again() {
        for scene in scenes() {
            let room = RoomId::from_u64(1);
            let mut said: Vec<String> = Vec::new();
            for _ in 0..60 {
                let mut talk = Talk::new((&scene, &room));
                talk.go_on_after(&said[said.len().saturating_sub(SCREEN)..]);
                let line = talk.next().expect("a conversation has lines").text.clone();
                let screen = &said[said.len().saturating_sub(SCREEN)..];
                assert!(!screen.contains(&line), "{}: {line:?} again too soon", scene.room);
                said.push(line);
            }
        }
    }
}

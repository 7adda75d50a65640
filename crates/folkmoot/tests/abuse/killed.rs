//! SIGKILL while something is under way: what was acknowledged is there after the next start, and
//! what was not is there whole or not at all, whichever way one looks.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::listening;
use crate::support::{Account, Client, Scratch, request};

/// Moments of the kill after the command was sent, in microseconds: from before the server has read
/// it to after its answer, whatever the machine.
const MOMENTS_US: [u64; 3] = [0, 3_000, 50_000];

/// The server as a process that can be killed, with Anna and Bob on it.
struct Killable {
    child: Child,
    server: std::net::SocketAddr,
    anna: Client,
    bob: Client,
}

struct People {
    anna: Account,
    bob: Account,
}

impl Killable {
    async fn start(data: &Path, people: &People) -> Self {
        let (child, server) = listening(data);
        let mut clients = Vec::new();
        for account in [&people.anna, &people.bob] {
            let mut client = Client::open(server).await;
            client.connect(&account.token).await.expect("the account is there");
            clients.push(client);
        }
        let (bob, anna) = (clients.pop().expect("two"), clients.pop().expect("two"));
        Self { child, server, anna, bob }
    }

    fn kill(&mut self) {
        self.child.kill().expect("our own child can be killed");
        self.child.wait().expect("it was not waited for");
    }
}

/// Also after a failed assertion.
impl Drop for Killable {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Who gives the command that is cut short.
#[derive(Clone, Copy)]
enum By {
    Anna,
    Bob,
}

/// Sends a command, kills the server a moment later; says whether the command was acknowledged.
async fn cut_short(alive: &mut Killable, by: By, method: &str, data: Value, us: u64) -> bool {
    let client = match by {
        By::Anna => &mut alive.anna,
        By::Bob => &mut alive.bob,
    };
    let id = client.post("rpc", json!({"method": method, "data": data})).await;
    // By the clock and not by a timer: those of the runtime count whole milliseconds.
    let sent = Instant::now();
    while sent.elapsed() < Duration::from_micros(us) {
        tokio::task::yield_now().await;
    }
    alive.child.kill().expect("our own child can be killed");
    alive.child.wait().expect("it was not waited for");
    let client = match by {
        By::Anna => &mut alive.anna,
        By::Bob => &mut alive.bob,
    };
    client.closed().await;
    client.answered(id)
}

/// A room of Anna's with three messages, the second of them Bob's if he is in it.
async fn furnished(alive: &mut Killable, with_bob: bool) -> String {
    let room = alive.anna.create_room("Tea").await;
    if with_bob {
        alive.anna.invite(&room, &mut alive.bob).await;
    }
    for key in ["1", "2", "3"] {
        alive.anna.say(&room, key, &format!("said {key}")).await;
    }
    room
}

async fn rooms_of(client: &mut Client) -> Vec<Value> {
    let page = client.call("rooms.list", json!({})).await;
    page["rooms"].as_array().expect("rooms").clone()
}

/// Whether Bob is in the room, which must be the same from every side.
async fn bob_is_in(alive: &mut Killable, people: &People, room: &str) -> bool {
    let listed = rooms_of(&mut alive.bob).await.iter().any(|one| one["id"] == room);
    let members = alive.anna.call("room.members", json!({"room": room})).await;
    let members = members["members"].as_array().expect("members").clone();
    let is_member = members.iter().any(|member| member["user"] == people.bob.id.as_str());
    let counted = alive.anna.call("room.get", json!({"room": room})).await["members"].clone();
    assert_eq!(listed, is_member, "his list and the room's say different things");
    assert_eq!(counted, members.len());
    assert_eq!(alive.bob.rpc("history.get", json!({"room": room})).await.is_ok(), is_member);
    is_member
}

async fn history(client: &mut Client, room: &str) -> Vec<Value> {
    let page = client.call("history.get", json!({"room": room})).await;
    page["messages"].as_array().expect("messages").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_at_any_moment_leaves_joins_sends_edits_deletions_and_bans_whole() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let (mut child, server) = listening(&data);
    let people = People {
        anna: Account::sign_up(server, "anna").await,
        bob: Account::sign_up(server, "bob").await,
    };
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
    let mut alive = Killable::start(&data, &people).await;
    let mut acknowledged = 0;
    for us in MOMENTS_US {
        // Each goes on with the server that the one before has started again.
        let mut done = [false; 5];
        (alive, done[0]) = join(alive, &data, &people, us).await;
        (alive, done[1]) = send(alive, &data, &people, us).await;
        (alive, done[2]) = edit(alive, &data, &people, us).await;
        (alive, done[3]) = delete(alive, &data, &people, us).await;
        (alive, done[4]) = ban(alive, &data, &people, us).await;
        acknowledged += done.into_iter().filter(|done| *done).count();
    }
    alive.kill();
    // Else the moments do not reach from before to after.
    assert!(acknowledged > 0, "nothing was ever acknowledged before the kill");
}

async fn join(mut alive: Killable, data: &Path, people: &People, us: u64) -> (Killable, bool) {
    let room = furnished(&mut alive, false).await;
    let invite = alive.anna.call("invite.create", json!({"room": room, "uses_max": 1})).await;
    let code = json!({"code": invite["code"]});
    let done = cut_short(&mut alive, By::Bob, "invite.accept", code.clone(), us).await;
    let mut alive = Killable::start(data, people).await;
    let is_in = bob_is_in(&mut alive, people, &room).await;
    assert!(is_in || !done, "an acknowledged join was lost after {us} µs");
    // He has not to catch up with what was said before he came, and can come now if he could not.
    let view = alive.bob.call("invite.accept", code).await;
    assert_eq!(view["unread"], 0, "{view}");
    assert!(bob_is_in(&mut alive, people, &room).await);
    (alive, done)
}

async fn send(mut alive: Killable, data: &Path, people: &People, us: u64) -> (Killable, bool) {
    let room = furnished(&mut alive, true).await;
    let message = json!({"room": room, "key": "cut", "body": "@bob cut short"});
    let done = cut_short(&mut alive, By::Anna, "message.send", message.clone(), us).await;
    let mut alive = Killable::start(data, people).await;
    let before = history(&mut alive.bob, &room).await.len();
    assert!(before == 4 || !done && before == 3, "{before} messages after {us} µs");
    let again = alive.anna.call("message.send", message).await;
    assert_eq!(again["seq"], 4, "a repeated send has the first number");
    assert_eq!(again["duplicate"] == true, before == 4);
    assert_eq!(history(&mut alive.bob, &room).await.len(), 4);
    (alive, done)
}

async fn edit(mut alive: Killable, data: &Path, people: &People, us: u64) -> (Killable, bool) {
    let room = furnished(&mut alive, true).await;
    let change = json!({"room": room, "seq": 2, "body": "changed"});
    let done = cut_short(&mut alive, By::Anna, "message.edit", change, us).await;
    let mut alive = Killable::start(data, people).await;
    let message = history(&mut alive.bob, &room).await[1].clone();
    let is_changed = message["body"] == "changed";
    assert_eq!(is_changed, message["edited_at"].is_u64(), "{message}");
    assert!(is_changed || !done && message["body"] == "said 2", "{message} after {us} µs");
    (alive, done)
}

async fn delete(mut alive: Killable, data: &Path, people: &People, us: u64) -> (Killable, bool) {
    let room = furnished(&mut alive, true).await;
    let doomed = json!({"room": room, "seq": 2});
    let done = cut_short(&mut alive, By::Anna, "message.delete", doomed, us).await;
    let mut alive = Killable::start(data, people).await;
    let message = history(&mut alive.bob, &room).await[1].clone();
    let is_deleted = message["deleted"] == true;
    assert_eq!(message["body"] == "", is_deleted, "{message}");
    assert!(is_deleted || !done, "an acknowledged deletion was lost after {us} µs");
    let hits = alive.bob.call("search", json!({"query": "said", "room": room})).await;
    assert_eq!(hits["hits"].as_array().expect("a list").len(), 3 - usize::from(is_deleted));
    (alive, done)
}

async fn ban(mut alive: Killable, data: &Path, people: &People, us: u64) -> (Killable, bool) {
    let room = furnished(&mut alive, true).await;
    let invite = alive.anna.call("invite.create", json!({"room": room})).await;
    let sent_away = json!({"room": room, "user": people.bob.id, "on": true});
    let done = cut_short(&mut alive, By::Anna, "room.ban", sent_away, us).await;
    let mut alive = Killable::start(data, people).await;
    let is_in = bob_is_in(&mut alive, people, &room).await;
    assert!(!is_in || !done, "an acknowledged ban was lost after {us} µs");
    let back = alive.bob.rpc("invite.accept", json!({"code": invite["code"]})).await;
    assert_eq!(back.is_ok(), is_in, "banned is banned, and else he is a member: {back:?}");
    (alive, done)
}

#[tokio::test(flavor = "multi_thread")]
async fn sigkill_while_rooms_and_accounts_are_deleted_leaves_nothing_of_them() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let (mut child, server) = listening(&data);
    let people = People {
        anna: Account::sign_up(server, "anna").await,
        bob: Account::sign_up(server, "bob").await,
    };
    child.kill().expect("our own child can be killed");
    child.wait().expect("it was not waited for");
    let mut doomed = Vec::new();
    for us in MOMENTS_US {
        let mut alive = Killable::start(&data, &people).await;
        let room = furnished(&mut alive, true).await;
        alive.anna.say(&room, "4", &format!("@bob xylophagous {us}")).await;
        let gone = json!({"room": room});
        let done = cut_short(&mut alive, By::Anna, "room.delete", gone, us).await;
        doomed.push((room, done));
    }
    let mut alive = Killable::start(&data, &people).await;
    let eve = Account::sign_up(alive.server, "eve").await;
    for (room, done) in &doomed {
        let is_there = alive.bob.rpc("room.get", json!({"room": room})).await.is_ok();
        assert!(!is_there || !done, "an acknowledged deletion was lost");
        if is_there {
            alive.anna.call("room.delete", json!({"room": room})).await;
        }
    }
    // The account is killed in the middle of its going, too.
    let wish = json!({"password": "correct horse", "messages": "erase"}).to_string();
    let line = "POST /api/v1/me/deletion";
    assert_eq!(request(alive.server, line, Some(&eve.token), &wish).await.status, 204);
    alive.kill();
    let flags = folkmoot::Flags {
        listen: Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0))),
        data: Some(data.clone()),
        log_segment_mib: Some(1),
        ..folkmoot::Flags::default()
    };
    let config = folkmoot::Config::load(flags).expect("flags are valid");
    let running = folkmoot::start(config).await.expect("it starts");
    running.erased().await;
    let body = json!({"name": "eve", "password": "correct horse"}).to_string();
    let refused = request(running.address(), "POST /api/v1/sessions", None, &body).await;
    assert_eq!(refused.status, 401);
    running.stop().await;
    let database = std::fs::read(data.join("folkmoot.sqlite")).expect("it is there");
    let has = |text: &str| database.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("anna") && !has("xylophagous"), "the database still has what was said");
}

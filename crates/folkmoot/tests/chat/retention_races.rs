//! Messages that are retired while others read, edit, answer, pin, save, react to and search for
//! them: nothing of them is left, and nobody hears anything but that they are gone.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Account, Client, PATIENT, Server};

/// How often the room is told to keep less.
const ROUNDS: u64 = 12;
/// Said in each of them.
const SAID: u64 = 40;

async fn server() -> Server {
    let zero = ["changes", "questions", "edits", "reactions", "searches", "cursors"];
    let zero: String = zero.iter().map(|what| format!("{what}_per_minute = 0\n")).collect();
    Server::with(&format!("[limits]\nmessages_per_second = 0\n{zero}{PATIENT}")).await
}

struct Races {
    room: String,
    last: AtomicU64,
    texts: AtomicU64,
    is_over: AtomicBool,
}

impl Races {
    /// A text that is nowhere else.
    fn text(&self) -> String {
        format!("cup zq{}q", self.texts.fetch_add(1, Ordering::Relaxed))
    }

    /// Does the same to message after message, the oldest of which are going.
    async fn insist(&self, mut client: Client, what: impl Fn(&Self, u64) -> (&'static str, Value)) {
        let mut n: u64 = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            n += 1;
            let last = self.last.load(Ordering::Relaxed);
            let seq = last.saturating_sub(n * 7 % (SAID + 10)).max(1);
            let (method, request) = what(self, seq);
            if let Err(refused) = client.rpc(method, request).await {
                assert!([103, 106, 404].contains(&refused.code), "{method}: {refused:?}");
            }
        }
    }
}

/// The marks of texts in some bytes.
fn marks(bytes: &[u8]) -> BTreeSet<u64> {
    let mut marks = BTreeSet::new();
    for at in 0..bytes.len().saturating_sub(2) {
        if &bytes[at..at + 2] == b"zq" {
            let digits: String = bytes[at + 2..]
                .iter()
                .map(|byte| char::from(*byte))
                .take_while(char::is_ascii_digit)
                .collect();
            marks.extend(digits.parse::<u64>());
        }
    }
    marks
}

async fn keep(server: &Server, by: &Account, room: &str, messages: u64) {
    let line = format!("PUT /api/v1/admin/rooms/{room}/retention");
    let body = json!({"messages": messages}).to_string();
    let set = server.http(&line, Some(&by.token), &body).await;
    assert_eq!(set.status, 204, "{set:?}");
    server.kept().await;
}

async fn say_and_retire(server: &Server, anna: &Account, races: &Races) {
    let mut client = server.connect(anna).await;
    for round in 0..ROUNDS {
        for n in 0..SAID {
            let key = format!("{round} {n}");
            races.last.store(client.say(&races.room, &key, &races.text()).await, Ordering::Relaxed);
        }
        keep(server, anna, &races.room, SAID / 2).await;
    }
    races.is_over.store(true, Ordering::Relaxed);
}

/// Looks for everything that a member can get of a room; gives the marks of what is kept.
async fn only_what_is_kept_is_found(
    at_bob: &mut Client,
    bob: &Account,
    room: &str,
) -> BTreeSet<u64> {
    let page = at_bob.call("history.get", json!({"room": room, "limit": 100})).await;
    let first = page["first_seq"].as_u64().expect("a number");
    let kept = page["messages"].as_array().expect("messages").len();
    assert_eq!(kept, 3, "{page}");
    let of = |list: &Value| -> Vec<u64> {
        let list = list.as_array().expect("a list").iter();
        list.map(|it| it["message"]["seq"].as_u64().expect("a number")).collect()
    };
    let pins = at_bob.call("room.pins", json!({"room": room})).await;
    assert!(of(&pins["pins"]).iter().all(|seq| *seq >= first), "{pins}");
    let saved = at_bob.call("saved.list", json!({})).await;
    assert!(of(&saved["saved"]).iter().all(|seq| *seq >= first), "{saved}");
    let found = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let found = at_bob.call("search", json!({"query": "cup"})).await;
            if found["behind"].is_null() {
                return found;
            }
        }
    });
    let found = found.await.expect("the index catches up");
    let hits = found["hits"].as_array().expect("hits");
    assert!(hits.iter().all(|hit| hit["seq"].as_u64() >= Some(first)), "{found}");
    let view = at_bob.call("room.get", json!({"room": room})).await;
    assert!(view["unread"].as_u64() <= Some(3) && view["mentions"].as_u64() <= Some(3), "{view}");
    let of_user = json!({"channel": format!("user:{}", bob.id), "limit": 1000});
    let own = at_bob.command("history", of_user).await.expect("one's own").to_string();
    let alive = marks(page.to_string().as_bytes());
    let in_own = marks(own.as_bytes());
    assert!(in_own.is_subset(&alive), "{in_own:?} of {alive:?}");
    alive
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_messages_that_are_retired_while_everybody_does_everything_with_them() {
    let mut server = server().await;
    let anna = Account::of(&server.set_up("anna").await);
    let bob = server.sign_up("bob").await;
    let mut at_anna = server.connect(&anna).await;
    let mut at_bob = server.connect(&bob).await;
    let room = at_anna.create_room("Tea").await;
    at_anna.invite(&room, &mut at_bob).await;
    let races = Races {
        room: room.clone(),
        last: AtomicU64::new(1),
        texts: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let on = |races: &Races, seq: u64, more: Value| {
        let mut request = json!({"room": races.room, "seq": seq});
        request.as_object_mut().expect("an object").extend(more.as_object().expect("too").clone());
        request
    };
    let mut clients = Vec::new();
    for account in [&anna, &bob, &anna, &bob, &anna, &bob, &bob, &bob] {
        clients.push(server.connect(account).await);
    }
    let mut clients = clients.into_iter();
    let mut next = || clients.next().expect("one for each");
    tokio::join!(
        say_and_retire(&server, &anna, &races),
        races.insist(next(), |races, seq| {
            ("message.edit", on(races, seq, json!({"body": format!("@bob {}", races.text())})))
        }),
        races.insist(next(), |races, seq| {
            let text = races.text();
            let said = json!({"room": races.room, "key": text, "body": text, "reply_to": seq});
            ("message.send", said)
        }),
        races.insist(next(), |races, seq| {
            ("message.pin", on(races, seq, json!({"on": seq % 3 > 0})))
        }),
        races.insist(next(), |races, seq| {
            ("message.save", on(races, seq, json!({"on": seq % 5 > 0})))
        }),
        races.insist(next(), |races, seq| ("message.delete", on(races, seq / 9 * 9, json!({})))),
        races.insist(next(), |races, seq| {
            ("message.react", on(races, seq, json!({"emoji": "x", "on": seq % 2 > 0})))
        }),
        races.insist(next(), |races, seq| ("message.thread", on(races, seq, json!({})))),
        races.insist(next(), |races, seq| ("read.set", on(races, seq, json!({})))),
    );
    keep(&server, &anna, &room, 3).await;

    let alive = only_what_is_kept_is_found(&mut at_bob, &bob, &room).await;
    drop((at_anna, at_bob));
    server.restart().await;
    server.stop().await;
    let database = std::fs::read(server.data().join("folkmoot.sqlite")).expect("it is there");
    let left = marks(&database);
    assert!(left.is_subset(&alive), "{left:?} are left, and {alive:?} kept");
    let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_folkmoot"));
    let checked = check.arg("--data").arg(server.data()).arg("check").output().expect("it runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

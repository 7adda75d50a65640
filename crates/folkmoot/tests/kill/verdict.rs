//! The comparison at the end: history against acknowledgements, streams against history.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use folkmoot_protocol::rpc::{HistoryGet, Search};
use folkmoot_protocol::{RoomId, Seq};

use crate::client::{Diary, Seen};
use crate::connection::Connection;

/// An index that stays behind must fail the test, not hang it.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Panics with every broken promise.
pub(crate) async fn check(observer: &mut Connection, rooms: &[RoomId], diaries: &[Diary]) {
    let mut histories = BTreeMap::new();
    for &room in rooms {
        histories.insert(room, history(observer, room).await);
    }
    let mut broken: Vec<String> =
        diaries.iter().flat_map(|diary| diary.violations.clone()).collect();
    for (room, history) in &histories {
        broken.extend(numbering(*room, history));
    }
    for (room, history) in &histories {
        broken.extend(search(observer, *room, history).await);
    }
    broken.extend(acknowledgements(&histories, diaries));
    broken.extend(streams(&histories, diaries));

    let acks: usize = diaries.iter().map(|diary| diary.acks.len()).sum();
    let messages: usize = histories.values().map(Vec::len).sum();
    let duplicates: usize = diaries.iter().map(|diary| diary.duplicates).sum();
    let connections: usize = diaries.iter().map(|diary| diary.connections).sum();
    let seen: usize = diaries.iter().flat_map(|diary| diary.streams.values()).map(Vec::len).sum();
    println!(
        "{acks} acknowledged, {messages} kept, {seen} delivered over {connections} connections; \
         {duplicates} retries found their message already kept; broken promises: {}",
        broken.len()
    );
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_eq!(
        messages, acks,
        "every message was acknowledged in the end, and none came from nowhere"
    );
    assert!(seen > acks, "messages reached others than their authors");
}

/// All messages of a room, page by page.
async fn history(observer: &mut Connection, room: RoomId) -> Vec<Seen> {
    let mut messages: Vec<Seen> = Vec::new();
    loop {
        // 0 stands before the first message; without an anchor the newest would come.
        let after = messages.last().map_or(Seq::default(), |last| last.seq);
        let request =
            HistoryGet { room, before: None, after: Some(after), around: None, limit: Some(100) };
        let page = observer.call(&request).await;
        let len_before = messages.len();
        messages.extend(
            page.messages.into_iter().map(|message| Seen { seq: message.seq, body: message.body }),
        );
        if messages.len() == len_before {
            return messages;
        }
    }
}

/// The index, which was killed amid its commits too, has every message of a room once.
async fn search(observer: &mut Connection, room: RoomId, history: &[Seen]) -> Vec<String> {
    let mut found: Vec<Seq> = Vec::new();
    let mut cursor = None;
    let deadline = Instant::now() + SEARCH_TIMEOUT;
    loop {
        let query = "after:1970-01-01".to_owned();
        let request = Search { query, room: Some(room), cursor: cursor.clone(), limit: Some(100) };
        let page = observer.call(&request).await;
        if page.behind > 0 {
            assert!(Instant::now() < deadline, "the index stays {} behind", page.behind);
            continue;
        }
        found.extend(page.hits.iter().map(|hit| hit.seq));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    found.reverse();
    let kept: Vec<Seq> = history.iter().map(|message| message.seq).collect();
    if found == kept {
        return Vec::new();
    }
    vec![format!("{room}: the search found {} of {} messages", found.len(), kept.len())]
}

/// Messages are numbered from 1 without gaps, none is there twice, and each author's are in the
/// author's order.
fn numbering(room: RoomId, history: &[Seen]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut last_of_author: HashMap<&str, u64> = HashMap::new();
    for (index, message) in history.iter().enumerate() {
        if message.seq.as_u64() != index as u64 + 1 {
            broken.push(format!("{room}: message {} at place {}", message.seq, index + 1));
        }
        let (author, number) = message.body.split_once('-').expect("bodies are author-number");
        let number = number.parse().expect("bodies are author-number");
        let last = last_of_author.insert(author, number).unwrap_or(0);
        if last == number {
            broken.push(format!("{room}: {} is doubled", message.body));
        } else if last > number {
            broken.push(format!("{room}: {} came after {author}-{last}", message.body));
        }
    }
    broken
}

/// Each acknowledged message is in the history under the number that was acknowledged.
fn acknowledgements(histories: &BTreeMap<RoomId, Vec<Seen>>, diaries: &[Diary]) -> Vec<String> {
    let mut broken = Vec::new();
    for ack in diaries.iter().flat_map(|diary| &diary.acks) {
        let kept = histories[&ack.room].get((ack.seq.as_u64() as usize).wrapping_sub(1));
        if kept.is_none_or(|kept| kept.body != ack.key) {
            broken.push(format!(
                "{}: {} acknowledged as {} is lost: {kept:?}",
                ack.room, ack.key, ack.seq
            ));
        }
    }
    broken
}

/// Each client saw, from its first message to the end, exactly what the history holds.
fn streams(histories: &BTreeMap<RoomId, Vec<Seen>>, diaries: &[Diary]) -> Vec<String> {
    let mut broken = Vec::new();
    for (client, diary) in diaries.iter().enumerate() {
        for (room, seen) in &diary.streams {
            let history = &histories[room];
            let first = (seen[0].seq.as_u64() as usize).wrapping_sub(1);
            if history.get(first..) != Some(seen.as_slice()) {
                broken.push(format!(
                    "{room}: the stream of client {client} differs from the history"
                ));
            }
        }
    }
    broken
}

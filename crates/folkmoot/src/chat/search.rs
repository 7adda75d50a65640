//! Searching: looks names up, asks the index where, and the store what stands there now.

use std::collections::HashSet;

use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::limits::HISTORY_PAGE_DEFAULT;
use folkmoot_protocol::rpc::{RpcError, Search, SearchHit, SearchHits};

use super::error::{read_failure, room_answer};
use crate::chat::Identity;
use crate::search::query::{Query, Wanted, parse};
use crate::search::text::folded;
use crate::search::{self, Bounds, Lookup, Place, highlight};
use crate::server::Server;
use crate::storage::contract::{ChangeFeed, Directory};
use crate::storage::{NamedRoom, ReadError, ReadableMessage, RoomId, UnixMillis, UserId};
use crate::wire;

pub(crate) async fn find(by: &Identity, request: Search) -> Result<SearchHits, RpcError> {
    by.count(|limits| &limits.searches)?;
    let Some(search) = &by.server.search else {
        return Err(RpcError::new(ErrorCode::NotAvailable, "this server has no search index"));
    };
    let query = parse(&request.query)
        .map_err(|error| RpcError::invalid("query", format!("cannot be run: {error}")))?;
    let cursor = request.cursor.as_deref().map(str::parse::<Place>).transpose()?;
    if let Some(room) = request.room {
        // Refuses strangers in the words of every other method.
        room_answer(by.server.asked(room).readable(by.user).await)?;
    }
    let behind = catch_up(&by.server, search).await.map_err(|error| read_failure(&error))?;
    let limit = request.limit.unwrap_or(HISTORY_PAGE_DEFAULT) as usize;
    let bounds = Bounds {
        rooms: rooms(by, &query, request.room).await?,
        after: query.after.map(UnixMillis::from_u64),
        before: query.before.map(UnixMillis::from_u64),
        cursor,
        // One more than the page tells whether there is another page.
        limit: limit + 1,
    };
    let authors = authors(by, &query).await?;
    let lookup = Lookup { wanted: query.wanted.clone(), authors, bounds };
    let index = search.index.clone();
    let places = by.server.node().blocking(move || index.search(lookup)).await;
    let mut places = places.map_err(|error| {
        tracing::error!(%error, "the search index failed");
        RpcError::from(ErrorCode::Internal)
    })?;
    let is_more = places.len() > limit;
    places.truncate(limit);
    let next = places.last().filter(|_| is_more).map(ToString::to_string);
    let wanted = places.iter().map(|place| (place.room, place.seq)).collect();
    let found = by.server.changes().readable_messages(by.user, wanted).await;
    let found = found.map_err(|error| read_failure(&error))?;
    // A page of long texts takes longer than others may wait for a thread.
    let hits = by.server.node().blocking(move || {
        found.into_iter().filter_map(|message| hit(message, &query.wanted)).collect()
    });
    let hits = hits.await;
    Ok(SearchHits { hits, next, behind: wire::count(behind) })
}

/// Has the index take in everything acknowledged so far, which counts: messages to find, and
/// memberships that ended. Says how many records it lacks.
pub(crate) async fn catch_up(server: &Server, search: &search::Search) -> Result<u64, ReadError> {
    server.changes().barrier().await?;
    let newest = match server.nodes() {
        None => server.changes().stats().applied_lsn,
        Some(_) => server.changes().newest().await?,
    };
    Ok(search.catch_up(newest).await)
}

/// A message as a hit; none if it was changed meanwhile and has the words no more.
fn hit(message: ReadableMessage, wanted: &[Wanted]) -> Option<SearchHit> {
    let shown = highlight::excerpt(&message.text, wanted)?;
    let ReadableMessage { room, seq, user, name, at, .. } = message;
    let (excerpt, highlights) = (shown.text, shown.highlights);
    Some(SearchHit { room, seq, user, name, excerpt, highlights, at })
}

/// The caller's rooms that the search is about.
async fn rooms(
    by: &Identity,
    query: &Query,
    only: Option<RoomId>,
) -> Result<HashSet<RoomId>, RpcError> {
    let mine =
        by.server.directory().rooms_of(by.user).await.map_err(|error| read_failure(&error))?;
    let mut named = HashSet::new();
    let names: Vec<String> = match query.rooms.is_empty() {
        true => Vec::new(),
        false => mine.iter().map(|room| folded(&room.name)).collect(),
    };
    for name in &query.rooms {
        let (id, name_folded) = (name.parse::<RoomId>().ok(), folded(name));
        let is_meant =
            |(room, name): &(&NamedRoom, &String)| Some(room.id) == id || **name == name_folded;
        let before = named.len();
        named.extend(mine.iter().zip(&names).filter(is_meant).map(|(room, _)| room.id));
        if named.len() == before {
            let text = format!("names a room that you are not in: {name}");
            return Err(RpcError::invalid("query", text));
        }
    }
    let is_wanted = |room: &RoomId| {
        only.is_none_or(|only| only == *room) && (query.rooms.is_empty() || named.contains(room))
    };
    Ok(mine.iter().map(|room| room.id).filter(is_wanted).collect())
}

/// The authors that `from:` names.
async fn authors(by: &Identity, query: &Query) -> Result<Option<Vec<UserId>>, RpcError> {
    if query.from.is_empty() {
        return Ok(None);
    }
    let mut authors = Vec::new();
    for name in &query.from {
        if name == "me" {
            authors.push(by.user);
            continue;
        }
        let account = by.server.directory().account_by_name(name.clone()).await;
        let account = account.map_err(|error| read_failure(&error))?;
        let account = account.ok_or_else(|| {
            RpcError::invalid("query", format!("names a user that does not exist: {name}"))
        })?;
        authors.push(account.id);
    }
    Ok(Some(authors))
}

//! A room goes: its members first, who are told; then what was said, what users have of it, its
//! words in the index, and last the room itself.

use std::sync::Arc;

use futures_util::future::join_all;

use super::{DeletionError, Progress};
use crate::chat::user_answer;
use crate::room::RoomCalls;
use crate::search::Search;
use crate::server::Server;
use crate::storage::contract::Erasure;
use crate::storage::{Erased, Offset, RoomId, UserId};
use crate::user::UserCalls;

/// Members told at once; each is a record on the disk and may bring a user into memory.
const MEMBERS_AT_ONCE: u32 = 100;
/// Messages erased in one transaction: some ten milliseconds, for which other writes wait.
const MESSAGES_AT_ONCE: u32 = 1_000;
/// Users whose read states are forgotten in one transaction.
const TRACES_AT_ONCE: usize = 500;

#[derive(Debug)]
pub(super) struct RoomWork {
    room: RoomId,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Members,
    Messages,
    /// Users whose read states and mentions are still there; `None`: not looked for yet.
    Traces(Option<Vec<UserId>>),
    /// Excerpts and names in the streams of users, after this one.
    Streams(Option<(UserId, Offset)>),
    Index,
    Room,
}

impl RoomWork {
    pub(super) fn new(room: RoomId) -> Self {
        Self { room, stage: Stage::Members }
    }

    pub(super) async fn step(&mut self, server: &Arc<Server>) -> Result<Progress, DeletionError> {
        self.stage = match &mut self.stage {
            Stage::Members => members(server, self.room).await?,
            Stage::Messages => {
                match server.erasure().erase_messages(self.room, MESSAGES_AT_ONCE).await? {
                    true => Stage::Messages,
                    false => Stage::Traces(None),
                }
            }
            Stage::Traces(left) => {
                let left = match left.take() {
                    Some(left) => left,
                    None => server.erasure().users_with_traces_of(self.room).await?,
                };
                traces(server, self.room, left).await?
            }
            Stage::Streams(after) => streams(server, self.room, *after).await?,
            Stage::Index => {
                index(server, self.room).await?;
                Stage::Room
            }
            Stage::Room => {
                server.erasure().finish_room_deletion(self.room).await?;
                server.attachments.sweep_soon();
                return Ok(Progress::Done);
            }
        };
        Ok(Progress::More)
    }
}

async fn members(server: &Server, room: RoomId) -> Result<Stage, DeletionError> {
    // Before the first of them: nothing new may be said while the rest is told.
    server.room(room).close().await?;
    let members = server.erasure().members_to_tell(room, MEMBERS_AT_ONCE).await?;
    if members.is_empty() {
        return Ok(Stage::Messages);
    }
    let there = members.iter().filter(|(_, is_there)| *is_there);
    let told = there
        .map(|(user, _)| async move { user_answer(server.user(*user).room_deleted(room).await) });
    for told in join_all(told).await {
        told?;
    }
    let users = members.into_iter().map(|(user, _)| user).collect();
    server.erasure().end_memberships(room, users).await?;
    Ok(Stage::Members)
}

async fn traces(
    server: &Server,
    room: RoomId,
    mut left: Vec<UserId>,
) -> Result<Stage, DeletionError> {
    let now = left.split_off(left.len().saturating_sub(TRACES_AT_ONCE));
    if now.is_empty() {
        return Ok(Stage::Streams(None));
    }
    server.erasure().forget_traces(room, now).await?;
    Ok(Stage::Traces(Some(left)))
}

async fn streams(
    server: &Server,
    room: RoomId,
    after: Option<(UserId, Offset)>,
) -> Result<Stage, DeletionError> {
    let erased = Erased::Room(room);
    let (found, next) = server.erasure().user_events_with(erased, after).await?;
    let mut users: Vec<UserId> = found.iter().map(|(user, _)| *user).collect();
    users.dedup();
    // Before, because what is erased is not found again when somebody cannot be told; and after, for
    // those who have loaded it meanwhile.
    forget(server, &users, erased).await?;
    server.erasure().erase_in_user_events(found, erased).await?;
    forget(server, &users, erased).await?;
    Ok(next.map_or(Stage::Index, |next| Stage::Streams(Some(next))))
}

/// Has users forget it in memory. All are asked, whoever of them cannot be.
async fn forget(server: &Server, users: &[UserId], erased: Erased) -> Result<(), DeletionError> {
    let mut outcome = Ok(());
    for user in users {
        outcome = server.user(*user).forget(erased).await.and(outcome);
    }
    Ok(outcome?)
}

async fn index(server: &Server, room: RoomId) -> Result<(), DeletionError> {
    match &server.search {
        Some(search) => Ok(search.forget_room(room).await?),
        None => {
            let data = server.config.data.clone();
            Ok(server.node().blocking(move || Search::discard(&data)).await?)
        }
    }
}

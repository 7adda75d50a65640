//! An account goes: its memberships first, so that nothing of it is said any more; then its names
//! wherever they stand; if that was wished its messages and reactions; last what only it could see.

use std::sync::Arc;

use folkmoot_protocol::ErrorCode;
use futures_util::StreamExt;
use futures_util::stream;

use super::{DeletionError, Progress};
use crate::attachment::portrait;
use crate::chat::Identity;
use crate::chat::messages;
use crate::room::{Command, RoomCalls};
use crate::server::Server;
use crate::storage::contract::{Directory, Erasure};
use crate::storage::{
    Authority, ControlError, DeviceId, Erased, RoomId, ScanPlace, Seq, Tie, UserId,
};
use crate::user::UserCalls;

/// Deletions of messages under way at once: enough to share a sync of the disk.
const ERASING_AT_ONCE: usize = 64;

#[derive(Debug)]
pub(super) struct AccountWork {
    user: UserId,
    erase: bool,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Connections,
    Memberships,
    Names {
        from: ScanPlace,
        /// Whether any were found since the beginning: then it is looked through again, because
        /// somebody may have quoted the account while its names were being erased.
        is_any_found: bool,
    },
    Messages(Option<(RoomId, Seq)>),
    Reactions,
    Account,
}

impl AccountWork {
    pub(super) fn new(user: UserId, erase: bool) -> Self {
        Self { user, erase, stage: Stage::Connections }
    }

    pub(super) async fn step(&mut self, server: &Arc<Server>) -> Result<Progress, DeletionError> {
        let user = self.user;
        self.stage = match self.stage {
            Stage::Connections => {
                server.user(user).close().await?;
                let account = server.directory().account(user).await?;
                if let Some(picture) = account.and_then(|account| account.picture) {
                    portrait::erase(server, picture).await?;
                }
                Stage::Memberships
            }
            Stage::Memberships => match server.erasure().first_tie(user).await? {
                Some(tie) => {
                    cut(server, user, tie).await?;
                    Stage::Memberships
                }
                None => Stage::Names { from: ScanPlace::Begin, is_any_found: false },
            },
            Stage::Names { from, is_any_found } => self.names(server, from, is_any_found).await?,
            Stage::Messages(after) => match messages(server, user, after).await? {
                Some(next) => Stage::Messages(Some(next)),
                None => Stage::Reactions,
            },
            Stage::Reactions => {
                // Before, because rooms are not found any more afterwards. The user is in none of
                // them by now, and gives no more.
                for room in server.erasure().rooms_with_reactions_of(user).await? {
                    server.room(room).unreact(user).await?;
                }
                server.erasure().erase_reactions(user).await?;
                Stage::Account
            }
            Stage::Account => match server.erasure().finish_account_deletion(user).await? {
                true => {
                    server.attachments.sweep_soon();
                    return Ok(Progress::Done);
                }
                // Somebody let it in while it was on its way out.
                false => Stage::Memberships,
            },
        };
        Ok(Progress::More)
    }

    async fn names(
        &self,
        server: &Server,
        from: ScanPlace,
        is_any_found: bool,
    ) -> Result<Stage, DeletionError> {
        let user = self.user;
        let found = server.erasure().name_places(user, from).await?;
        let is_any_found = is_any_found || !found.is_empty();
        let mut rooms: Vec<RoomId> = found.rooms().collect();
        rooms.dedup();
        let mut users: Vec<UserId> = found.user_events.iter().map(|(user, _)| *user).collect();
        users.dedup();
        let next = found.next;
        // Before, because what is erased is not found again when somebody cannot be told; and after,
        // for those who have loaded it meanwhile.
        unname(server, user, &rooms, &users).await?;
        server.erasure().erase_names(user, found).await?;
        unname(server, user, &rooms, &users).await?;
        Ok(match (next, is_any_found, self.erase) {
            (Some(from), ..) => Stage::Names { from, is_any_found },
            (None, true, _) => Stage::Names { from: ScanPlace::Begin, is_any_found: false },
            (None, false, true) => Stage::Messages(None),
            (None, false, false) => Stage::Account,
        })
    }
}

/// Has these rooms and users forget the names of a user in memory. All are asked, whoever of them
/// cannot be.
async fn unname(
    server: &Server,
    user: UserId,
    rooms: &[RoomId],
    users: &[UserId],
) -> Result<(), DeletionError> {
    let mut outcome = Ok(());
    for room in rooms {
        outcome = server.room(*room).unname(user).await.and(outcome);
    }
    for other in users {
        outcome = server.user(*other).forget(Erased::Names(user)).await.and(outcome);
    }
    Ok(outcome?)
}

/// Takes the user out of a room, after its handing over if need be; a room with nobody else goes
/// too.
async fn cut(server: &Arc<Server>, user: UserId, tie: Tie) -> Result<(), DeletionError> {
    let Tie { room, is_alone, successor } = tie;
    if is_alone {
        let begun = server
            .directory()
            .begin_room_deletion(room, user, Authority::LastMember, server.now())
            .await;
        return match begun {
            Ok(()) | Err(ControlError::NotFound(_)) => Ok(server.room(room).close().await?),
            Err(error) => Err(error.into()),
        };
    }
    apply(server, user, room, Command::Vacate { successor }).await
}

/// Deletes the user's messages of a page; says where the next one begins.
async fn messages(
    server: &Arc<Server>,
    user: UserId,
    after: Option<(RoomId, Seq)>,
) -> Result<Option<(RoomId, Seq)>, DeletionError> {
    let (found, next) = server.erasure().messages_of(user, after).await?;
    let erased = stream::iter(found)
        .map(|(room, seq)| apply(server, user, room, Command::Erase { seq }))
        .buffer_unordered(ERASING_AT_ONCE)
        .collect::<Vec<_>>();
    for erased in erased.await {
        erased?;
    }
    server.attachments.sweep_soon();
    Ok(next)
}

/// Has a room do something in the name of the user. A room that is being deleted itself is passed
/// over.
async fn apply(
    server: &Arc<Server>,
    user: UserId,
    room: RoomId,
    command: Command,
) -> Result<(), DeletionError> {
    let by = Identity::new(server.clone(), user, DeviceId::from_u64(0));
    match messages::apply(&by, room, command).await {
        Ok(_) => Ok(()),
        Err(error) if error.code == ErrorCode::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

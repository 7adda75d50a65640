//! Methods on messages: sending, changing, reading.

use folkmoot_protocol::chat::MessageView;
use folkmoot_protocol::limits::{HISTORY_PAGE_DEFAULT, REACTION_USERS_MAX, REPLY_BYTES_MAX};
use folkmoot_protocol::rpc::{
    HistoryGet, HistoryPage, MessageDelete, MessageEdit, MessageEdited, MessageReact,
    MessageReactions, MessageSend, MessageSent, ReactionUsers, ReactionsPage, ReadSet, ReadState,
    RpcError, TypingSet, encode_payload,
};
use folkmoot_protocol::{ErrorCode, RoomId as WireRoom};

use super::error::{read_failure, room_answer, user_answer};
use super::stream::len_within;
use crate::account::token::random_id;
use crate::chat::Identity;
use crate::open_rooms::Said;
use crate::room::view::Done;
use crate::room::{Command, Request};
use crate::storage::contract::RoomLog;
use crate::storage::{PageAnchor, RoomId};
use crate::user::UserCalls;
use crate::wire;

/// Sends a message; answers once it is durable.
pub(crate) async fn send(by: &Identity, request: MessageSend) -> Result<MessageSent, RpcError> {
    by.count(|limits| &limits.messages)?;
    let files_max = by.server.config.attachments.files_per_message_max;
    if request.attachments.len() > files_max {
        return Err(RpcError::too_large("attachments", files_max, "files"));
    }
    let MessageSend { room, mut key, body, reply_to, attachments } = request;
    if key.is_empty() && by.sends.is_some() {
        // Its sender will not repeat it, but we do if its room is lost.
        key = format!("{:016x}{:016x}", random_id(), random_id());
    }
    let open = by.server.open_rooms();
    let heard = open.map(|_| body.clone());
    let command = Command::Send { key, body, reply_to, attachments };
    let done = match &by.sends {
        None => apply(by, room, command).await?,
        Some(sends) => {
            let request = Request::new(by.user, by.client.clone(), command);
            room_answer(sends.send(&by.server.asked(room), request).await)?
        }
    };
    let seq = done.seq.ok_or(ErrorCode::Internal)?;
    if let Some((open, body)) = open.zip(heard)
        && !done.is_repeat
    {
        open.hear(room, || Said { room, user: by.user, seq, body });
    }
    let (offset, at) = (done.offset, done.at);
    Ok(MessageSent { seq, offset, at, duplicate: done.is_repeat })
}

pub(crate) async fn edit(by: &Identity, request: MessageEdit) -> Result<MessageEdited, RpcError> {
    by.count(|limits| &limits.edits)?;
    let MessageEdit { room, seq, body } = request;
    let done = apply(by, room, Command::Edit { seq, body }).await?;
    Ok(MessageEdited { edited_at: done.at })
}

pub(crate) async fn delete(by: &Identity, request: MessageDelete) -> Result<(), RpcError> {
    by.count(|limits| &limits.edits)?;
    apply(by, request.room, Command::Delete { seq: request.seq }).await?;
    by.server.attachments.sweep_soon();
    Ok(())
}

pub(crate) async fn react(by: &Identity, request: MessageReact) -> Result<(), RpcError> {
    by.count(|limits| &limits.reactions)?;
    let MessageReact { room, seq, emoji, on } = request;
    apply(by, room, Command::React { seq, emoji, on }).await.map(drop)
}

/// Who reacted: counts come with each message, names only where somebody asks.
pub(crate) async fn reactions(
    by: &Identity,
    request: MessageReactions,
) -> Result<ReactionsPage, RpcError> {
    let MessageReactions { room, seq } = request;
    // Also the check that the caller may read here.
    room_answer(by.server.asked(room).summary(by.user).await)?;
    let given = by.server.streams().reactions(room, seq, REACTION_USERS_MAX).await;
    let mut reactions: Vec<ReactionUsers> = Vec::new();
    for (emoji, account) in given.map_err(|error| read_failure(&error))? {
        let user = wire::user_view(account);
        match reactions.last_mut().filter(|last| last.emoji == emoji) {
            Some(last) => last.users.push(user),
            None => reactions.push(ReactionUsers { emoji, users: vec![user] }),
        }
    }
    Ok(ReactionsPage { reactions })
}

/// Has the room carry out a command.
pub(crate) async fn apply(
    by: &Identity,
    room: WireRoom,
    command: Command,
) -> Result<Done, RpcError> {
    room_answer(by.server.asked(room).apply(by.user, by.client.clone(), command).await)
}

pub(crate) async fn history(by: &Identity, request: HistoryGet) -> Result<HistoryPage, RpcError> {
    let room: RoomId = request.room;
    let anchor = match (request.before, request.after, request.around) {
        (Some(seq), _, _) => PageAnchor::Before(seq),
        (_, Some(seq), _) => PageAnchor::After(seq),
        (_, _, Some(seq)) => PageAnchor::Around(seq),
        _ => PageAnchor::Latest,
    };
    let limit = request.limit.unwrap_or(HISTORY_PAGE_DEFAULT);
    // Also the check that the caller may read here.
    let page = match room_answer(by.server.asked(room).page(by.user, anchor, limit).await)? {
        Some(page) => page,
        None => {
            let page = by.server.streams().history(room, anchor, limit, by.user).await;
            page.map_err(|error| read_failure(&error))?
        }
    };
    let messages = page.messages.into_iter();
    let messages = messages.map(|stored| wire::stored_message(room, stored, by.user)).collect();
    Ok(HistoryPage {
        messages: within_reply(messages, anchor),
        first_seq: page.first_seq,
        last_seq: page.last_seq,
    })
}

/// Shortens a page that is too large for one reply, at the end that is further from its anchor.
fn within_reply(mut messages: Vec<MessageView>, anchor: PageAnchor) -> Vec<MessageView> {
    let sizes = messages.iter().map(|message| encode_payload(message).len());
    match anchor {
        PageAnchor::After(_) => {
            let len = len_within(REPLY_BYTES_MAX, sizes);
            messages.truncate(len);
            messages
        }
        PageAnchor::Latest | PageAnchor::Before(_) => {
            let len = len_within(REPLY_BYTES_MAX, sizes.rev());
            messages.split_off(messages.len().saturating_sub(len))
        }
        PageAnchor::Around(seq) => {
            // The one in the middle must stay; half the limit for what leads up to it.
            let middle = messages.partition_point(|message| message.seq < seq);
            let sizes: Vec<usize> = sizes.collect();
            let before = len_within(REPLY_BYTES_MAX / 2, sizes[..middle].iter().rev().copied());
            let after = len_within(REPLY_BYTES_MAX / 2, sizes[middle..].iter().copied());
            messages.truncate(middle + after);
            messages.split_off(middle.saturating_sub(before))
        }
    }
}

/// Moves the read cursor; the user's other devices hear of it.
pub(crate) async fn read(by: &Identity, request: ReadSet) -> Result<ReadState, RpcError> {
    let summary = by.server.asked(request.room).summary(by.user).await;
    let summary = room_answer(summary)?;
    user_answer(by.server.user(by.user).read_up_to(request.seq, summary).await)
}

pub(crate) async fn typing(by: &Identity, request: TypingSet) -> Result<(), RpcError> {
    by.count(|limits| &limits.typing)?;
    room_answer(by.server.asked(request.room).typing(by.user, request.on).await)
}

//! Turns what the store keeps into what clients see. The two sides have their own types, so that
//! a change on the wire never changes a file on disk; this is the only place that knows both.

use folkmoot_protocol::chat;
use folkmoot_protocol::limits::{EXCERPT_CHARS_MAX, REACTIONS_PER_MESSAGE_MAX};

use crate::storage::{
    Account, Attachment, LeaveReason, Message, ModerationAction, ModerationEntry, NamedUser,
    Notify, Quote, Role, RoomEvent, RoomId, RoomRecord, RoomRow, StoredMessage, UnixMillis, UserId,
    UserRow, is_deleted_name,
};

macro_rules! same_variants {
    ($($name:ident { $($variant:ident),+ })*) => {$(
        impl From<chat::$name> for $name {
            fn from(seen: chat::$name) -> Self {
                match seen { $(chat::$name::$variant => Self::$variant,)+ }
            }
        }

        impl From<$name> for chat::$name {
            fn from(stored: $name) -> Self {
                match stored { $($name::$variant => Self::$variant,)+ }
            }
        }
    )*};
}

same_variants! {
    Role { Member, Moderator, Owner }
    LeaveReason { Left, Kicked, Banned, Deleted }
    Notify { All, Mentions, None }
    ModerationAction {
        Kicked, Banned, Unbanned, Muted, Unmuted, RoleSet, MessageDeleted, InviteMade,
        InviteRevoked, RoomArchived, RoomOpened, RoomDeleted, RoomMadeOpen, RoomMadeListed,
        RoomMadeHidden, SetUp, AdministratorMade, AdministratorUnmade, UserDisabled, UserEnabled,
        DevicesSignedOut, ResetLinkMade, PasswordReset, AccountDeleted
    }
}

/// A count for the wire; far beyond any limit it stops rather than wraps.
pub(crate) fn count(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// The event of a room's stream that subscribers get.
pub(crate) fn room_event(record: &RoomRecord) -> chat::RoomEvent {
    let room = record.room;
    let at = record.at;
    match &record.event {
        RoomEvent::Message(message) => {
            chat::RoomEvent::Message(Box::new(message_event(record, message)))
        }
        RoomEvent::Edited { seq, body, mentions } => chat::RoomEvent::Edited {
            room,
            seq: (*seq),
            body: body.clone(),
            edited_at: at,
            mentions: mentions.clone(),
        },
        RoomEvent::Deleted { seq, by } => {
            chat::RoomEvent::Deleted { room, seq: (*seq), by: (*by), at }
        }
        RoomEvent::Reaction { seq, user, emoji, on } => chat::RoomEvent::Reaction {
            room,
            seq: (*seq),
            user: (*user),
            emoji: emoji.clone(),
            on: *on,
        },
        RoomEvent::Joined { user, display_name, role, .. } => chat::RoomEvent::Joined {
            room,
            user: (*user),
            name: display_name.clone(),
            role: (*role).into(),
            at,
        },
        RoomEvent::Left { user, by, reason } => chat::RoomEvent::Left {
            room,
            user: (*user),
            by: by.map(Into::into),
            reason: Some((*reason).into()),
            at,
        },
        RoomEvent::RoleSet { user, role, muted_until, by } => chat::RoomEvent::Role {
            room,
            user: (*user),
            role: (*role).into(),
            muted_until: muted_until.map(Into::into),
            by: (*by),
            at,
        },
        RoomEvent::Expired { up_to } => chat::RoomEvent::Expired { room, up_to: *up_to, at },
        RoomEvent::Pinned { seq, by, on } => {
            chat::RoomEvent::Pinned { room, seq: *seq, by: *by, on: *on, at }
        }
        RoomEvent::Archived { on, by } => {
            chat::RoomEvent::Archived { room, on: *on, by: (*by), at }
        }
        RoomEvent::Described { name, topic, by } => {
            chat::RoomEvent::Room { room, name: name.clone(), topic: topic.clone(), by: (*by), at }
        }
    }
}

fn message_event(record: &RoomRecord, message: &Message) -> chat::MessageEvent {
    chat::MessageEvent {
        room: record.room,
        seq: message.seq,
        offset: record.offset,
        user: message.user,
        name: message.name.clone(),
        body: message.body.clone(),
        at: record.at,
        key: message.key.clone(),
        reply_to: message.reply_to.as_ref().map(reply_ref),
        mentions: message.mentions.clone(),
        mention_all: message.mention_all,
        attachments: message.attachments.iter().map(attachment).collect(),
    }
}

/// A message as `viewer` sees it just after it was sent.
pub(crate) fn fresh_message(
    room: RoomId,
    at: UnixMillis,
    message: &Message,
    viewer: UserId,
) -> chat::MessageView {
    chat::MessageView {
        room,
        seq: message.seq,
        user: message.user,
        name: message.name.clone(),
        body: message.body.clone(),
        at,
        edited_at: None,
        deleted: false,
        pinned: false,
        key: (message.user == viewer && !message.key.is_empty()).then(|| message.key.clone()),
        reply_to: message.reply_to.as_ref().map(reply_ref),
        mentions: message.mentions.clone(),
        mention_all: message.mention_all,
        reactions: Vec::new(),
        attachments: message.attachments.iter().map(attachment).collect(),
    }
}

/// A room's newest message, as a list of rooms shows it: the beginning of its text, and without
/// what it answers, or a page of rooms could be as long as people can write.
pub(crate) fn newest_message(
    room: RoomId,
    at: UnixMillis,
    message: &Message,
    viewer: UserId,
) -> chat::MessageView {
    // Each part by itself: to copy the whole text for its beginning would make a list of rooms cost
    // what people write.
    let excerpt = Message {
        seq: message.seq,
        user: message.user,
        name: message.name.clone(),
        key: message.key.clone(),
        content_hash: message.content_hash,
        body: excerpt(&message.body).to_owned(),
        reply_to: None,
        mentions: Vec::new(),
        mention_all: message.mention_all,
        attachments: message.attachments.clone(),
    };
    fresh_message(room, at, &excerpt, viewer)
}

/// The beginning of a text.
pub(crate) fn excerpt(body: &str) -> &str {
    match body.char_indices().nth(EXCERPT_CHARS_MAX) {
        None => body,
        Some((end, _)) => &body[..end],
    }
}

/// A message of the history as `viewer` sees it.
pub(crate) fn stored_message(
    room: RoomId,
    stored: StoredMessage,
    viewer: UserId,
) -> chat::MessageView {
    let StoredMessage { message, at, edited_at, deleted, reactions, is_pinned, .. } = stored;
    // Rooms refuse more; this also holds for what was stored before they did.
    let reactions = reactions.into_iter().take(REACTIONS_PER_MESSAGE_MAX);
    let reactions = reactions.map(|reaction| chat::Reaction {
        emoji: reaction.emoji,
        count: count(reaction.count),
        mine: reaction.is_mine,
    });
    chat::MessageView {
        edited_at,
        deleted: deleted.is_some(),
        pinned: is_pinned,
        reactions: reactions.collect(),
        ..fresh_message(room, at, &message, viewer)
    }
}

pub(crate) fn attachment(file: &Attachment) -> chat::Attachment {
    let url = format!("/api/v1/attachments/{}", file.id);
    chat::Attachment {
        id: file.id,
        name: file.name.clone(),
        media_type: file.media_type.clone(),
        size: file.size,
        width: file.picture.map(|picture| picture.width),
        height: file.picture.map(|picture| picture.height),
        thumbnail_url: file.picture.map(|_| format!("{url}/thumbnail")),
        url,
    }
}

pub(crate) fn user_view(account: Account) -> chat::UserView {
    if account.is_deleted() {
        return deleted_user(account.id);
    }
    let Account { id, name, display_name, picture, status, .. } = account;
    chat::UserView { id, name, display_name, picture, status, deleted: false }
}

/// A user whose account is deleted, as it is shown wherever its id is left.
pub(crate) fn deleted_user(id: UserId) -> chat::UserView {
    let (name, display_name) = (String::new(), String::new());
    chat::UserView { id, name, display_name, picture: None, status: None, deleted: true }
}

pub(crate) fn admin_user(row: UserRow) -> chat::AdminUser {
    let UserRow { account, disabled_at, devices, seen_at, rooms } = row;
    chat::AdminUser {
        id: account.id,
        name: account.name,
        display_name: account.display_name,
        administrator: account.is_admin,
        disabled_at,
        created_at: account.created_at,
        seen_at,
        devices: count(devices),
        rooms: count(rooms),
    }
}

pub(crate) fn admin_room(row: RoomRow) -> chat::AdminRoom {
    let RoomRow { id, name, topic, created_at, members, messages, bytes, last_at, archived_at } =
        row;
    let members = count(members);
    chat::AdminRoom { id, name, topic, created_at, members, messages, bytes, last_at, archived_at }
}

pub(crate) fn moderation_entry(entry: ModerationEntry) -> chat::ModerationEntry {
    let named = |user: NamedUser| {
        if is_deleted_name(&user.name) {
            return deleted_user(user.id);
        }
        let NamedUser { id, name, display_name } = user;
        chat::UserView { id, name, display_name, picture: None, status: None, deleted: false }
    };
    chat::ModerationEntry {
        id: entry.id,
        at: entry.at,
        by: entry.by.map(named),
        action: entry.action.into(),
        user: entry.user.map(named),
        room: entry.room.map(|(id, name)| chat::NamedRoom { id, name }),
        role: entry.role.map(Into::into),
        until: entry.until,
    }
}

pub(crate) fn reply_ref(quote: &Quote) -> chat::ReplyRef {
    chat::ReplyRef {
        seq: quote.seq,
        user: quote.user,
        name: quote.name.clone(),
        body: quote.body.clone(),
    }
}

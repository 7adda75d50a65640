//! Who may do what in a room. Pure: judges a request against a state, changes nothing.

use folkmoot_protocol::limits::REACTIONS_PER_MESSAGE_MAX;

use super::command::{Archivist, Command, Decision, Refusal, Request};
use super::idempotency::ContentHash;
use super::mentions::{self, Mentions};
use super::state::{Kind, Member, Original, RoomState};
use crate::storage::record::{LeaveReason, Message, Role, RoomEvent};
use crate::storage::{Offset, Seq, UnixMillis, UserId};

const DIRECT_IS_FOR_TWO: &str = "a direct conversation has no roles and no moderation";

pub(super) fn decide(
    room: &RoomState,
    request: &Request,
    now: UnixMillis,
) -> Result<Decision, Refusal> {
    let by = request.by;
    match &request.command {
        Command::Send { .. } => send(room, request, now),
        Command::Edit { seq, body } => edit(room, request, *seq, body, now),
        Command::Delete { seq } => {
            let member = room.member(by)?;
            let original = original(room, request, *seq)?;
            if original.quote.user != by && member.role < Role::Moderator {
                return Err(Refusal::NotAllowed(
                    "only its author or a moderator may delete a message",
                ));
            }
            let unmentioned = original.mentions.clone();
            Ok(Decision::Change { event: RoomEvent::Deleted { seq: *seq, by }, unmentioned })
        }
        Command::React { seq, emoji, on } => {
            speaker(room, by, now)?;
            let original = original(room, request, *seq)?;
            let is_known = original.reactions.iter().any(|known| known == emoji);
            if *on && !is_known && original.reactions.len() >= REACTIONS_PER_MESSAGE_MAX {
                return Err(Refusal::TooManyReactions);
            }
            append(RoomEvent::Reaction { seq: *seq, user: by, emoji: emoji.clone(), on: *on })
        }
        Command::Admit { name, display_name, role } => {
            if room.members.contains_key(&by) {
                return Ok(Decision::Nothing);
            }
            may_come(room, by)?;
            let (name, display_name, role) = (name.clone(), display_name.clone(), *role);
            append(RoomEvent::Joined { user: by, name, display_name, role })
        }
        Command::Leave => leave(room, by),
        Command::Kick { user } => {
            above(room, by, *user, "kick")?;
            append(RoomEvent::Left { user: *user, by: Some(by), reason: LeaveReason::Kicked })
        }
        Command::Ban { user, on } => ban(room, by, *user, *on),
        Command::Mute { user, until } => {
            let member = above(room, by, *user, "mute")?;
            if member.muted_until == *until {
                return Ok(Decision::Nothing);
            }
            append(RoomEvent::RoleSet { user: *user, role: member.role, muted_until: *until, by })
        }
        Command::SetRole { user, role } => set_role(room, by, *user, *role),
        Command::Update { name, topic } => {
            not_direct(room)?;
            if room.member(by)?.role < Role::Moderator {
                return Err(Refusal::NotAllowed("only moderators may change the room"));
            }
            if room.is_archived {
                return Err(Refusal::Archived);
            }
            let name = name.clone().unwrap_or_else(|| room.name.clone());
            let topic = topic.clone().unwrap_or_else(|| room.topic.clone());
            if name == room.name && topic == room.topic {
                return Ok(Decision::Nothing);
            }
            append(RoomEvent::Described { name, topic, by })
        }
        Command::Archive { on, by: right } => archive(room, by, *on, *right),
        Command::Vacate { successor } => vacate(room, by, *successor),
        Command::Erase { seq } => erase(room, request, *seq),
    }
}

fn archive(room: &RoomState, by: UserId, on: bool, right: Archivist) -> Result<Decision, Refusal> {
    not_direct(room)?;
    if right == Archivist::Owner && room.member(by)?.role != Role::Owner {
        return Err(Refusal::NotAllowed("only owners may archive the room or open it again"));
    }
    match room.is_archived == on {
        true => Ok(Decision::Nothing),
        false => append(RoomEvent::Archived { on, by }),
    }
}

/// One thing at a time, and asked again until nothing is left to do: so it goes on after a crash.
fn vacate(room: &RoomState, by: UserId, successor: Option<UserId>) -> Result<Decision, Refusal> {
    let Ok(member) = room.member(by) else { return Ok(Decision::Nothing) };
    let is_only_owner = member.role == Role::Owner && room.owners() == 1;
    if let Some(user) = successor.filter(|_| is_only_owner)
        && let Ok(Member { muted_until, .. }) = room.member(user)
    {
        let (role, muted_until) = (Role::Owner, *muted_until);
        return append(RoomEvent::RoleSet { user, role, muted_until, by });
    }
    append(RoomEvent::Left { user: by, by: None, reason: LeaveReason::Deleted })
}

fn erase(room: &RoomState, request: &Request, seq: Seq) -> Result<Decision, Refusal> {
    let original = match original(room, request, seq) {
        Ok(original) => original,
        Err(Refusal::NoMessage(_)) => return Ok(Decision::Nothing),
        Err(refusal) => return Err(refusal),
    };
    if original.quote.user != request.by {
        return Err(Refusal::NotAllowed("only what its author has written is erased"));
    }
    let unmentioned = original.mentions.clone();
    Ok(Decision::Change { event: RoomEvent::Deleted { seq, by: request.by }, unmentioned })
}

fn edit(
    room: &RoomState,
    request: &Request,
    seq: Seq,
    body: &str,
    now: UnixMillis,
) -> Result<Decision, Refusal> {
    let by = request.by;
    speaker(room, by, now)?;
    let original = original(room, request, seq)?;
    if original.quote.user != by {
        return Err(Refusal::NotAllowed("only its author may edit a message"));
    }
    let mentions = mentions_of(room, by, body).users;
    let before = original.mentions.iter().copied();
    let unmentioned = before.filter(|user| !mentions.contains(user)).collect();
    let event = RoomEvent::Edited { seq, body: body.to_owned(), mentions };
    Ok(Decision::Change { event, unmentioned })
}

/// Whether somebody who is no member may become one.
fn may_come(room: &RoomState, user: UserId) -> Result<(), Refusal> {
    if room.banned.contains(&user) {
        return Err(Refusal::Banned);
    }
    if room.is_archived {
        return Err(Refusal::Archived);
    }
    // Nobody is left who could have wanted it: an invite of long ago must not make a stranger the
    // owner of what others said.
    let is_fresh = room.offset == Offset::from_u64(0);
    if room.kind == Kind::Room && room.members.is_empty() && !is_fresh {
        return Err(Refusal::NotAllowed("everybody has left this room"));
    }
    Ok(())
}

fn append(event: RoomEvent) -> Result<Decision, Refusal> {
    Ok(Decision::Append(event))
}

fn send(room: &RoomState, request: &Request, now: UnixMillis) -> Result<Decision, Refusal> {
    let Command::Send { key, body, reply_to, attachments } = &request.command else {
        return Err(Refusal::NotAllowed("not a send"));
    };
    let by = request.by;
    let member = room.member(by)?;
    let content = ContentHash::of(body, *reply_to, attachments);
    // Before the mute: a retry asks what became of the first try, it does not speak again.
    if let Some(first) = room.keys.get(by, key) {
        return match first.content == content {
            true => Ok(Decision::Repeat(first)),
            false => Err(Refusal::KeyReused { first: first.seq }),
        };
    }
    speaker(room, by, now)?;
    let reply_to = match reply_to {
        Some(seq) => Some(original(room, request, *seq)?.quote.clone()),
        None => None,
    };
    let attachments = room.uploads.named(by, attachments, now)?;
    let Mentions { users, everyone } = mentions_of(room, by, body);
    append(RoomEvent::Message(Message {
        seq: room.last_seq.next(),
        user: by,
        name: member.display_name.clone(),
        key: key.clone(),
        content_hash: content.0,
        body: body.clone(),
        reply_to,
        mentions: users,
        mention_all: everyone && member.role >= Role::Moderator,
        attachments,
    }))
}

/// A member who may write: the room is not archived, they are not muted at `now`, nor blocked by the other one of a direct conversation.
pub(super) fn speaker(room: &RoomState, by: UserId, now: UnixMillis) -> Result<&Member, Refusal> {
    let member = room.member(by)?;
    if room.is_archived {
        return Err(Refusal::Archived);
    }
    if room.kind == Kind::Direct && room.members.len() < 2 {
        return Err(Refusal::PeerDeleted);
    }
    if room.blockers.iter().any(|blocker| *blocker != by) {
        return Err(Refusal::Blocked);
    }
    match member.muted_until {
        Some(until) if until > now => Err(Refusal::Muted { until }),
        _ => Ok(member),
    }
}

fn mentions_of(room: &RoomState, by: UserId, body: &str) -> Mentions<UserId> {
    mentions::extract(body, |name| room.user_named(name).filter(|user| *user != by))
}

/// The message a request is about, from memory or as the request brings it.
fn original<'a>(
    room: &'a RoomState,
    request: &'a Request,
    seq: Seq,
) -> Result<&'a Original, Refusal> {
    if seq == Seq::from_u64(0) || seq > room.last_seq {
        return Err(Refusal::NoMessage(seq));
    }
    let original = room
        .recent(seq)
        .or(request.original.as_ref().filter(|original| original.quote.seq == seq))
        .ok_or(Refusal::Unloaded(seq))?;
    if original.deleted { Err(Refusal::NoMessage(seq)) } else { Ok(original) }
}

fn leave(room: &RoomState, by: UserId) -> Result<Decision, Refusal> {
    not_direct(room)?;
    let member = room.member(by)?;
    if member.role == Role::Owner && room.owners() == 1 && room.members.len() > 1 {
        return Err(Refusal::NotAllowed("the last owner names another one before leaving"));
    }
    append(RoomEvent::Left { user: by, by: None, reason: LeaveReason::Left })
}

fn ban(room: &RoomState, by: UserId, user: UserId, on: bool) -> Result<Decision, Refusal> {
    moderator(room, by, "ban")?;
    if room.banned.contains(&user) == on {
        return Ok(Decision::Nothing);
    }
    if room.members.contains_key(&user) {
        above(room, by, user, "ban")?;
        return append(RoomEvent::Left { user, by: Some(by), reason: LeaveReason::Banned });
    }
    Ok(Decision::Ban { user, on })
}

fn set_role(room: &RoomState, by: UserId, user: UserId, role: Role) -> Result<Decision, Refusal> {
    not_direct(room)?;
    if room.member(by)?.role != Role::Owner {
        return Err(Refusal::NotAllowed("only owners may set roles"));
    }
    let member = room.members.get(&user).ok_or(Refusal::NoSuchMember)?;
    if member.role == role {
        return Ok(Decision::Nothing);
    }
    if member.role == Role::Owner && room.owners() == 1 {
        return Err(Refusal::NotAllowed("a room keeps at least one owner"));
    }
    append(RoomEvent::RoleSet { user, role, muted_until: member.muted_until, by })
}

fn moderator(room: &RoomState, by: UserId, verb: &'static str) -> Result<Role, Refusal> {
    not_direct(room)?;
    let role = room.member(by)?.role;
    match (role, verb) {
        (Role::Member, "kick") => Err(Refusal::NotAllowed("only moderators may kick")),
        (Role::Member, "mute") => Err(Refusal::NotAllowed("only moderators may mute")),
        (Role::Member, _) => Err(Refusal::NotAllowed("only moderators may ban")),
        _ => Ok(role),
    }
}

/// The member `user`, if `by` stands above: a moderator over members, an owner over both.
fn above<'a>(
    room: &'a RoomState,
    by: UserId,
    user: UserId,
    verb: &'static str,
) -> Result<&'a Member, Refusal> {
    let role = moderator(room, by, verb)?;
    let member = room.members.get(&user).ok_or(Refusal::NoSuchMember)?;
    match member.role < role {
        true => Ok(member),
        false => Err(Refusal::NotAllowed("they have the same or a higher role")),
    }
}

fn not_direct(room: &RoomState) -> Result<(), Refusal> {
    match room.kind {
        Kind::Direct => Err(Refusal::NotAllowed(DIRECT_IS_FOR_TWO)),
        Kind::Room => Ok(()),
    }
}

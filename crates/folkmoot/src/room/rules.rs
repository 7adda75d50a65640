//! Who may do what in a room. Pure: judges a request against a state, changes nothing.

use folkmoot_protocol::limits::{PINS_PER_ROOM_MAX, REACTIONS_PER_MESSAGE_MAX};

use super::command::{Archivist, Command, Decision, Refusal, Request};
use super::idempotency::ContentHash;
use super::mentions::{self, Mentions};
use super::people::{Missing, Stands};
use super::state::{Kind, Original, RoomState};
use crate::storage::record::{LeaveReason, Message, Role, RoomEvent};
use crate::storage::{Offset, Rights, Seq, Standing, UnixMillis, UserId};

const DIRECT_IS_FOR_TWO: &str = "a direct conversation has no roles and no moderation";

pub(super) fn decide(
    room: &RoomState,
    request: &Request,
    now: UnixMillis,
) -> Result<Decision, Refusal> {
    let by = request.by;
    let missing = missing(room, request);
    if !missing.is_empty() {
        return Err(Refusal::Unloaded(Box::new(missing)));
    }
    match &request.command {
        Command::Send { .. } => send(room, request, now),
        Command::Edit { seq, body } => edit(room, request, *seq, body, now),
        Command::Delete { seq } => delete(room, request, *seq),
        Command::React { seq, emoji, on } => {
            speaker(room, by, now)?;
            let original = original(room, request, *seq)?;
            let is_known = original.reactions.iter().any(|known| known == emoji);
            if *on && !is_known && original.reactions.len() >= REACTIONS_PER_MESSAGE_MAX {
                return Err(Refusal::TooManyReactions);
            }
            append(RoomEvent::Reaction { seq: *seq, user: by, emoji: emoji.clone(), on: *on })
        }
        Command::Pin { seq, on } => pin(room, request, *seq, *on, now),
        Command::Admit { name, display_name, role } => {
            if room.standing(by)?.rights.is_some() {
                return Ok(Decision::Nothing);
            }
            may_come(room, by)?;
            let (name, display_name, role) = (name.clone(), display_name.clone(), *role);
            append(RoomEvent::Joined { user: by, name, display_name, role })
        }
        Command::Stay => room.member(by).map(|_| Decision::Nothing),
        Command::Leave => leave(room, by),
        Command::Kick { user } => {
            above(room, by, *user, "kick")?;
            append(RoomEvent::Left { user: *user, by: Some(by), reason: LeaveReason::Kicked })
        }
        Command::Ban { user, on } => ban(room, by, *user, *on),
        Command::Mute { user, until } => {
            let (role, muted_until) = above(room, by, *user, "mute")?;
            if muted_until == *until {
                return Ok(Decision::Nothing);
            }
            append(RoomEvent::RoleSet { user: *user, role, muted_until: *until, by })
        }
        Command::SetRole { user, role } => set_role(room, by, *user, *role),
        Command::Update { name, topic } => {
            not_direct(room)?;
            if room.member(by)?.role() < Some(Role::Moderator) {
                return Err(Refusal::not_allowed("only moderators may change the room"));
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

/// In a room its moderators keep the list; two people keep theirs together.
fn pin(
    room: &RoomState,
    request: &Request,
    seq: Seq,
    on: bool,
    now: UnixMillis,
) -> Result<Decision, Refusal> {
    let by = request.by;
    let member = speaker(room, by, now)?;
    if room.kind == Kind::Room && member.role() < Some(Role::Moderator) {
        return Err(Refusal::not_allowed("only moderators may pin messages"));
    }
    original(room, request, seq)?;
    if room.pins.contains(&seq) == on {
        return Ok(Decision::Nothing);
    }
    if on && room.pins.len() >= PINS_PER_ROOM_MAX as usize {
        return Err(Refusal::TooManyPins);
    }
    append(RoomEvent::Pinned { seq, by, on })
}

fn archive(room: &RoomState, by: UserId, on: bool, right: Archivist) -> Result<Decision, Refusal> {
    not_direct(room)?;
    if right == Archivist::Owner && room.member(by)?.role() != Some(Role::Owner) {
        return Err(Refusal::not_allowed("only owners may archive the room or open it again"));
    }
    match room.is_archived == on {
        true => Ok(Decision::Nothing),
        false => append(RoomEvent::Archived { on, by }),
    }
}

/// One thing at a time, and asked again until nothing is left to do: so it goes on after a crash.
fn vacate(room: &RoomState, by: UserId, successor: Option<UserId>) -> Result<Decision, Refusal> {
    let Some(rights) = room.standing(by)?.rights else { return Ok(Decision::Nothing) };
    let is_only_owner = rights.role == Role::Owner && room.owners == 1;
    if let Some(user) = successor.filter(|_| is_only_owner)
        && let Some(Rights { muted_until, .. }) = room.standing(user)?.rights
    {
        let role = Role::Owner;
        return append(RoomEvent::RoleSet { user, role, muted_until, by });
    }
    append(RoomEvent::Left { user: by, by: None, reason: LeaveReason::Deleted })
}

fn delete(room: &RoomState, request: &Request, seq: Seq) -> Result<Decision, Refusal> {
    let by = request.by;
    let member = room.member(by)?;
    let original = original(room, request, seq)?;
    if original.quote.user != by && member.role() < Some(Role::Moderator) {
        return Err(Refusal::not_allowed("only its author or a moderator may delete a message"));
    }
    let unmentioned = original.mentions.clone();
    Ok(Decision::Change { event: RoomEvent::Deleted { seq, by }, unmentioned })
}

fn erase(room: &RoomState, request: &Request, seq: Seq) -> Result<Decision, Refusal> {
    let original = match original(room, request, seq) {
        Ok(original) => original,
        Err(Refusal::NoMessage(_)) => return Ok(Decision::Nothing),
        Err(refusal) => return Err(refusal),
    };
    if original.quote.user != request.by {
        return Err(Refusal::not_allowed("only what its author has written is erased"));
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
        return Err(Refusal::not_allowed("only its author may edit a message"));
    }
    let mentions = mentions_of(room, request, body).users;
    let before = original.mentions.iter().copied();
    let unmentioned = before.filter(|user| !mentions.contains(user)).collect();
    let event = RoomEvent::Edited { seq, body: body.to_owned(), mentions };
    Ok(Decision::Change { event, unmentioned })
}

/// Whether somebody who is no member may become one.
pub(super) fn may_come(room: &RoomState, user: UserId) -> Result<(), Refusal> {
    if room.standing(user)?.is_banned {
        return Err(Refusal::Banned);
    }
    if room.is_archived {
        return Err(Refusal::Archived);
    }
    // Nobody is left who could have wanted it: an invite of long ago must not make a stranger the
    // owner of what others said.
    let is_fresh = room.offset == Offset::from_u64(0);
    if room.kind == Kind::Room && room.members == 0 && !is_fresh {
        return Err(Refusal::not_allowed("everybody has left this room"));
    }
    Ok(())
}

fn append(event: RoomEvent) -> Result<Decision, Refusal> {
    Ok(Decision::Append(event))
}

fn send(room: &RoomState, request: &Request, now: UnixMillis) -> Result<Decision, Refusal> {
    let Command::Send { key, body, reply_to, attachments } = &request.command else {
        return Err(Refusal::not_allowed("not a send"));
    };
    let by = request.by;
    let member = room.member(by)?;
    let content = ContentHash::of(body, *reply_to, attachments);
    // Before the mute: a retry asks what became of the first try, it does not speak again.
    if let Some(first) = room.people.keys(by).and_then(|keys| keys.get(key)) {
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
    let Mentions { users, everyone } = mentions_of(room, request, body);
    append(RoomEvent::Message(Message {
        seq: room.last_seq.next(),
        user: by,
        name: member.display_name.clone(),
        key: key.clone(),
        content_hash: content.0,
        body: body.clone(),
        reply_to,
        mentions: users,
        mention_all: everyone && member.role() >= Some(Role::Moderator),
        attachments,
    }))
}

/// A member who may write: the room is not archived, they are not muted at `now`, nor blocked by
/// the other one of a direct conversation.
pub(super) fn speaker(room: &RoomState, by: UserId, now: UnixMillis) -> Result<&Standing, Refusal> {
    let member = room.member(by)?;
    if room.is_archived {
        return Err(Refusal::Archived);
    }
    if room.kind == Kind::Direct && room.members < 2 {
        return Err(Refusal::PeerDeleted);
    }
    if room.blockers.iter().any(|blocker| *blocker != by) {
        return Err(Refusal::Blocked);
    }
    match member.muted_until() {
        Some(until) if until > now => Err(Refusal::Muted { until }),
        _ => Ok(member),
    }
}

fn mentions_of(room: &RoomState, request: &Request, body: &str) -> Mentions<UserId> {
    let by = request.by;
    mentions::extract(body, |name| {
        let (_, user) = request.named.iter().flatten().find(|(known, _)| known == name)?;
        (room.role(*user).is_some() && *user != by).then_some(*user)
    })
}

/// What the room has to be told before it can judge a request; all of it at once.
fn missing(room: &RoomState, request: &Request) -> Missing {
    let (by, command) = (request.by, &request.command);
    let named = request.named.iter().flatten().map(|(_, user)| *user);
    let wanted = [Some(by), command.target()].into_iter().flatten().chain(named);
    let mut people: Vec<UserId> = Vec::new();
    for user in wanted {
        if room.people.standing(user).is_none() && !people.contains(&user) {
            people.push(user);
        }
    }
    let has_key = matches!(command, Command::Send { key, .. } if !key.is_empty());
    let keys_of = (has_key && room.people.keys(by).is_none()).then_some(by);
    let is_here = |seq: &Seq| *seq >= room.first_seq && *seq <= room.last_seq;
    let is_brought = |seq: &Seq| {
        let brought = request.original.as_ref();
        brought.is_some_and(|original| original.quote.seq == *seq)
    };
    let original = command.about().filter(is_here);
    let original = original.filter(|seq| room.recent(*seq).is_none() && !is_brought(seq));
    let names = match (&request.named, command.body()) {
        (None, Some(body)) => mentions::names(body),
        _ => Vec::new(),
    };
    Missing { as_of: room.people.as_of(), people, keys_of, names, original }
}

/// The message a request is about, from memory or as the request brings it.
fn original<'a>(
    room: &'a RoomState,
    request: &'a Request,
    seq: Seq,
) -> Result<&'a Original, Refusal> {
    // Below the first that is kept, also when it was read just before it went.
    if seq < room.first_seq || seq > room.last_seq {
        return Err(Refusal::NoMessage(seq));
    }
    let original = room
        .recent(seq)
        .or(request.original.as_ref().filter(|original| original.quote.seq == seq))
        .ok_or(Refusal::NoMessage(seq))?;
    if original.deleted { Err(Refusal::NoMessage(seq)) } else { Ok(original) }
}

fn leave(room: &RoomState, by: UserId) -> Result<Decision, Refusal> {
    not_direct(room)?;
    let member = room.member(by)?;
    if member.role() == Some(Role::Owner) && room.owners == 1 && room.members > 1 {
        return Err(Refusal::not_allowed("the last owner names another one before leaving"));
    }
    append(RoomEvent::Left { user: by, by: None, reason: LeaveReason::Left })
}

fn ban(room: &RoomState, by: UserId, user: UserId, on: bool) -> Result<Decision, Refusal> {
    moderator(room, by, "ban")?;
    let standing = room.standing(user)?;
    if standing.is_banned == on {
        return Ok(Decision::Nothing);
    }
    // What is stored of them would stay, for any number that somebody makes up.
    if on && standing.name.is_empty() {
        return Err(Refusal::NoSuchUser);
    }
    if standing.rights.is_some() {
        above(room, by, user, "ban")?;
        return append(RoomEvent::Left { user, by: Some(by), reason: LeaveReason::Banned });
    }
    Ok(Decision::Ban { user, on })
}

fn set_role(room: &RoomState, by: UserId, user: UserId, role: Role) -> Result<Decision, Refusal> {
    not_direct(room)?;
    if room.member(by)?.role() != Some(Role::Owner) {
        return Err(Refusal::not_allowed("only owners may set roles"));
    }
    let rights = room.standing(user)?.rights.ok_or(Refusal::NoSuchMember)?;
    if rights.role == role {
        return Ok(Decision::Nothing);
    }
    if rights.role == Role::Owner && room.owners == 1 {
        return Err(Refusal::not_allowed("a room keeps at least one owner"));
    }
    append(RoomEvent::RoleSet { user, role, muted_until: rights.muted_until, by })
}

fn moderator(room: &RoomState, by: UserId, verb: &'static str) -> Result<Role, Refusal> {
    not_direct(room)?;
    let role = room.member(by)?.role().ok_or(Refusal::NotMember)?;
    match (role, verb) {
        (Role::Member, "kick") => Err(Refusal::not_allowed("only moderators may kick")),
        (Role::Member, "mute") => Err(Refusal::not_allowed("only moderators may mute")),
        (Role::Member, _) => Err(Refusal::not_allowed("only moderators may ban")),
        _ => Ok(role),
    }
}

/// Role and mute of the member `user`, if `by` stands above: a moderator over members, an owner
/// over both.
fn above(
    room: &RoomState,
    by: UserId,
    user: UserId,
    verb: &'static str,
) -> Result<(Role, Option<UnixMillis>), Refusal> {
    let role = moderator(room, by, verb)?;
    let rights = room.standing(user)?.rights.ok_or(Refusal::NoSuchMember)?;
    match rights.role < role {
        true => Ok((rights.role, rights.muted_until)),
        false => Err(Refusal::not_allowed("they have the same or a higher role")),
    }
}

fn not_direct(room: &RoomState) -> Result<(), Refusal> {
    match room.kind {
        Kind::Direct => Err(Refusal::not_allowed(DIRECT_IS_FOR_TWO)),
        Kind::Room => Ok(()),
    }
}

//! The promises of a room's rules and numbers.

use proptest::prelude::*;

use super::*;
use crate::room::command::{Archivist, Command};
use crate::room::mentions;
use crate::room::people::Facts;
use folkmoot_protocol::limits::EXCERPT_CHARS_MAX;

pub(super) const ANNA: UserId = UserId::from_u64(1);
pub(super) const BOB: UserId = UserId::from_u64(2);
pub(super) const CARA: UserId = UserId::from_u64(3);
pub(super) const DORA: UserId = UserId::from_u64(4);

pub(super) fn at(ms: u64) -> UnixMillis {
    UnixMillis::from_u64(ms)
}

pub(super) fn seq(n: u64) -> Seq {
    Seq::from_u64(n)
}

fn request(by: UserId, command: Command) -> Request {
    let people = [("anna", ANNA), ("bob", BOB), ("cara", CARA), ("dora", DORA)];
    let names = command.body().map(mentions::names).unwrap_or_default();
    let named = people.iter().filter(|(name, _)| names.iter().any(|known| known == name));
    let named = named.map(|(name, user)| ((*name).to_owned(), *user)).collect();
    Request { named: Some(named), ..Request::new(by, None, command) }
}

/// Judges a request; answers what the room asks for as a store would in which nobody but those
/// whom the room remembers has ever done anything.
fn judge(room: &mut RoomState, request: &Request, now: UnixMillis) -> Result<Decision, Refusal> {
    match room.decide(request, now) {
        Err(Refusal::Unloaded(missing)) if missing.original.is_none() => {
            let people = missing.people.iter().map(|user| Standing {
                user: *user,
                name: format!("u{user}"),
                display_name: String::new(),
                rights: None,
                is_banned: false,
                kept_mute: None,
            });
            let keys = missing.keys_of.map(|sender| (sender, Vec::new()));
            let people = people.collect();
            room.people.take_in(Facts { as_of: missing.as_of, people, keys });
            room.decide(request, now)
        }
        judged => judged,
    }
}

fn send(key: &str, body: &str) -> Command {
    Command::Send { key: key.into(), body: body.into(), reply_to: None, attachments: Vec::new() }
}

pub(super) fn admit(name: &str, role: Role) -> Command {
    Command::Admit { name: name.into(), display_name: name.to_uppercase(), role }
}

/// Anna owns, Bob moderates, Cara is a member; Dora is outside.
pub(super) fn room() -> RoomState {
    let mut room = RoomState::new(RoomId::from_u64(9), Kind::Room, "hall".into(), "".into(), 1);
    for (user, name, role) in
        [(ANNA, "anna", Role::Owner), (BOB, "bob", Role::Moderator), (CARA, "cara", Role::Member)]
    {
        run(&mut room, user, admit(name, role)).unwrap();
    }
    room
}

/// Decides and commits at time 0.
pub(super) fn run(
    room: &mut RoomState,
    by: UserId,
    command: Command,
) -> Result<Option<RoomRecord>, Refusal> {
    run_at(room, by, command, 0)
}

fn run_at(
    room: &mut RoomState,
    by: UserId,
    command: Command,
    now: u64,
) -> Result<Option<RoomRecord>, Refusal> {
    match judge(room, &request(by, command), at(now))? {
        Decision::Append(event) | Decision::Change { event, .. } => {
            Ok(Some(room.commit(event, at(now))))
        }
        Decision::Ban { user, on } => {
            room.set_banned(user, on);
            Ok(None)
        }
        Decision::Repeat(_) | Decision::Nothing => Ok(None),
    }
}

pub(super) fn post(room: &mut RoomState, by: UserId, key: &str, body: &str) -> Message {
    match run(room, by, send(key, body)).unwrap().unwrap().event {
        RoomEvent::Message(message) => message,
        other => panic!("not a post: {other:?}"),
    }
}

#[test]
fn messages_and_events_are_numbered_from_one_without_gaps() {
    let mut room = room();
    assert_eq!(room.offset.as_u64(), 3);
    assert_eq!(post(&mut room, CARA, "a", "hi").seq, seq(1));
    assert_eq!(post(&mut room, BOB, "a", "hi").seq, seq(2));
    assert_eq!(room.offset.as_u64(), 5);
}

#[test]
fn a_retry_is_answered_with_the_first_number_and_other_content_is_refused() {
    let mut room = room();
    let first = post(&mut room, CARA, "k", "hi");
    let again = judge(&mut room, &request(CARA, send("k", "hi")), at(1)).unwrap();
    assert!(matches!(again, Decision::Repeat(send) if send.seq == first.seq));
    let other = judge(&mut room, &request(CARA, send("k", "ho")), at(1));
    assert_eq!(other, Err(Refusal::KeyReused { first: seq(1) }));
}

#[test]
fn a_muted_member_still_learns_that_the_first_try_arrived() {
    let mut room = room();
    post(&mut room, CARA, "k", "hi");
    run(&mut room, BOB, Command::Mute { user: CARA, until: Some(at(10)) }).unwrap();
    let retry = judge(&mut room, &request(CARA, send("k", "hi")), at(1)).unwrap();
    assert!(matches!(retry, Decision::Repeat(_)));
    let fresh = judge(&mut room, &request(CARA, send("l", "hi")), at(1));
    assert_eq!(fresh, Err(Refusal::Muted { until: at(10) }));
    assert!(run_at(&mut room, CARA, send("l", "hi"), 10).is_ok());
}

#[test]
fn outsiders_can_do_nothing() {
    let mut room = room();
    for command in [
        send("k", "hi"),
        Command::Delete { seq: seq(1) },
        Command::Leave,
        Command::Kick { user: CARA },
        Command::Ban { user: CARA, on: true },
        Command::SetRole { user: CARA, role: Role::Owner },
        Command::Update { name: Some("x".into()), topic: None },
    ] {
        assert_eq!(run(&mut room, DORA, command), Err(Refusal::NotMember));
    }
}

#[test]
fn only_the_author_edits_and_author_or_moderator_delete() {
    let mut room = room();
    post(&mut room, CARA, "k", "hi");
    let edit = || Command::Edit { seq: seq(1), body: "ho".into() };
    assert!(matches!(run(&mut room, ANNA, edit()), Err(Refusal::NotAllowed(_))));
    assert!(run(&mut room, CARA, edit()).unwrap().is_some());
    assert_eq!(room.recent(seq(1)).unwrap().quote.body, "ho");
    post(&mut room, BOB, "k", "mine");
    let delete = |n| Command::Delete { seq: seq(n) };
    assert!(matches!(run(&mut room, CARA, delete(2)), Err(Refusal::NotAllowed(_))));
    assert!(run(&mut room, BOB, delete(1)).unwrap().is_some());
    assert_eq!(run(&mut room, CARA, edit()), Err(Refusal::NoMessage(seq(1))));
    assert_eq!(run(&mut room, CARA, delete(3)), Err(Refusal::NoMessage(seq(3))));
    assert_eq!(run(&mut room, CARA, delete(0)), Err(Refusal::NoMessage(seq(0))));
}

#[test]
fn an_old_message_must_be_brought_along() {
    let mut room = room();
    for n in 0..=RECENT_LEN {
        post(&mut room, CARA, &n.to_string(), "hi");
    }
    let mut edit = request(CARA, Command::Edit { seq: seq(1), body: "ho".into() });
    let asked = judge(&mut room, &edit, at(0));
    let is_asked =
        matches!(asked, Err(Refusal::Unloaded(missing)) if missing.original == Some(seq(1)));
    assert!(is_asked, "the message is brought along");
    let quote = Quote { seq: seq(1), user: CARA, name: "cara".into(), body: "hi".into() };
    edit.original =
        Some(Original { quote, deleted: false, reactions: Vec::new(), mentions: Vec::new() });
    assert!(matches!(judge(&mut room, &edit, at(0)), Ok(Decision::Change { .. })));
    // Memory knows better than what was brought.
    edit.command = Command::Edit { seq: seq(2), body: "ho".into() };
    assert!(matches!(judge(&mut room, &edit, at(0)), Ok(Decision::Change { .. })));
}

#[test]
fn a_reply_quotes_what_it_answers() {
    let mut room = room();
    post(&mut room, CARA, "k", &"long ".repeat(100));
    let reply = Command::Send {
        key: "r".into(),
        body: "yes".into(),
        reply_to: Some(seq(1)),
        attachments: Vec::new(),
    };
    let Some(RoomRecord { event: RoomEvent::Message(reply), .. }) =
        run(&mut room, BOB, reply).unwrap()
    else {
        panic!("no reply")
    };
    let quote = reply.reply_to.unwrap();
    assert_eq!((quote.user, quote.seq), (CARA, seq(1)));
    assert_eq!(quote.body.chars().count(), EXCERPT_CHARS_MAX);
}

#[test]
fn moderation_works_downwards_only() {
    let mut room = room();
    let kick = |user| Command::Kick { user };
    assert!(matches!(run(&mut room, CARA, kick(BOB)), Err(Refusal::NotAllowed(_))));
    assert!(matches!(run(&mut room, BOB, kick(ANNA)), Err(Refusal::NotAllowed(_))));
    assert!(matches!(run(&mut room, BOB, kick(BOB)), Err(Refusal::NotAllowed(_))));
    assert_eq!(run(&mut room, BOB, kick(DORA)), Err(Refusal::NoSuchMember));
    assert!(run(&mut room, BOB, kick(CARA)).unwrap().is_some());
    assert!(run(&mut room, ANNA, kick(BOB)).unwrap().is_some());
    assert_eq!(room.members, 1);
}

#[test]
fn a_ban_keeps_out_until_it_is_lifted() {
    let mut room = room();
    let admit = || admit("cara", Role::Member);
    run(&mut room, BOB, Command::Ban { user: CARA, on: true }).unwrap();
    assert_eq!(run(&mut room, CARA, admit()), Err(Refusal::Banned));
    assert_eq!(run(&mut room, BOB, Command::Ban { user: CARA, on: true }), Ok(None));
    run(&mut room, BOB, Command::Ban { user: CARA, on: false }).unwrap();
    assert!(run(&mut room, CARA, admit()).unwrap().is_some());
    assert_eq!(run(&mut room, CARA, admit()), Ok(None));
}

#[test]
fn a_room_keeps_an_owner() {
    let mut room = room();
    assert!(matches!(run(&mut room, ANNA, Command::Leave), Err(Refusal::NotAllowed(_))));
    let demote = Command::SetRole { user: ANNA, role: Role::Member };
    assert!(matches!(run(&mut room, ANNA, demote.clone()), Err(Refusal::NotAllowed(_))));
    let promote = Command::SetRole { user: BOB, role: Role::Owner };
    assert!(matches!(run(&mut room, BOB, promote.clone()), Err(Refusal::NotAllowed(_))));
    assert!(run(&mut room, ANNA, promote).unwrap().is_some());
    assert!(run(&mut room, ANNA, demote).unwrap().is_some());
    assert_eq!(room.owners, 1);
    assert!(run(&mut room, ANNA, Command::Leave).unwrap().is_some());
}

#[test]
fn a_room_that_everybody_has_left_takes_nobody_in() {
    let mut room = room();
    for user in [CARA, BOB, ANNA] {
        run(&mut room, user, Command::Leave).unwrap();
    }
    let back = run(&mut room, CARA, admit("cara", Role::Member));
    assert!(matches!(back, Err(Refusal::NotAllowed(_))), "an old invite made a new owner");
}

#[test]
fn a_clock_that_steps_back_or_forth_neither_doubles_nor_loses_a_send() {
    let mut room = room();
    let hour = 3_600_000;
    let steps = [5 * hour, 0, 30 * 24 * hour, hour, 5 * hour];
    for (n, now) in steps.into_iter().enumerate() {
        let posted = run_at(&mut room, CARA, send(&n.to_string(), "hi"), now).unwrap().unwrap();
        assert_eq!(posted.offset, room.offset, "events keep their order whatever the clock says");
        for earlier in 0..=n {
            let again = request(CARA, send(&earlier.to_string(), "hi"));
            let judged = room.decide(&again, at(now));
            let Ok(Decision::Repeat(first)) = judged else {
                panic!("{earlier} at {now}: {judged:?}")
            };
            assert_eq!(first.seq, seq(earlier as u64 + 1));
        }
    }
    // A mute is over when the clock says so, and only then.
    let mute = Command::Mute { user: CARA, until: Some(at(6 * hour)) };
    run_at(&mut room, BOB, mute, 5 * hour).unwrap();
    let is_muted = |room: &RoomState, now| {
        room.decide(&request(CARA, send("m", "hi")), at(now))
            == Err(Refusal::Muted { until: at(6 * hour) })
    };
    assert!(is_muted(&room, 0) && is_muted(&room, 6 * hour - 1) && !is_muted(&room, 6 * hour));
}

#[test]
fn an_archived_room_takes_what_takes_something_back_and_nothing_else() {
    let mut room = room();
    post(&mut room, CARA, "k", "hi");
    let archive = |on, by| Command::Archive { on, by };
    assert!(matches!(
        run(&mut room, BOB, archive(true, Archivist::Owner)),
        Err(Refusal::NotAllowed(_))
    ));
    assert!(run(&mut room, DORA, archive(true, Archivist::Administrator)).unwrap().is_some());
    assert_eq!(run(&mut room, ANNA, archive(true, Archivist::Owner)), Ok(None));
    for command in [
        send("l", "hi"),
        Command::Edit { seq: seq(1), body: "ho".into() },
        Command::React { seq: seq(1), emoji: "x".into(), on: true },
        Command::Update { name: Some("x".into()), topic: None },
    ] {
        assert!(run(&mut room, CARA, command.clone()).is_err(), "{command:?}");
    }
    assert_eq!(run(&mut room, DORA, admit("dora", Role::Member)), Err(Refusal::Archived));
    assert!(run(&mut room, CARA, Command::Delete { seq: seq(1) }).unwrap().is_some());
    assert!(run(&mut room, CARA, Command::Leave).unwrap().is_some());
    assert!(run(&mut room, ANNA, archive(false, Archivist::Owner)).unwrap().is_some());
    assert!(run(&mut room, BOB, send("m", "hi")).unwrap().is_some());
}

#[test]
fn what_is_kept_no_longer_is_gone_for_good_and_numbers_go_on() {
    let mut room = room();
    for key in ["a", "b", "c"] {
        post(&mut room, BOB, key, "@everyone hi");
    }
    assert_eq!(room.expire(seq(0)), None);
    let event = room.expire(seq(2)).unwrap();
    room.commit(event, at(1));
    assert_eq!(room.expire(seq(2)), None, "a second time changes nothing");
    for command in [
        Command::Delete { seq: seq(2) },
        Command::Edit { seq: seq(2), body: "ho".into() },
        Command::React { seq: seq(2), emoji: "x".into(), on: true },
    ] {
        assert_eq!(run(&mut room, BOB, command), Err(Refusal::NoMessage(seq(2))));
    }
    // Read just before it went: it is not quoted, either.
    let mut late = request(BOB, send("d", "what?"));
    if let Command::Send { reply_to, .. } = &mut late.command {
        *reply_to = Some(seq(1));
    }
    let quote = Quote { seq: seq(1), user: BOB, name: "Bob".into(), body: "gone".into() };
    let (deleted, reactions, mentions) = (false, Vec::new(), Vec::new());
    late.original = Some(Original { quote, deleted, reactions, mentions });
    assert_eq!(judge(&mut room, &late, at(2)), Err(Refusal::NoMessage(seq(1))));
    assert_eq!(*room.everyone, [seq(3)]);
    assert_eq!(post(&mut room, BOB, "e", "hi").seq, seq(4));
    assert_eq!(room.expire(seq(99)), Some(RoomEvent::Expired { up_to: seq(4) }));
}

#[test]
fn who_goes_for_good_leaves_an_owner_behind() {
    let mut room = room();
    let vacate = || Command::Vacate { successor: Some(BOB) };
    let handed = run(&mut room, ANNA, vacate()).unwrap().unwrap();
    assert!(matches!(handed.event, RoomEvent::RoleSet { user: BOB, role: Role::Owner, .. }));
    let gone = run(&mut room, ANNA, vacate()).unwrap().unwrap();
    assert!(matches!(gone.event, RoomEvent::Left { reason: LeaveReason::Deleted, .. }));
    assert_eq!(run(&mut room, ANNA, vacate()), Ok(None));
    assert_eq!((room.owners, room.members), (1, 2));
}

#[test]
fn everyone_is_for_moderators_and_counted_once_in_the_room() {
    let mut room = room();
    assert!(!post(&mut room, CARA, "a", "@everyone").mention_all);
    assert!(post(&mut room, BOB, "a", "@everyone and @cara").mention_all);
    post(&mut room, BOB, "b", "hm");
    assert!(post(&mut room, ANNA, "a", "@Everyone").mention_all);
    assert_eq!(*room.everyone, [seq(2), seq(4)]);
}

#[test]
fn mentions_name_members_but_never_oneself() {
    let mut room = room();
    let post = post(&mut room, BOB, "a", "@bob, @cara and @dora");
    assert_eq!(post.mentions, [CARA]);
}

#[test]
fn a_direct_conversation_has_no_moderation() {
    let mut room = RoomState::new(RoomId::from_u64(9), Kind::Direct, "".into(), "".into(), 1);
    for (user, name) in [(ANNA, "anna"), (BOB, "bob")] {
        run(&mut room, user, admit(name, Role::Member)).unwrap();
    }
    for command in [
        Command::Leave,
        Command::Kick { user: BOB },
        Command::Ban { user: BOB, on: true },
        Command::Mute { user: BOB, until: None },
        Command::SetRole { user: BOB, role: Role::Owner },
        Command::Update { name: Some("x".into()), topic: None },
    ] {
        assert!(matches!(run(&mut room, ANNA, command), Err(Refusal::NotAllowed(_))));
    }
    assert!(run(&mut room, ANNA, send("k", "hi")).unwrap().is_some());
}

fn any_command() -> impl Strategy<Value = (u64, Command)> {
    let user = || (1u64..5).prop_map(UserId::from_u64);
    let number = || (0u64..20).prop_map(Seq::from_u64);
    let role = prop_oneof![Just(Role::Member), Just(Role::Moderator), Just(Role::Owner)];
    let command = prop_oneof![
        6 => (0u8..6, 0u8..2).prop_map(|(key, body)| send(&key.to_string(), &body.to_string())),
        1 => (number(), ".{0,5}").prop_map(|(seq, body)| Command::Edit { seq, body }),
        1 => number().prop_map(|seq| Command::Delete { seq }),
        1 => number().prop_map(|seq| Command::React { seq, emoji: "x".into(), on: true }),
        1 => (number(), any::<bool>()).prop_map(|(seq, on)| Command::Pin { seq, on }),
        2 => Just(admit("n", Role::Member)),
        1 => Just(Command::Leave),
        1 => user().prop_map(|user| Command::Kick { user }),
        1 => (user(), any::<bool>()).prop_map(|(user, on)| Command::Ban { user, on }),
        1 => user().prop_map(|user| Command::Mute { user, until: Some(at(5)) }),
        1 => (user(), role).prop_map(|(user, role)| Command::SetRole { user, role }),
    ];
    (1u64..5, command)
}

proptest! {
    /// Whatever is asked: numbers have no gaps, a key never posts twice, an owner stays, and
    /// folding the events into a fresh room gives the same room.
    #[test]
    fn any_history_keeps_the_rooms_promises(
        commands in proptest::collection::vec(any_command(), 0..120),
    ) {
        let mut room = room();
        let mut events = Vec::new();
        let mut posts = HashSet::new();
        for (now, (by, command)) in commands.into_iter().enumerate() {
            let before = room.offset.as_u64();
            let by = UserId::from_u64(by);
            // A room that moves elsewhere in between goes on as the room that it was.
            if now % 16 == 0 {
                let written = serde_json::to_vec(&room).unwrap();
                room = serde_json::from_slice(&written).unwrap();
            }
            if let Ok(Some(event)) = run_at(&mut room, by, command, now as u64 / 10) {
                prop_assert_eq!(event.offset.as_u64(), before + 1);
                if let RoomEvent::Message(post) = &event.event {
                    prop_assert!(posts.insert((post.user, post.key.clone())), "key posted twice");
                    prop_assert_eq!(post.seq.as_u64(), posts.len() as u64);
                }
                events.push(event);
            }
            prop_assert_eq!(room.offset.as_u64(), 3 + events.len() as u64);
            prop_assert!(room.owners >= 1 || room.members == 0);
        }
        let mut replayed = self::room();
        events.iter().for_each(|event| replayed.apply(event));
        prop_assert_eq!((replayed.members, replayed.owners), (room.members, room.owners));
        prop_assert_eq!(replayed.last_seq, room.last_seq);
        prop_assert_eq!(&replayed.pins, &room.pins);
        for user in [ANNA, BOB, CARA] {
            prop_assert_eq!(replayed.role(user), room.role(user));
        }
    }
}

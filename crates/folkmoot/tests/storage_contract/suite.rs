//! What every store promises, written against the traits of `storage::contract` and nothing else.
//! Each function takes a fresh store.

use folkmoot::storage::contract::{ChangeFeed, Directory, Files, RoomLog, UserLog};
use folkmoot::storage::{
    AccountDeletion, AccountDeletionBegun, Attachment, AttachmentId, Authority, ControlError,
    DeviceId, LeaveReason, Lsn, Message, NewAccount, NewDevice, NewDirectRoom, NewInvite, NewRoom,
    NewUpload, Offset, PageAnchor, ReadCursor, Redeemed, Role, RoomEvent, RoomId, RoomRecord, Seq,
    UnixMillis, UserEffect, UserId, UserRecord, WriteEpoch,
};

pub(crate) const ANA: UserId = UserId::from_u64(1);
pub(crate) const BO: UserId = UserId::from_u64(2);
const CY: UserId = UserId::from_u64(3);
pub(crate) const HALL: RoomId = RoomId::from_u64(10);
pub(crate) const NOW: UnixMillis = UnixMillis::from_u64(1_000_000);

pub(crate) fn seq(number: u64) -> Seq {
    Seq::from_u64(number)
}

pub(crate) fn record(offset: u64, event: RoomEvent) -> RoomRecord {
    let (offset, at) = (Offset::from_u64(offset), UnixMillis::from_u64(offset));
    RoomRecord { room: HALL, offset, at, event }
}

pub(crate) fn message(number: u64, user: UserId) -> Message {
    Message {
        seq: seq(number),
        user,
        name: "somebody".into(),
        key: format!("key {number}"),
        content_hash: number,
        body: format!("body {number}"),
        reply_to: None,
        mentions: Vec::new(),
        mention_all: false,
        attachments: Vec::new(),
    }
}

fn said(offset: u64, number: u64, user: UserId) -> RoomRecord {
    record(offset, RoomEvent::Message(message(number, user)))
}

fn joined(offset: u64, user: UserId, name: &str) -> RoomRecord {
    let (name, display_name) = (name.to_owned(), name.to_uppercase());
    record(offset, RoomEvent::Joined { user, name, display_name, role: Role::Member })
}

async fn account(store: &impl Directory, user: UserId, name: &str, display_name: &str) {
    let at = UnixMillis::from_u64(1);
    let (name, display_name) = (name.to_owned(), display_name.to_owned());
    let account = NewAccount { id: user, name, display_name, password_hash: "!".into(), at };
    let token_hash = [u8::try_from(user.as_u64()).expect("a small number"); 32];
    let id = DeviceId::from_u64(user.as_u64() + 100);
    let device = NewDevice { id, user, label: "test".into(), token_hash, at };
    store.create_account(account, device).await.expect("the name is free");
}

/// Ana, Bo and Cy have accounts; Ana has a room, whose stream is at offset 1.
pub(crate) async fn populate(store: &impl Directory) {
    account(store, ANA, "ana", "Ana Berg").await;
    account(store, BO, "bo", "Björn Ångström").await;
    account(store, CY, "cy", "Cy").await;
    let (name, topic, at) = ("hall".to_owned(), String::new(), UnixMillis::from_u64(1));
    let room = NewRoom { id: HALL, name, topic, owner: ANA, at };
    store.create_room(room).await.expect("the owner exists");
}

/// The epoch under which the room may be appended to.
pub(crate) async fn epoch(store: &impl RoomLog) -> WriteEpoch {
    store.load_room(HALL, 0, NOW).await.expect("it can be read").expect("there is one").epoch
}

pub(crate) async fn appends_keep_the_order_of_their_calls(store: impl RoomLog + Directory) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let appends: Vec<_> =
        (1..=200).map(|number| store.append_room(epoch, said(number + 1, number, ANA))).collect();
    // The last one first: the order is that of the calls, whatever is awaited when.
    for append in appends.into_iter().rev() {
        append.await.expect("there is room");
    }
    let page = store.history(HALL, PageAnchor::Latest, 100, ANA).await.expect("it can be read");
    let seqs: Vec<u64> = page.messages.iter().map(|stored| stored.message.seq.as_u64()).collect();
    assert_eq!(seqs, (101..=200).collect::<Vec<_>>());
    assert_eq!((page.first_seq, page.last_seq), (seq(1), seq(200)));
    let events = store.room_events(HALL, Offset::from_u64(150), 10).await.expect("it can be read");
    let offsets: Vec<u64> =
        events.expect("they are kept").iter().map(|event| event.offset.as_u64()).collect();
    assert_eq!(offsets, (151..=160).collect::<Vec<_>>());
}

pub(crate) async fn loading_covers_what_is_in_flight(store: impl RoomLog + Directory) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let append = store.append_room(epoch, said(2, 1, ANA));
    let loaded = store.load_room(HALL, 10, NOW).await.expect("it can be read").expect("it exists");
    assert_eq!(
        (loaded.summary.last_offset, loaded.summary.last_seq),
        (Offset::from_u64(2), seq(1))
    );
    assert_eq!(loaded.tail.last().map(|event| event.offset), Some(Offset::from_u64(2)));
    append.await.expect("it was durable before it was read");
    assert!(store.load_room(RoomId::from_u64(99), 0, NOW).await.expect("it can be read").is_none());
}

pub(crate) async fn a_stale_epoch_is_known_by_the_snapshot(store: impl RoomLog + Directory) {
    populate(&store).await;
    let loaded = epoch(&store).await;
    assert!(store.admits(loaded, folkmoot_protocol::Channel::Room(HALL)).is_ok());
    assert_eq!(epoch(&store).await, loaded, "nothing has failed");
}

pub(crate) async fn standings_follow_joins_roles_departures_and_bans(
    store: impl RoomLog + Directory,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let muted_until = Some(UnixMillis::from_u64(5));
    let promoted = RoomEvent::RoleSet { user: BO, role: Role::Moderator, muted_until, by: ANA };
    let left = RoomEvent::Left { user: BO, by: Some(ANA), reason: LeaveReason::Banned };
    // None of them is awaited: what was decided before the question counts.
    let _joined = store.append_room(epoch, joined(2, BO, "bo"));
    let _promoted = store.append_room(epoch, record(3, promoted));
    let standings = store.standings(HALL, vec![BO, ANA, CY]).await.expect("it can be read");
    let roles: Vec<_> = standings.iter().map(|one| one.rights.map(|rights| rights.role)).collect();
    assert_eq!(roles, [Some(Role::Moderator), Some(Role::Owner), None]);
    assert_eq!(standings[0].rights.and_then(|rights| rights.muted_until), muted_until);
    assert_eq!(
        (standings[1].name.as_str(), standings[1].display_name.as_str()),
        ("ana", "Ana Berg")
    );
    let _left = store.append_room(epoch, record(4, left));
    store.ban(HALL, CY, ANA, NOW).await.expect("it can be written");
    let standings = store.standings(HALL, vec![BO, CY]).await.expect("it can be read");
    assert!(standings.iter().all(|one| one.rights.is_none() && one.is_banned), "{standings:?}");
    assert!(store.unban(HALL, BO, ANA, NOW).await.expect("it can be written"));
    assert!(!store.unban(HALL, BO, ANA, NOW).await.expect("it can be written"));
    let standings =
        store.standings(HALL, vec![BO, UserId::from_u64(99)]).await.expect("it can be read");
    assert!(!standings[0].is_banned && standings[1].name.is_empty(), "{standings:?}");
}

pub(crate) async fn a_mute_outlasts_a_departure_until_its_end(store: impl RoomLog + Directory) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let until = UnixMillis::from_u64(NOW.as_u64() + 1);
    let mute = |offset, muted_until| {
        record(offset, RoomEvent::RoleSet { user: BO, role: Role::Member, muted_until, by: ANA })
    };
    let leave =
        |offset| record(offset, RoomEvent::Left { user: BO, by: None, reason: LeaveReason::Left });
    let of_bo = async || {
        let standings = store.standings(HALL, vec![BO]).await.expect("it can be read");
        (standings[0].kept_mute, standings[0].rights.map(|rights| rights.muted_until))
    };
    let _joined = store.append_room(epoch, joined(2, BO, "bo"));
    let _muted = store.append_room(epoch, mute(3, Some(until)));
    let _left = store.append_room(epoch, leave(4));
    assert_eq!(of_bo().await, (Some(until), None));
    let _joined = store.append_room(epoch, joined(5, BO, "bo"));
    assert_eq!(of_bo().await, (None, Some(Some(until))));
    let late = RoomRecord { at: until, ..leave(6) };
    let _left = store.append_room(epoch, late);
    assert_eq!(of_bo().await, (None, None), "it is over");
    let _joined = store.append_room(epoch, joined(7, BO, "bo"));
    let _muted = store.append_room(epoch, mute(8, Some(until)));
    let _left = store.append_room(epoch, leave(9));
    let back = RoomRecord { at: until, ..joined(10, BO, "bo") };
    let _joined = store.append_room(epoch, back);
    assert_eq!(of_bo().await, (None, Some(None)), "it ended while they were away");
}

pub(crate) async fn a_use_of_an_invite_is_taken_once_until_its_user_is_in(
    store: impl RoomLog + Directory,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let code = || "once".to_owned();
    let (expires_at, uses_max) = (None, Some(1));
    let new = NewInvite { code: code(), room: HALL, by: ANA, at: NOW, expires_at, uses_max };
    store.create_invite(new).await.expect("it is stored");
    let redeem = async |user| store.redeem_invite(code(), user, NOW).await.expect("it is stored");
    for _ in 0..2 {
        let Redeemed::Yes(invite) = redeem(BO).await else { panic!("the use is his") };
        assert_eq!(invite.uses, 1);
    }
    assert_eq!(redeem(ANA).await, Redeemed::UsedUp);
    let _joined = store.append_room(epoch, joined(2, BO, "bo"));
    let kicked = RoomEvent::Left { user: BO, by: Some(ANA), reason: LeaveReason::Kicked };
    let _kicked = store.append_room(epoch, record(3, kicked));
    assert_eq!(redeem(BO).await, Redeemed::UsedUp, "who was sent away has no use left");
}

pub(crate) async fn keys_are_found_again_by_their_sender(store: impl RoomLog + Directory) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let appends = (1..=6).map(|number| {
        let user = if number % 2 == 0 { BO } else { ANA };
        store.append_room(epoch, said(number + 1, number, user))
    });
    let _under_way: Vec<_> = appends.collect();
    let keys = store.keys_of(HALL, BO, NOW).await.expect("it can be read");
    let found: Vec<_> = keys.iter().map(|key| (key.key.as_str(), key.seq.as_u64())).collect();
    assert_eq!(found, [("key 2", 2), ("key 4", 4), ("key 6", 6)]);
    assert_eq!(keys[0].content_hash, 2);
    assert!(store.keys_of(HALL, CY, NOW).await.expect("it can be read").is_empty());
}

pub(crate) async fn members_come_by_name_and_are_found_by_any_word(
    store: impl RoomLog + Directory,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    for (offset, user, name) in [(2, CY, "cy"), (3, BO, "bo")] {
        store.append_room(epoch, joined(offset, user, name)).await.expect("there is room");
    }
    let names = |members: Vec<folkmoot::storage::Member>| -> Vec<String> {
        members.into_iter().map(|member| member.name).collect()
    };
    let all = store.members(HALL, None, "", 10).await.expect("it can be read");
    assert_eq!(names(all), ["ana", "bo", "cy"]);
    let rest = store.members(HALL, Some(ANA), "", 1).await.expect("it can be read");
    assert_eq!(names(rest), ["bo"]);
    for prefix in ["bjor", "angs", "bo"] {
        let found = store.members(HALL, None, prefix, 10).await.expect("it can be read");
        assert_eq!(names(found), ["bo"], "{prefix}");
    }
    assert!(store.members(HALL, None, "jorn", 10).await.expect("it can be read").is_empty());
}

pub(crate) async fn read_cursors_merge_by_maximum(store: impl RoomLog + UserLog + Directory) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let mention = |offset: u64, number: u64| UserRecord {
        user: ANA,
        offset: Offset::from_u64(offset),
        at: NOW,
        data: format!(r#"{{"offset":{offset}}}"#),
        effect: Some(UserEffect::Mention { room: HALL, seq: seq(number) }),
    };
    for (offset, number) in [(1, 3), (2, 7), (3, 7), (4, 9)] {
        store.append_user(epoch, mention(offset, number)).await.expect("there is room");
    }
    for number in [7, 5] {
        let cursor = ReadCursor { user: ANA, room: HALL, seq: seq(number) };
        store.append_cursor(cursor).await.expect("there is room");
    }
    let ana = store.load_user(ANA, 2).await.expect("it can be read").expect("she exists");
    assert_eq!(ana.last_offset, Offset::from_u64(4));
    assert_eq!(ana.tail.len(), 2);
    assert_eq!((ana.rooms[0].read_seq, ana.rooms[0].mentions.clone()), (seq(7), vec![seq(9)]));
    let events = store.user_events(ANA, Offset::from_u64(3), 10).await.expect("it can be read");
    assert_eq!(events.expect("they are kept").len(), 1);
}

pub(crate) async fn a_room_seen_from_a_member_shows_what_is_new(
    store: impl RoomLog + UserLog + Directory,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    for number in 1..=4 {
        let mention_all = number != 2;
        let message = Message { mention_all, ..message(number, ANA) };
        let append = store.append_room(epoch, record(number + 1, RoomEvent::Message(message)));
        append.await.expect("there is room");
    }
    let heads = store.room_heads(ANA, vec![(HALL, seq(1))]).await.expect("it can be read");
    assert_eq!(heads[0].summary.last_seq, seq(4));
    assert_eq!(
        (heads[0].rights.role, heads[0].everyone.clone()),
        (Role::Owner, vec![seq(3), seq(4)])
    );
    assert_eq!(heads[0].newest.as_ref().map(|newest| newest.message.seq), Some(seq(4)));
    let none = store.room_heads(BO, vec![(HALL, seq(0))]).await.expect("it can be read");
    assert!(none.is_empty(), "Bo is no member");
}

pub(crate) async fn an_archived_room_says_so_and_a_deleted_one_is_gone(
    store: impl RoomLog + UserLog + Directory,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    for on in [true, false, true] {
        let offset = store.load_room(HALL, 0, NOW).await.expect("it can be read");
        let offset = offset.expect("it exists").summary.last_offset.as_u64() + 1;
        let archived = record(offset, RoomEvent::Archived { on, by: ANA });
        store.append_room(epoch, archived).await.expect("there is room");
        let heads = store.room_heads(ANA, vec![(HALL, seq(0))]).await.expect("it can be read");
        assert_eq!(heads[0].is_archived, on);
        let loaded = store.load_room(HALL, 0, NOW).await.expect("it can be read");
        assert_eq!(loaded.expect("it exists").is_archived, on);
    }
    let by_a_stranger = store.begin_room_deletion(HALL, BO, Authority::Owner, NOW).await;
    assert!(matches!(by_a_stranger, Err(ControlError::NotAllowed(_))));
    store.begin_room_deletion(HALL, ANA, Authority::Owner, NOW).await.expect("Ana owns it");
    let again = store.begin_room_deletion(HALL, ANA, Authority::Owner, NOW).await;
    assert!(matches!(again, Err(ControlError::NotFound(_))));
    let heads = store.room_heads(ANA, vec![(HALL, seq(0))]).await.expect("it can be read");
    assert!(heads.is_empty(), "nobody sees a room that is being deleted");
    assert!(store.load_room(HALL, 0, NOW).await.expect("it can be read").is_none());
}

pub(crate) async fn a_deleted_account_has_no_name_and_cannot_come_back(
    store: impl RoomLog + UserLog + Directory,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    let bo = joined(2, BO, "bo");
    store.append_room(epoch, bo).await.expect("there is room");
    let deletion = |hand_over| AccountDeletion {
        user: ANA,
        by: ANA,
        verified_hash: Some("!".into()),
        erase: false,
        hand_over,
        at: NOW,
    };
    let refused = store.begin_account_deletion(deletion(false)).await.expect("Ana is there");
    assert_eq!(refused, AccountDeletionBegun::Owns(vec!["hall".into()]));
    let begun = store.begin_account_deletion(deletion(true)).await.expect("Ana is there");
    assert_eq!(begun, AccountDeletionBegun::Yes);
    let again = store.begin_account_deletion(deletion(true)).await;
    assert!(matches!(again, Err(ControlError::NotFound(_))));
    assert!(store.users_named(vec!["ana".into()]).await.expect("it can be read").is_empty());
    let left = store.account(ANA).await.expect("it can be read").expect("its id stays");
    assert!(left.is_deleted() && left.display_name.is_empty());
    assert!(store.load_user(ANA, 0).await.expect("it can be read").is_none());
    assert!(store.signed_in([1; 32]).await.expect("it can be read").is_none());
    let found = store.members(HALL, None, "berg", 10).await.expect("it can be read");
    assert!(found.is_empty(), "the words of its names are gone: {found:?}");
}

pub(crate) async fn two_people_have_one_direct_room(store: impl RoomLog + UserLog + Directory) {
    populate(&store).await;
    let open = |id, opener, peer| NewDirectRoom { id: RoomId::from_u64(id), opener, peer, at: NOW };
    let first = store.open_direct_room(open(50, ANA, BO)).await.expect("both exist");
    let second = store.open_direct_room(open(51, BO, ANA)).await.expect("both exist");
    assert!(first.is_new && !second.is_new);
    assert_eq!(first.room, second.room);
    let loaded = store.load_room(first.room, 10, NOW).await.expect("it can be read");
    assert_eq!(loaded.expect("it exists").pair, Some((ANA, BO)));
    let heads = store.room_heads(BO, vec![(first.room, seq(0))]).await.expect("it can be read");
    assert_eq!(heads[0].peer.as_ref().map(|peer| peer.id), Some(ANA));
}

pub(crate) async fn names_are_unique_and_belong_to_one_account(store: impl Directory) {
    populate(&store).await;
    let (name, display_name, at) = ("ana".to_owned(), "Another".to_owned(), NOW);
    let id = UserId::from_u64(9);
    let account = NewAccount { id, name, display_name, password_hash: "!".into(), at };
    let device = DeviceId::from_u64(900);
    let device = NewDevice { id: device, user: id, label: "x".into(), token_hash: [9; 32], at };
    let refused = store.create_account(account, device).await;
    assert!(matches!(refused, Err(ControlError::NameTaken(name)) if name == "ana"));
    assert!(store.account(id).await.expect("it can be read").is_none());
    let asked = vec!["bo".to_owned(), "nobody".to_owned(), "ana".to_owned()];
    let named = store.users_named(asked).await.expect("it can be read");
    assert_eq!(named, [("bo".to_owned(), BO), ("ana".to_owned(), ANA)]);
    let signed_in = store.signed_in([1; 32]).await.expect("it can be read").expect("it is known");
    assert_eq!(signed_in.account.id, ANA);
}

pub(crate) async fn what_changed_is_told_once_and_in_order(
    store: impl RoomLog + Directory + ChangeFeed,
) {
    populate(&store).await;
    let epoch = epoch(&store).await;
    store.append_room(epoch, said(2, 1, ANA)).await.expect("there is room");
    store.append_room(epoch, said(3, 2, ANA)).await.expect("there is room");
    let edited = RoomEvent::Edited { seq: seq(1), body: "new".into(), mentions: Vec::new() };
    store.append_room(epoch, record(4, edited)).await.expect("there is room");
    // A read of the room waits until all of it is where changes are read from.
    store.history(HALL, PageAnchor::Latest, 1, ANA).await.expect("it can be read");
    let mut told = Vec::new();
    let mut after = Lsn(0);
    loop {
        let page = store.message_changes(after, 2).await.expect("it can be read");
        let of = |one: &folkmoot::storage::ChangedMessage| (one.seq.as_u64(), one.is_new);
        told.extend(page.messages.iter().map(of));
        after = page.up_to;
        if page.is_last {
            break;
        }
    }
    assert_eq!(told, [(1, true), (2, true), (1, false)]);
    let rest = store.message_changes(after, 2).await.expect("it can be read");
    assert!(rest.messages.is_empty() && rest.is_last, "told once");
}

pub(crate) async fn a_file_is_there_once_it_has_arrived(store: impl Directory + Files) {
    populate(&store).await;
    let id = AttachmentId::from_u64(7);
    let (name, media_type) = ("a.txt".to_owned(), "text/plain".to_owned());
    let file = Attachment { id, name, media_type, size: 3, picture: None };
    assert!(store.attachment(id, NOW).await.expect("it can be read").is_none());
    let new = upload(id);
    store.begin_upload(new).await.expect("there is room");
    assert!(store.attachment(id, NOW).await.expect("it can be read").is_none(), "not yet");
    store.finish_upload(file.clone()).await.expect("it was begun");
    let found = store.attachment(id, NOW).await.expect("it can be read").expect("it has arrived");
    assert_eq!((found.file, found.by, found.is_sent), (file, ANA, false));
}

fn upload(id: AttachmentId) -> NewUpload {
    let expires_at = UnixMillis::from_u64(NOW.as_u64() + 1_000);
    let (user_bytes_max, unsent_max) = (100, 10);
    NewUpload { id, room: HALL, by: ANA, size_max: 3, expires_at, user_bytes_max, unsent_max }
}

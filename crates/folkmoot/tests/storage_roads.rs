//! Both roads into the store, and what is read back: offsets, pages, cursors, mentions, invites.

mod storage_support;

use folkmoot::storage::{
    ControlError, LeaveReason, NewDirectRoom, NewInvite, Offset, PageAnchor, ReadCursor, Record,
    Redeemed, Role, RoomEvent, RoomId, Seq, UnixMillis, UserEffect, UserId, UserRecord,
};
use storage_support::{ANA, BO, ROOM, TestDirectory, account, message, populated, room_event};

const NOW: UnixMillis = UnixMillis::from_u64(1_000_000);

fn user_event(user: UserId, offset: u64, effect: Option<UserEffect>) -> Record {
    let data = format!(r#"{{"offset":{offset}}}"#);
    Record::User(UserRecord { user, offset: Offset::from_u64(offset), at: NOW, data, effect })
}

#[tokio::test]
async fn acknowledged_messages_are_read_back_in_order() {
    let directory = TestDirectory::new("order");
    let store = populated(&directory).await;
    let epoch = store.write_epoch();
    let appends: Vec<_> =
        (1..=500).map(|seq| store.append(epoch, &message(seq + 1, seq, "hello"))).collect();
    for (index, append) in appends.into_iter().enumerate() {
        assert_eq!(append.await.unwrap().lsn.0, index as u64 + 1);
    }
    let snapshot = store.load_room(ROOM, 100, NOW).await.unwrap().unwrap();
    assert_eq!(snapshot.summary.last_seq, Seq::from_u64(500));
    assert_eq!(snapshot.summary.last_offset, Offset::from_u64(501));
    let keys = store.keys_of(ROOM, ANA, NOW).await.unwrap();
    assert_eq!((keys.len(), keys[499].seq), (500, Seq::from_u64(500)));
    assert!(store.keys_of(ROOM, BO, NOW).await.unwrap().is_empty());
    let offsets: Vec<_> = snapshot.tail.iter().map(|record| record.offset.as_u64()).collect();
    assert_eq!(offsets, (402..=501).collect::<Vec<_>>());
    let page = store.history(ROOM, PageAnchor::Around(Seq::from_u64(250)), 5, ANA).await.unwrap();
    let seqs: Vec<_> = page.messages.iter().map(|stored| stored.message.seq.as_u64()).collect();
    assert_eq!(seqs, [248, 249, 250, 251, 252]);
    assert_eq!((page.first_seq, page.last_seq), (Seq::from_u64(1), Seq::from_u64(500)));
    let page = store.history(ROOM, PageAnchor::Before(Seq::from_u64(3)), 5, ANA).await.unwrap();
    assert_eq!(page.messages.iter().map(|m| m.message.seq.as_u64()).collect::<Vec<_>>(), [1, 2]);
    let page = store.history(ROOM, PageAnchor::After(Seq::from_u64(498)), 5, ANA).await.unwrap();
    assert_eq!(
        page.messages.iter().map(|m| m.message.seq.as_u64()).collect::<Vec<_>>(),
        [499, 500]
    );
    store.close().await;
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let directory = TestDirectory::new("restart");
    let store = populated(&directory).await;
    let epoch = store.write_epoch();
    for seq in 1..=20 {
        store.append(epoch, &message(seq + 1, seq, "hello")).await.unwrap();
    }
    let stream_epoch = store.stream_epoch().to_owned();
    store.close().await;
    let store = directory.open();
    assert_eq!(store.stream_epoch(), stream_epoch);
    let snapshot = store.load_room(ROOM, 5, NOW).await.unwrap().unwrap();
    assert_eq!(snapshot.summary.last_seq, Seq::from_u64(20));
    let next = store.append(snapshot.epoch, &message(22, 21, "again")).await.unwrap();
    assert_eq!(next.lsn.0, 21);
    store.close().await;
}

#[tokio::test]
async fn a_deleted_message_leaves_no_text_behind() {
    let directory = TestDirectory::new("delete");
    let store = populated(&directory).await;
    let epoch = store.write_epoch();
    let seq = Seq::from_u64(1);
    let events = [
        RoomEvent::Reaction { seq, user: BO, emoji: "👍".into(), on: true },
        RoomEvent::Edited { seq, body: "secret two".into(), mentions: vec![BO] },
    ];
    store.append(epoch, &message(2, 1, "secret one")).await.unwrap();
    for (offset, event) in (3..).zip(events) {
        store.append(epoch, &room_event(offset, event)).await.unwrap();
    }
    let mention = UserEffect::Mention { room: ROOM, seq };
    store.append(epoch, &user_event(BO, 1, Some(mention))).await.unwrap();
    let page = store.history(ROOM, PageAnchor::Latest, 5, BO).await.unwrap();
    assert_eq!(page.messages[0].message.body, "secret two");
    assert_eq!(page.messages[0].reactions[0].count, 1);
    assert!(page.messages[0].reactions[0].is_mine);
    assert!(page.messages[0].edited_at.is_some());

    store.append(epoch, &room_event(5, RoomEvent::Deleted { seq, by: ANA })).await.unwrap();
    let page = store.history(ROOM, PageAnchor::Latest, 5, BO).await.unwrap();
    assert_eq!(page.messages[0].deleted.map(|(_, by)| by), Some(ANA));
    assert!(page.messages[0].reactions.is_empty());
    let events = store.room_events(ROOM, Offset::from_u64(1), 10).await.unwrap().unwrap();
    assert_eq!(events.len(), 4);
    assert!(!format!("{page:?}{events:?}").contains("secret"));
    let bo = store.load_user(BO, 0).await.unwrap().unwrap();
    assert!(bo.rooms.iter().all(|room| room.mentions.is_empty()));
    store.close().await;
}

#[tokio::test]
async fn read_cursors_merge_by_maximum_and_clear_mentions() {
    let directory = TestDirectory::new("cursor");
    let store = populated(&directory).await;
    let epoch = store.write_epoch();
    let joined = RoomEvent::Joined {
        user: BO,
        name: "bo".into(),
        display_name: "Bo".into(),
        role: Role::Member,
    };
    store.append(epoch, &room_event(2, joined)).await.unwrap();
    let mention = |seq| Some(UserEffect::Mention { room: ROOM, seq: Seq::from_u64(seq) });
    for (offset, seq) in [(1, 3), (2, 7), (3, 7), (4, 9)] {
        store.append(epoch, &user_event(BO, offset, mention(seq))).await.unwrap();
    }
    for seq in [7, 5] {
        let cursor = ReadCursor { user: BO, room: ROOM, seq: Seq::from_u64(seq) };
        store.append(epoch, &Record::Cursor(cursor)).await.unwrap();
    }
    // A late copy of a mention that was read already.
    store.append(epoch, &user_event(BO, 5, mention(6))).await.unwrap();
    let bo = store.load_user(BO, 2).await.unwrap().unwrap();
    assert_eq!(bo.last_offset, Offset::from_u64(5));
    assert_eq!(bo.tail.iter().map(|event| event.offset.as_u64()).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(bo.rooms[0].read_seq, Seq::from_u64(7));
    assert_eq!(bo.rooms[0].mentions, [Seq::from_u64(9)]);
    store.close().await;
}

#[tokio::test]
async fn membership_follows_the_events() {
    let directory = TestDirectory::new("members");
    let store = populated(&directory).await;
    let epoch = store.write_epoch();
    let joined = RoomEvent::Joined {
        user: BO,
        name: "bo".into(),
        display_name: "Bo".into(),
        role: Role::Member,
    };
    store.append(epoch, &room_event(2, joined)).await.unwrap();
    let muted_until = Some(UnixMillis::from_u64(5));
    let role = RoomEvent::RoleSet { user: BO, role: Role::Moderator, muted_until, by: ANA };
    store.append(epoch, &room_event(3, role)).await.unwrap();
    let members = store.members(ROOM, None, "", 10).await.unwrap();
    assert_eq!(members.iter().map(|m| m.role).collect::<Vec<_>>(), [Role::Owner, Role::Moderator]);
    assert_eq!(members[1].muted_until, muted_until);
    assert_eq!(store.members(ROOM, Some(ANA), "", 10).await.unwrap().len(), 1);

    let banned = RoomEvent::Left { user: BO, by: Some(ANA), reason: LeaveReason::Banned };
    store.append(epoch, &room_event(4, banned)).await.unwrap();
    let room = store.load_room(ROOM, 10, NOW).await.unwrap().unwrap();
    assert_eq!((room.summary.member_count, room.owners), (1, 1));
    let standings = store.standings(ROOM, vec![BO, ANA]).await.unwrap();
    assert_eq!((standings[0].rights, standings[0].is_banned), (None, true));
    let rights = standings[1].rights.unwrap();
    assert_eq!((rights.role, standings[1].is_banned), (Role::Owner, false));
    assert!(store.load_user(BO, 0).await.unwrap().unwrap().rooms.is_empty());
    assert!(store.unban(ROOM, BO, ANA, NOW).await.unwrap());
    assert!(!store.unban(ROOM, BO, ANA, NOW).await.unwrap());
    store.close().await;
}

#[tokio::test]
async fn names_are_unique_and_an_account_is_found_by_each_of_its_handles() {
    let directory = TestDirectory::new("names");
    let store = populated(&directory).await;
    let (new, device) = account(UserId::from_u64(9), "ana");
    let refused = store.create_account(new, device).await;
    assert!(matches!(refused, Err(ControlError::NameTaken(name)) if name == "ana"));
    let ana = store.account_by_name("ana".into()).await.unwrap().unwrap();
    assert_eq!(store.account(ANA).await.unwrap(), Some(ana));
    let found = store.find_accounts("a".into(), 10).await.unwrap();
    assert_eq!(found.iter().map(|account| account.id).collect::<Vec<_>>(), [ANA]);

    let (_, device) = account(ANA, "ana");
    let signed_in = store.signed_in(device.token_hash).await.unwrap().unwrap();
    assert_eq!((signed_in.account.id, signed_in.device), (ANA, device.id));
    store
        .append(store.write_epoch(), &Record::DeviceSeen { device: device.id, at: NOW })
        .await
        .unwrap();
    store.barrier().await.unwrap();
    assert_eq!(store.devices(ANA).await.unwrap()[0].seen_at, NOW);
    assert!(!store.remove_device(BO, device.id).await.unwrap());
    assert!(store.remove_device(ANA, device.id).await.unwrap());
    assert_eq!(store.signed_in(device.token_hash).await.unwrap(), None);
    store.close().await;
}

#[tokio::test]
async fn the_log_of_moderation_cannot_be_rewritten() {
    let directory = TestDirectory::new("append-only");
    let store = populated(&directory).await;
    store.ban(ROOM, BO, ANA, NOW).await.unwrap();
    assert_eq!(store.moderation(None, 10).await.unwrap().len(), 1);
    store.close().await;
    let database = rusqlite::Connection::open(directory.path().join("folkmoot.sqlite")).unwrap();
    for change in ["UPDATE moderation SET by = 2", "DELETE FROM moderation"] {
        let refused = database.execute(change, []).unwrap_err().to_string();
        assert!(refused.contains("append-only"), "{refused}");
    }
}

#[tokio::test]
async fn an_invite_is_used_no_more_often_than_it_says() {
    let directory = TestDirectory::new("invite");
    let store = populated(&directory).await;
    let invite = |code: &str, uses_max, expires_at| NewInvite {
        code: code.into(),
        room: ROOM,
        by: ANA,
        at: NOW,
        expires_at,
        uses_max,
    };
    store.create_invite(invite("twice", Some(2), None)).await.unwrap();
    store
        .create_invite(invite("short", None, Some(UnixMillis::from_u64(NOW.as_u64() + 1))))
        .await
        .unwrap();
    let attempts: Vec<_> = (0..8)
        .map(|number| {
            let store = store.clone();
            let somebody = UserId::from_u64(100 + number);
            tokio::spawn(async move {
                store.redeem_invite("twice".into(), somebody, NOW).await.unwrap()
            })
        })
        .collect();
    let mut used = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            Redeemed::Yes(_) => used += 1,
            other => assert_eq!(other, Redeemed::UsedUp),
        }
    }
    assert_eq!(used, 2);
    let late = UnixMillis::from_u64(NOW.as_u64() + 1);
    let late = store.redeem_invite("short".into(), BO, late).await.unwrap();
    assert_eq!(late, Redeemed::Expired);
    assert_eq!(store.redeem_invite("none".into(), BO, NOW).await.unwrap(), Redeemed::Unknown);
    assert_eq!(store.invites(ROOM, None, 10).await.unwrap().len(), 2);
    assert!(store.revoke_invite("short".into(), ANA, NOW).await.unwrap());
    store.close().await;
}

#[tokio::test]
async fn two_people_have_one_direct_room() {
    let directory = TestDirectory::new("direct");
    let store = populated(&directory).await;
    let open = |id, opener, peer| NewDirectRoom { id: RoomId::from_u64(id), opener, peer, at: NOW };
    let first = store.open_direct_room(open(50, ANA, BO)).await.unwrap();
    let second = store.open_direct_room(open(51, BO, ANA)).await.unwrap();
    assert!(first.is_new && !second.is_new);
    assert_eq!(first.room, second.room);
    let bo = store.load_user(BO, 0).await.unwrap().unwrap();
    let direct = bo.rooms.iter().find(|room| room.summary.id == first.room).unwrap();
    assert_eq!(direct.peer, Some(ANA));
    let events = store.room_events(first.room, Offset::from_u64(0), 10).await.unwrap().unwrap();
    assert_eq!(events.iter().map(|event| event.offset.as_u64()).collect::<Vec<_>>(), [1, 2]);
    store.close().await;
}

#[tokio::test]
async fn old_events_are_pruned_and_the_gap_is_admitted() {
    let directory = TestDirectory::new("prune");
    let store = populated(&directory).await;
    let epoch = store.write_epoch();
    let mut last = None;
    for seq in 1..=3_000 {
        last = Some(store.append(epoch, &message(seq + 1, seq, "x")));
    }
    last.unwrap().await.unwrap();
    assert_eq!(store.room_events(ROOM, Offset::from_u64(500), 10).await.unwrap(), None);
    let recoverable =
        store.room_events(ROOM, Offset::from_u64(2_001), 2_000).await.unwrap().unwrap();
    assert_eq!(recoverable.len(), 1_000);
    assert_eq!(recoverable[0].offset, Offset::from_u64(2_002));
    assert_eq!(
        store.room_events(ROOM, Offset::from_u64(3_001), 10).await.unwrap(),
        Some(Vec::new())
    );
    assert_eq!(store.room_events(ROOM, Offset::from_u64(9_000), 10).await.unwrap(), None);
    // Pruned events are still messages.
    let page = store.history(ROOM, PageAnchor::After(Seq::from_u64(0)), 1, ANA).await.unwrap();
    assert_eq!(page.messages[0].message.seq, Seq::from_u64(1));
    store.close().await;
}

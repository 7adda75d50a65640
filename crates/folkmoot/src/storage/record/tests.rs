//! Records survive their bytes, and bytes that are no record are refused.

use proptest::prelude::*;

use super::*;

fn room_events() -> Vec<RoomEvent> {
    let message = Message {
        seq: Seq::from_u64(7),
        user: UserId::from_u64(1),
        name: "ana".into(),
        key: "k-1".into(),
        content_hash: 99,
        body: "grüß dich @bo".into(),
        reply_to: Some(Quote {
            seq: Seq::from_u64(3),
            user: UserId::from_u64(2),
            name: "bo".into(),
            body: "?".into(),
        }),
        mentions: vec![UserId::from_u64(2)],
        mention_all: true,
        attachments: Vec::new(),
    };
    let plain = Message {
        key: String::new(),
        reply_to: None,
        mentions: Vec::new(),
        mention_all: false,
        attachments: Vec::new(),
        ..message.clone()
    };
    vec![
        RoomEvent::Message(message),
        RoomEvent::Message(plain),
        RoomEvent::Edited {
            seq: Seq::from_u64(7),
            body: "b".into(),
            mentions: vec![UserId::from_u64(u64::MAX)],
        },
        RoomEvent::Deleted { seq: Seq::from_u64(7), by: UserId::from_u64(2) },
        RoomEvent::Reaction {
            seq: Seq::from_u64(7),
            user: UserId::from_u64(1),
            emoji: "🌱".into(),
            on: true,
        },
        RoomEvent::Joined {
            user: UserId::from_u64(1),
            name: "ana".into(),
            display_name: "Ana".into(),
            role: Role::Owner,
        },
        RoomEvent::Left {
            user: UserId::from_u64(1),
            by: Some(UserId::from_u64(2)),
            reason: LeaveReason::Banned,
        },
        RoomEvent::RoleSet {
            user: UserId::from_u64(1),
            role: Role::Moderator,
            muted_until: Some(UnixMillis::from_u64(5)),
            by: UserId::from_u64(2),
        },
        RoomEvent::Left { user: UserId::from_u64(1), by: None, reason: LeaveReason::Deleted },
        RoomEvent::Archived { on: true, by: UserId::from_u64(2) },
        RoomEvent::Pinned { seq: Seq::from_u64(7), by: UserId::from_u64(2), on: true },
        RoomEvent::Expired { up_to: Seq::from_u64(7) },
        RoomEvent::Described { name: "n".into(), topic: "t".into(), by: UserId::from_u64(1) },
    ]
}

fn samples() -> Vec<Record> {
    let room = RoomId::from_u64(12);
    let mut records: Vec<_> = (1..)
        .zip(room_events())
        .map(|(offset, event)| {
            Record::Room(RoomRecord {
                room,
                offset: Offset::from_u64(offset),
                at: UnixMillis::from_u64(10),
                event,
            })
        })
        .collect();
    let effects = [
        None,
        Some(UserEffect::Mention { room, seq: Seq::from_u64(7) }),
        Some(UserEffect::Read { room, seq: Seq::from_u64(8) }),
        Some(UserEffect::Notify { room, notify: Notify::None }),
    ];
    records.extend((1..).zip(effects).map(|(offset, effect)| {
        let data = r#"{"type":"read"}"#.to_owned();
        let (user, offset, at) =
            (UserId::from_u64(1), Offset::from_u64(offset), UnixMillis::from_u64(1));
        Record::User(UserRecord { user, offset, at, data, effect })
    }));
    records.push(Record::Cursor(ReadCursor {
        user: UserId::from_u64(1),
        room,
        seq: Seq::from_u64(9),
    }));
    records
        .push(Record::DeviceSeen { device: DeviceId::from_u64(4), at: UnixMillis::from_u64(11) });
    records
}

#[test]
fn every_kind_of_record_survives_its_bytes() {
    for record in samples() {
        assert_eq!(Record::decode(&record.encode()), Ok(record));
    }
}

#[test]
fn unknown_kinds_and_numbers_are_refused_by_name() {
    assert_eq!(Record::decode(&[]), Err(RecordError::UnknownKind));
    assert_eq!(Role::from_number(9), Err(RecordError::UnknownNumber { of: "Role", number: 9 }));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Record::decode(&bytes);
        let _ = RoomEvent::decode(&bytes);
        let _ = MessageDetails::decode(Some(&bytes));
    }
}

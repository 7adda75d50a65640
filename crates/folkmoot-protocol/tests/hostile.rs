//! What strangers may send: the decoders meet arbitrary bytes, damaged golden frames, the committed
//! seeds of the fuzz targets and everything over a limit. They answer with an error that names what
//! is wrong, or with commands; they never panic. What the encoders write, the decoders read back.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use folkmoot_protocol::frame::{
    ClientInfo, Command, Publication, PublishRequest, Push, PushKind, Reply, Request, RpcRequest,
    RpcResult, SubscribeRequest, SubscribeResult,
};
use folkmoot_protocol::frame::{ConnectRequest, Outcome};
use folkmoot_protocol::limits::FRAME_BYTES_MAX;
use folkmoot_protocol::rpc::{Rpc, encode_payload};
use folkmoot_protocol::{DecodeError, DisconnectCode, Format};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const FORMATS: [Format; 2] = [Format::Json, Format::Protobuf];

/// Decodes in every way a server and a client do; only a panic fails.
fn decode_everything(bytes: &[u8]) {
    for format in FORMATS {
        for command in format.decode_commands(bytes).unwrap_or_default() {
            if let Some(Request::Rpc(rpc)) = command.request {
                let _ = Rpc::decode(&rpc.method, &rpc.data);
            }
        }
        let _ = format.decode_replies(bytes);
    }
    for method in Rpc::METHODS {
        let _ = Rpc::decode(method, bytes);
    }
}

#[test]
fn null_in_a_field_that_may_be_absent_is_its_absence() {
    let decoded = |frame: &str| Format::Json.decode_commands(frame.as_bytes());
    let subscription = [
        "token",
        "recover",
        "epoch",
        "offset",
        "positioned",
        "recoverable",
        "join_leave",
        "delta",
        "tf",
        "flag",
    ];
    for (request, needed, fields) in [
        ("connect", r#""token":"t""#, &["subs", "name", "version", "headers"][..]),
        ("subscribe", r#""channel":"c""#, &subscription),
        ("history", r#""channel":"c""#, &["limit", "since", "reverse"]),
    ] {
        let absent =
            decoded(&format!(r#"{{"id":1,"{request}":{{{needed}}}}}"#)).expect("it is one");
        for field in fields {
            let null = format!(r#"{{"id":1,"{request}":{{{needed},"{field}":null}}}}"#);
            assert_eq!(decoded(&null).ok().as_ref(), Some(&absent), "{null}");
        }
    }
    let message = |rest: &str| {
        let data = format!(r#"{{"room":"0000000000007","key":"k","body":"b"{rest}}}"#);
        Rpc::decode("message.send", data.as_bytes())
    };
    let nulls = message(r#","reply_to":null,"attachments":null"#);
    assert!(nulls.is_ok(), "{nulls:?}");
    assert_eq!(nulls, message(""));
}

fn from_hex(pair: &[u8]) -> u8 {
    let text = std::str::from_utf8(pair).expect("golden bytes are ASCII");
    u8::from_str_radix(text, 16).expect("golden bytes are hexadecimal")
}

fn golden_frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for file in ["commands.jsonl", "replies.jsonl"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
        for line in fs::read_to_string(path).expect("golden files are committed").lines() {
            let line: serde_json::Value =
                serde_json::from_str(line).expect("a golden line is JSON");
            let hex = line["protobuf"].as_str().expect("golden bytes are text").as_bytes();
            frames.push(line["json"].as_str().expect("golden frames are text").as_bytes().to_vec());
            frames.push(hex.chunks(2).map(from_hex).collect());
        }
    }
    frames
}

#[derive(Debug, Clone)]
enum Damage {
    Flip(Index, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Double(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, mask)| Damage::Flip(at, mask)),
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        any::<Index>().prop_map(Damage::Double),
    ]
}

fn apply(damage: &Damage, frame: &mut Vec<u8>) {
    if frame.is_empty() {
        return;
    }
    match damage {
        Damage::Flip(at, mask) => *at.get_mut(frame) ^= mask,
        Damage::Cut(at) => frame.truncate(at.index(frame.len())),
        Damage::Insert(at, bytes) => {
            let at = at.index(frame.len());
            frame.splice(at..at, bytes.iter().copied());
        }
        Damage::Double(at) => {
            let tail = frame[at.index(frame.len())..].to_vec();
            frame.extend_from_slice(&tail);
        }
    }
}

fn json_payload() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        Just(Bytes::new()),
        any::<i64>().prop_map(|number| Bytes::from(number.to_string())),
        ".{0,40}".prop_map(|text| encode_payload(&text)),
        btree_map(".{0,8}", ".{0,8}", 0..4).prop_map(|map| encode_payload(&map)),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let subscribe = (".{0,20}", any::<bool>(), any::<u64>(), json_payload())
        .prop_map(|(channel, recover, offset, data)| SubscribeRequest {
            channel,
            recover,
            offset,
            data,
            ..SubscribeRequest::default()
        })
        .boxed();
    let connect =
        (".{0,50}", json_payload(), btree_map(".{0,8}", subscribe.clone(), 0..3)).prop_map(
            |(token, data, subs)| ConnectRequest { token, data, subs, ..ConnectRequest::default() },
        );
    prop_oneof![
        subscribe.prop_map(Request::Subscribe),
        connect.prop_map(Request::Connect),
        (".{0,20}", json_payload())
            .prop_map(|(method, data)| Request::Rpc(RpcRequest { data, method })),
        (".{0,20}", ".{0,20}").prop_map(|(channel, text)| {
            let data = encode_payload(&text);
            Request::Publish(PublishRequest { channel, data })
        }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let publication =
        (any::<u64>(), any::<i64>(), ".{0,20}").prop_map(|(offset, time, user)| Publication {
            data: Bytes::from_static(br#"{"type":"x"}"#),
            info: Some(ClientInfo { user, ..ClientInfo::default() }),
            offset,
            time,
            ..Publication::default()
        });
    prop_oneof![
        json_payload().prop_map(|data| Outcome::Rpc(RpcResult { data })),
        vec(publication.clone(), 0..4).prop_map(|publications| {
            Outcome::Subscribe(SubscribeResult { publications, ..SubscribeResult::default() })
        }),
        (".{0,20}", publication).prop_map(|(channel, event)| Outcome::Push(Push {
            channel,
            kind: Some(PushKind::Pub(event))
        })),
    ]
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_a_decoder(bytes in vec(any::<u8>(), 0..400)) {
        decode_everything(&bytes);
    }

    #[test]
    fn damaged_frames_never_panic_a_decoder(
        mut frame in select(golden_frames()),
        damages in vec(damage(), 1..6),
    ) {
        for damage in &damages {
            apply(damage, &mut frame);
        }
        decode_everything(&frame);
    }

    #[test]
    fn batched_commands_round_trip(commands in vec((1..u32::MAX, request()), 1..6), format in select(&FORMATS)) {
        let commands: Vec<Command> =
            commands.into_iter().map(|(id, request)| Command { id, request: Some(request) }).collect();
        let mut message = Vec::new();
        for command in &commands {
            format.encode_command(command, &mut message).unwrap();
        }
        prop_assert_eq!(format.decode_commands(&message).unwrap(), commands);
    }

    #[test]
    fn batched_replies_round_trip(replies in vec((1..u32::MAX, outcome()), 1..6), format in select(&FORMATS)) {
        let replies: Vec<Reply> = replies.into_iter().map(|(id, outcome)| Reply::ok(id, outcome)).collect();
        let mut message = Vec::new();
        for reply in &replies {
            format.encode_reply(reply, &mut message).unwrap();
        }
        prop_assert_eq!(format.decode_replies(&message).unwrap(), replies);
    }
}

#[test]
fn seeds_of_the_fuzz_targets_never_panic_a_decoder() {
    let seeds: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/decode_frame");
    let mut count = 0;
    for entry in fs::read_dir(seeds).expect("the seeds are committed") {
        decode_everything(&fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 10, "only {count} seeds found");
}

#[test]
fn a_frame_over_the_limit_is_refused_before_it_is_read() {
    let frame = vec![b' '; FRAME_BYTES_MAX + 1];
    for format in FORMATS {
        let error = format.decode_commands(&frame).unwrap_err();
        assert_eq!(error, DecodeError::TooLarge { len: FRAME_BYTES_MAX + 1 });
        assert_eq!(error.disconnect_code(), DisconnectCode::FrameTooLarge);
        assert_eq!(error.to_string(), "frame of 65537 bytes is over the limit of 65536");
    }
}

#[test]
fn a_frame_holds_as_many_commands_as_fit() {
    for format in FORMATS {
        let mut message = Vec::new();
        for id in 1..=2_000 {
            let request = Some(Request::Ping(Default::default()));
            format.encode_command(&Command { id, request }, &mut message).unwrap();
        }
        let ids: Vec<u32> =
            format.decode_commands(&message).unwrap().iter().map(|command| command.id).collect();
        assert_eq!(ids, (1..=2_000).collect::<Vec<_>>());
    }
}

#[test]
fn commands_before_a_malformed_one_are_read() {
    let frames = [
        (Format::Json, b"{\"id\":1,\"ping\":{}}\n{\"id\":\"two\"}\n{\"id\":3}".to_vec()),
        (Format::Protobuf, vec![4, 8, 1, 90, 0, 5, 1]),
    ];
    for (format, frame) in frames {
        let mut commands = format.commands(Bytes::from(frame)).unwrap();
        assert_eq!(commands.next().unwrap().unwrap().id, 1, "{format:?}");
        let error = commands.next().unwrap().unwrap_err();
        assert!(error.to_string().starts_with("command 1 of the frame"), "{error}");
        assert!(commands.next().is_none(), "{format:?}");
    }
}

#[test]
fn a_malformed_command_is_named_by_its_place() {
    let error =
        Format::Json.decode_commands(b"{\"id\":1,\"ping\":{}}\n{\"id\":\"two\"}").unwrap_err();
    assert!(error.to_string().starts_with("command 1 of the frame: invalid type"), "{error}");
    let error =
        Format::Json.decode_commands(b"{\"id\":1,\"rpc\":{\"method\":\"\xff\"}}").unwrap_err();
    assert!(error.to_string().contains("invalid utf-8"), "{error}");
    let error = Format::Protobuf.decode_commands(&[0, 5, 1]).unwrap_err();
    assert!(error.to_string().starts_with("command 1 of the frame"), "{error}");
    for format in FORMATS {
        assert!(format.decode_commands(b"").unwrap_err().to_string().contains("empty"));
    }
}

#[test]
fn deep_nesting_is_an_error_or_skipped_but_never_a_stack_overflow() {
    let half = FRAME_BYTES_MAX / 2 - 100;
    let nested = format!("{}1{}", "[".repeat(half), "]".repeat(half));
    for frame in [
        nested.clone(),
        format!(r#"{{"id":1,"rpc":{{"method":"rooms.list","data":{nested}}}}}"#),
        format!(r#"{{"id":1,"later":{nested}}}"#),
    ] {
        decode_everything(frame.as_bytes());
    }
    // Groups within groups of an unknown field, which a reader must skip.
    let mut groups = vec![0xff, 0xff, 0x01];
    groups.resize(3 + 0x7fff, 0x0b);
    decode_everything(&groups);
}

#[test]
fn the_first_request_of_a_command_wins_and_unknown_keys_are_skipped() {
    let frame = br#"{"id":1,"later":[1],"connect":null,"ping":{},"rpc":{"method":"x"},"flag":3}"#;
    let commands = Format::Json.decode_commands(frame).unwrap();
    assert_eq!(commands, [Command { id: 1, request: Some(Request::Ping(Default::default())) }]);
}

#[test]
fn a_payload_with_line_breaks_stays_on_one_line() {
    let data = Bytes::from_static(b"{\n  \"a\": \"b\\n\"\r\n}");
    let mut message = Vec::new();
    let reply = Reply::ok(1, Outcome::Rpc(RpcResult { data }));
    Format::Json.encode_reply(&reply, &mut message).unwrap();
    assert!(!message.contains(&b'\n') && !message.contains(&b'\r'));
    let value: serde_json::Value = serde_json::from_slice(&message).unwrap();
    assert_eq!(value["rpc"]["data"]["a"], "b\n");
}

#[test]
fn a_payload_that_is_not_json_spoils_no_other_reply() {
    for data in [&b"\xff\xfe"[..], b"{", b"{}\n{}", b"1 2"] {
        let mut message = b"{}".to_vec();
        let reply = Reply::ok(1, Outcome::Rpc(RpcResult { data: Bytes::copy_from_slice(data) }));
        let error = Format::Json.encode_reply(&reply, &mut message).unwrap_err();
        assert!(error.to_string().contains("payload is not JSON"), "{error}");
        assert_eq!(message, b"{}");
    }
}

#[test]
fn a_shared_push_is_the_same_frame_as_its_own_reply() {
    let event =
        Publication { data: Bytes::from_static(b"{}"), offset: 3, ..Publication::default() };
    let push = Push { channel: "room:0000000000007".into(), kind: Some(PushKind::Pub(event)) };
    for format in FORMATS {
        let shared = format.encode_push(push.clone()).unwrap();
        let (mut appended, mut encoded) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            format.append(&shared, &mut appended);
            format.encode_reply(&Reply::from(push.clone()), &mut encoded).unwrap();
        }
        assert_eq!(appended, encoded);
        assert_eq!(format.decode_replies(&appended).unwrap().len(), 2);
    }
}

//! The committed frames and payloads, read and written. The protobuf bytes were made by another
//! implementation (Google's runtime with the client.proto of the Python SDK), so agreement here is
//! agreement with the SDKs. A change that breaks a line breaks clients in the field; lines are
//! added, not changed.

use std::fs;
use std::path::Path;

use folkmoot_protocol::chat::{
    AccountCreate, AccountDelete, AdminRoomUpdate, AdminRooms, AdminSettings, AdminSettingsUpdate,
    AdminUserDelete, AdminUserUpdate, AdminUsers, Attachment, ConnectData, LiveView,
    ModerationPage, PasswordChange, PasswordReset, Problem, ResetLink, RoomEvent, ServerLimits,
    SessionCreate, SetupCreate, SetupState, SignedIn, StorageView, UserEvent,
};
use folkmoot_protocol::frame::{Command, Reply};
use folkmoot_protocol::rpc::*;
use folkmoot_protocol::{EncodeError, Format};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize)]
struct Frame {
    name: String,
    json: String,
    protobuf: String,
}

#[derive(Deserialize)]
struct MethodLine {
    method: String,
    request: Value,
    reply: Value,
}

#[derive(Deserialize)]
struct EventLine {
    stream: String,
    data: Value,
}

#[derive(Deserialize)]
struct HttpLine {
    r#type: String,
    data: Value,
}

fn lines<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let text = fs::read_to_string(path).expect("golden files are committed");
    text.lines().map(|line| serde_json::from_str(line).expect("a golden line is JSON")).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("golden bytes are hexadecimal") as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn both_ways<T: PartialEq + std::fmt::Debug>(
    file: &str,
    decode: impl Fn(Format, &[u8]) -> Vec<T>,
    encode: impl Fn(Format, &T, &mut Vec<u8>) -> Result<(), EncodeError>,
) {
    for frame in lines::<Frame>(file) {
        let name = &frame.name;
        let protobuf = from_hex(&frame.protobuf);
        let from_json = decode(Format::Json, frame.json.as_bytes());
        let from_protobuf = decode(Format::Protobuf, &protobuf);
        assert_eq!(from_json.len(), 1, "{name}");
        assert_eq!(from_json, from_protobuf, "{name}: both formats mean the same");
        let (mut json_out, mut protobuf_out) = (Vec::new(), Vec::new());
        encode(Format::Json, &from_json[0], &mut json_out).expect(name);
        encode(Format::Protobuf, &from_json[0], &mut protobuf_out).expect(name);
        assert_eq!(String::from_utf8_lossy(&json_out), frame.json, "{name}");
        assert_eq!(protobuf_out, protobuf, "{name}");
    }
}

#[test]
fn commands_read_and_write_as_committed() {
    both_ways::<Command>(
        "commands.jsonl",
        |format, frame| format.decode_commands(frame).expect("a golden command decodes"),
        |format, command, message| format.encode_command(command, message),
    );
}

#[test]
fn replies_read_and_write_as_committed() {
    both_ways::<Reply>(
        "replies.jsonl",
        |format, frame| format.decode_replies(frame).expect("a golden reply decodes"),
        |format, reply, message| format.encode_reply(reply, message),
    );
}

fn round_trip<T: Serialize + DeserializeOwned>(value: &Value) {
    let typed: T =
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"));
    assert_eq!(&serde_json::to_value(&typed).expect("payloads serialize"), value);
}

#[test]
fn events_read_and_write_as_committed() {
    for line in lines::<EventLine>("events.jsonl") {
        match line.stream.as_str() {
            "room" => round_trip::<RoomEvent>(&line.data),
            "user" => round_trip::<UserEvent>(&line.data),
            stream => panic!("no stream {stream}"),
        }
    }
}

#[test]
fn http_bodies_read_and_write_as_committed() {
    for line in lines::<HttpLine>("http.jsonl") {
        match line.r#type.as_str() {
            "AccountCreate" => round_trip::<AccountCreate>(&line.data),
            "SessionCreate" => round_trip::<SessionCreate>(&line.data),
            "SignedIn" => round_trip::<SignedIn>(&line.data),
            "Attachment" => round_trip::<Attachment>(&line.data),
            "ServerLimits" => round_trip::<ServerLimits>(&line.data),
            "Problem" => round_trip::<Problem>(&line.data),
            "ConnectData" => round_trip::<ConnectData>(&line.data),
            "AccountDelete" => round_trip::<AccountDelete>(&line.data),
            "AdminUserDelete" => round_trip::<AdminUserDelete>(&line.data),
            "AdminRoomUpdate" => round_trip::<AdminRoomUpdate>(&line.data),
            "PasswordChange" => round_trip::<PasswordChange>(&line.data),
            "AdminSettings" => round_trip::<AdminSettings>(&line.data),
            "AdminSettingsUpdate" => round_trip::<AdminSettingsUpdate>(&line.data),
            "SetupState" => round_trip::<SetupState>(&line.data),
            "SetupCreate" => round_trip::<SetupCreate>(&line.data),
            "PasswordReset" => round_trip::<PasswordReset>(&line.data),
            "AdminUsers" => round_trip::<AdminUsers>(&line.data),
            "AdminUserUpdate" => round_trip::<AdminUserUpdate>(&line.data),
            "ResetLink" => round_trip::<ResetLink>(&line.data),
            "AdminRooms" => round_trip::<AdminRooms>(&line.data),
            "StorageView" => round_trip::<StorageView>(&line.data),
            "LiveView" => round_trip::<LiveView>(&line.data),
            "ModerationPage" => round_trip::<ModerationPage>(&line.data),
            name => panic!("no body {name}"),
        }
    }
}

#[test]
fn methods_read_and_write_as_committed() {
    let lines = lines::<MethodLine>("methods.jsonl");
    macro_rules! check {
        ($($request:ty),* $(,)?) => {
            let checked = [$(<$request as Method>::NAME),*];
            assert_eq!(checked.as_slice(), Rpc::METHODS, "every method has its line");
            $({
                let line = lines.iter().find(|line| line.method == <$request>::NAME);
                let line = line.unwrap_or_else(|| panic!("no line for {}", <$request>::NAME));
                round_trip::<$request>(&line.request);
                round_trip::<<$request as Method>::Reply>(&line.reply);
                let rpc = Rpc::decode(&line.method, line.request.to_string().as_bytes());
                assert_eq!(rpc.expect("a golden request is accepted").method(), line.method);
            })*
        };
    }
    check!(
        RoomsList,
        RoomCreate,
        RoomGet,
        RoomUpdate,
        RoomArchive,
        RoomDelete,
        RoomLeave,
        RoomMembers,
        RoomAdd,
        RoomSetRole,
        RoomKick,
        RoomBan,
        RoomMute,
        RoomNotify,
        DirectOpen,
        DirectHide,
        RoomsBrowse,
        RoomJoin,
        RoomAccessGet,
        RoomAccessSet,
        InviteCreate,
        InviteList,
        InviteRevoke,
        InviteGet,
        InviteAccept,
        MessageSend,
        MessageEdit,
        MessageDelete,
        MessageReact,
        MessageReactions,
        MessageThread,
        MessagePin,
        RoomPins,
        MessageSave,
        SavedList,
        SavedMarks,
        HistoryGet,
        ReadSet,
        TypingSet,
        PresenceWatch,
        UsersFind,
        UserGet,
        UserBlock,
        UsersBlocked,
        ProfileUpdate,
        StatusSet,
        DevicesList,
        DevicesRevoke,
        Search,
        Sync,
    );
}

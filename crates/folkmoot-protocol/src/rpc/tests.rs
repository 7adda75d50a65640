//! Requests that must be refused, and how the refusal names its field.

use super::*;

const ROOM: &str = "0000000000007";

fn refusal(method: &str, data: &str) -> RpcError {
    Rpc::decode(method, data.as_bytes()).expect_err("the request must be refused")
}

#[test]
fn a_request_is_decoded_by_its_method() {
    let data = format!(r#"{{"room":"{ROOM}","key":"k1","body":"hello","later":"skipped"}}"#);
    let Ok(Rpc::MessageSend(send)) = Rpc::decode("message.send", data.as_bytes()) else {
        panic!("message.send must decode");
    };
    assert_eq!(
        (send.room.to_string().as_str(), send.key.as_str(), send.body.as_str()),
        (ROOM, "k1", "hello")
    );
    assert_eq!(Rpc::MessageSend(send).method(), "message.send");
}

#[test]
fn methods_without_arguments_accept_nothing_null_and_an_object() {
    for data in ["", "null", "{}"] {
        assert_eq!(
            Rpc::decode("rooms.list", data.as_bytes()),
            Ok(Rpc::RoomsList(RoomsList::default()))
        );
    }
}

#[test]
fn an_unknown_method_is_named_in_part() {
    let error = refusal(&"x".repeat(10_000), "{}");
    assert_eq!(error.code, ErrorCode::MethodNotFound);
    assert!(error.message.len() < 100);
}

#[test]
fn a_missing_field_is_named() {
    let error = refusal("message.send", &format!(r#"{{"room":"{ROOM}","body":"x"}}"#));
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::InvalidField, "key is missing"));
    assert_eq!(error.field.as_deref(), Some("key"));
}

#[test]
fn a_field_of_the_wrong_type_is_named() {
    let error = refusal("message.send", &format!(r#"{{"room":"{ROOM}","key":5,"body":"x"}}"#));
    assert_eq!(error.field.as_deref(), Some("key"));
    assert!(error.message.starts_with("key: invalid type"), "{}", error.message);
    let error = refusal("room.get", r#"{"room":"seven"}"#);
    assert!(error.message.contains("13 characters"), "{}", error.message);
}

#[test]
fn a_field_against_its_rule_is_named_with_its_limit() {
    let data = format!(r#"{{"room":"{ROOM}","key":"{}","body":"x"}}"#, "k".repeat(65));
    let error = refusal("message.send", &data);
    assert_eq!(error.code, ErrorCode::TooLarge);
    assert_eq!((error.field.as_deref(), error.limit), (Some("key"), Some(64)));
}

#[test]
fn two_anchors_of_history_exclude_each_other() {
    let error = refusal("history.get", &format!(r#"{{"room":"{ROOM}","before":5,"after":2}}"#));
    assert_eq!(error.field.as_deref(), Some("before"));
}

#[test]
fn broken_json_is_a_bad_request() {
    for data in ["{", "nonsense", "{} {}", "\u{feff}{}"] {
        assert_eq!(refusal("rooms.list", data).code, ErrorCode::BadRequest, "{data:?}");
    }
}

#[test]
fn temporary_errors_say_so_on_the_wire() {
    let error: crate::frame::Error = ErrorCode::StoreUnavailable.into();
    assert_eq!((error.code, error.temporary), (503, true));
    let error: crate::frame::Error = RpcError::invalid("name", "is taken").into();
    assert_eq!(
        (error.code, error.message.as_str(), error.temporary),
        (400, "name is taken", false)
    );
}

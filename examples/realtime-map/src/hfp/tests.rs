//! The format's promises: the documented example is read, everything else is refused by name and
//! never panics.

use proptest::prelude::*;

use super::vehicle_id::VehicleIdError;
use super::*;

const TOPIC: &str =
    "/hfp/v2/journey/ongoing/vp/bus/0055/01216/1069/1/Malmi/07:20/1130106/2/60;24/19/73/44";
const PAYLOAD: &str = r#"{"VP":{"desi":"69","dir":"1","oper":22,"veh":1216,"tst":"2026-03-01T05:24:37.864Z","tsi":1772342677,"spd":8.55,"hdg":179,"lat":60.174471,"long":24.937921,"acc":0.1,"dl":-37,"odo":1420,"drst":0,"oday":"2026-03-01","jrn":11,"line":74,"start":"07:20","loc":"GPS","stop":null,"route":"1069","occu":0}}"#;

fn read(topic: &str, payload: &str) -> Result<Option<(VehicleId, Report)>, MessageError> {
    read_message(topic.as_bytes(), payload.as_bytes())
}

fn with(from: &str, to: &str) -> Result<Option<(VehicleId, Report)>, MessageError> {
    assert!(PAYLOAD.contains(from));
    read(TOPIC, &PAYLOAD.replace(from, to))
}

#[test]
fn a_message_of_the_documented_form_is_read() {
    let (vehicle, report) = read(TOPIC, PAYLOAD).unwrap().unwrap();
    assert_eq!(vehicle.to_string(), "0055/01216");
    assert_eq!((vehicle.operator(), vehicle.number()), (55, 1216));
    assert_eq!(report.at_ms, 1_772_342_677_864);
    assert_eq!(report.place.to_string(), "60.174471,24.937921");
    assert_eq!((report.speed_cm_s, report.heading_deg), (Some(855), Some(179)));
    assert_eq!((report.delay_s, report.direction, report.mode), (-37, 1, Mode::Bus));
    assert_eq!(report.line.as_str(), "69");
}

#[test]
fn a_vehicle_without_a_fix_is_no_error() {
    assert_eq!(with(r#""lat":60.174471"#, r#""lat":null"#), Ok(None));
}

#[test]
fn missing_speed_and_heading_are_unknown() {
    let (_, report) = with(r#""spd":8.55,"hdg":179"#, r#""spd":null,"hdg":null"#).unwrap().unwrap();
    assert_eq!((report.speed_cm_s, report.heading_deg), (None, None));
}

#[test]
fn a_deadrun_with_empty_levels_is_read() {
    let topic = "/hfp/v2/deadrun/ongoing/vp/tram/0040/00415////////";
    let (vehicle, report) = read(topic, PAYLOAD).unwrap().unwrap();
    assert_eq!((vehicle.to_string().as_str(), report.direction), ("0040/00415", 0));
}

#[test]
fn bad_topics_are_refused_by_name() {
    let refused = |topic: &str| match read(topic, PAYLOAD) {
        Err(MessageError::Topic(error)) => error,
        other => panic!("{topic}: {other:?}"),
    };
    assert_eq!(refused(""), TopicError::TooShort(1));
    assert_eq!(refused("/hfp/v2/journey"), TopicError::TooShort(4));
    assert_eq!(refused(&TOPIC.replace("v2", "v1")), TopicError::OtherPrefix);
    assert_eq!(refused(&TOPIC.replace("/vp/", "/due/")), TopicError::OtherEvent);
    assert_eq!(refused(&TOPIC.replace("01216", "+1216")), TopicError::BadVehicle);
    assert_eq!(refused(&TOPIC.replace("0055", "00055")), TopicError::BadVehicle);
    assert_eq!(refused(&TOPIC.repeat(10)), TopicError::TooLong(TOPIC.len() * 10));
    let error = read_message(b"/hfp/v2/journey/ongoing/vp/bus/\xff/1", PAYLOAD.as_bytes());
    assert_eq!(error, Err(TopicError::NotUtf8.into()));
}

#[test]
fn bad_payloads_are_refused_by_name() {
    assert_eq!(with("60.174471", "91"), Err(PayloadError::OffTheGlobe.into()));
    assert_eq!(with("8.55", "-1"), Err(PayloadError::OutOfRange("spd").into()));
    assert_eq!(with(":179", ":361"), Err(PayloadError::OutOfRange("hdg").into()));
    assert_eq!(with("05:24:37.864Z", "05:24:37.864"), Err(PayloadError::BadTime.into()));
    assert!(matches!(with("{\"VP\"", "{\"XX\""), Err(MessageError::Payload(_))));
    assert!(matches!(read(TOPIC, ""), Err(MessageError::Payload(PayloadError::NotJson(_)))));
    let long = " ".repeat(PAYLOAD_LEN_MAX + 1);
    assert_eq!(read(TOPIC, &long), Err(PayloadError::TooLong(long.len()).into()));
}

#[test]
fn times_are_read_to_the_millisecond() {
    assert_eq!(parse_timestamp_ms("1970-01-01T00:00:00Z"), Some(0));
    assert_eq!(parse_timestamp_ms("2000-02-29T23:59:59.9Z"), Some(951_868_799_900));
    assert_eq!(parse_timestamp_ms("2026-11-21T14:00:00.123456Z"), Some(1_795_269_600_123));
    for bad in ["2026-13-01T00:00:00Z", "1969-01-01T00:00:00Z", "2026-01-01 00:00:00Z", "Z", ""] {
        assert_eq!(parse_timestamp_ms(bad), None, "{bad}");
    }
}

#[test]
fn a_long_line_name_keeps_whole_characters() {
    assert_eq!(Line::new("Länsisatama").as_str(), "Länsisa");
    assert_eq!(Line::new("ääääää").as_str(), "ääää");
    assert_eq!(Line::new("1\u{0}0").as_str(), "10");
}

#[test]
fn a_vehicle_is_named_as_it_is_written() {
    assert_eq!(VehicleId::parse("55/1216"), VehicleId::new(55, 1216));
    for bad in ["", "/", "55", "55/", "55/-1", "10000/1", "1/100000", "1/2/3", "a/b", "+1/2"] {
        assert_eq!(VehicleId::parse(bad), Err(VehicleIdError), "{bad}");
    }
    assert_eq!(VehicleId::from_packed(u32::MAX), None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(topic: Vec<u8>, payload: Vec<u8>) {
        let _ = read_message(&topic, &payload);
        let _ = read_message(TOPIC.as_bytes(), &payload);
    }

    #[test]
    fn a_damaged_message_never_panics(at in 0..PAYLOAD.len(), byte: u8, cut in 0..PAYLOAD.len()) {
        let mut bytes = PAYLOAD.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = read_message(TOPIC.as_bytes(), &bytes);
        let _ = read_message(TOPIC.as_bytes(), &bytes[..cut]);
        let mut topic = TOPIC.as_bytes().to_vec();
        let place = at % topic.len();
        topic[place] = byte;
        let _ = read_message(&topic, PAYLOAD.as_bytes());
    }

    #[test]
    fn every_vehicle_survives_being_written_and_packed(operator in 0..=9_999_u32, number in 0..=99_999_u32) {
        let id = VehicleId::new(operator, number).unwrap();
        prop_assert_eq!(VehicleId::parse(id.key().as_ref()), Ok(id));
        prop_assert_eq!(VehicleId::from_packed(id.packed()), Some(id));
        prop_assert_eq!((u32::from(id.operator()), id.number()), (operator, number));
    }

    #[test]
    fn times_of_arbitrary_text_never_panic(text in ".*") {
        let _ = parse_timestamp_ms(&text);
    }
}

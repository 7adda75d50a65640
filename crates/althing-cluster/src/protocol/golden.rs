//! Frames as nodes of each version that is spoken write them, byte by byte: a change of these bytes
//! is a new version.

use althing::{ActorId, Wire};

use super::{Back, Forth, Greeting, Item, Outcome, Packed, VERSION, WIRE_FLOOR, framed};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits are ASCII"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("it is a number")).collect()
}

/// Of that version, and of all since.
fn frames() -> Vec<(u32, Forth, &'static str)> {
    let packed = Packed {
        epoch: 5,
        to: ActorId::named("shop.cart", "a"),
        node: None,
        name: "add".to_owned(),
        body: vec![8, 1],
        priority: 0,
        chain: Vec::new(),
        ask: Some(9),
        control: None,
    };
    let item = |number, item| Forth::Item { number, view: 3, item };
    let to = ActorId::named("shop.cart", "a");
    let route = Item::Route { route: 2, to, name: "add".to_owned(), epoch: 5 };
    let reply = Item::Reply { ask: 9, outcome: Outcome::Replied(vec![8, 4]) };
    vec![
        (4, Forth::Ping, PING),
        (4, item(1, Item::Parcel(packed)), PARCEL),
        (4, item(2, reply), REPLY),
        (4, item(7, Item::Closing), CLOSING),
        (5, item(8, route), ROUTE),
        (5, Forth::Tells { first: 9, view: 3, tells: vec![2, 2, 8, 1, 2, 0] }, TELLS),
    ]
}

const PING: &str = "00000002 1200";
const PARCEL: &str = "00000027 0a25 0801 1003 1a1f 0a1d 0805
    120e 0a09 73686f702e63617274 120161 2203 616464 2a02 0801 4009";
const REPLY: &str = "00000012 0a10 0802 1003 1a0a 3208 0809 1204 0a02 0804";
const CLOSING: &str = "0000000a 0a08 0807 1003 1a02 2200";
const ROUTE: &str = "00000023 0a21 0808 1003 1a1b 7a19 0802
    120e 0a09 73686f702e63617274 120161 1a03 616464 2005";
const TELLS: &str = "0000000e 1a0c 0809 1003 1a06 02020801 0200";

#[test]
fn frames_of_both_versions_that_are_spoken_are_frozen() {
    assert_eq!((WIRE_FLOOR, VERSION), (4, 5), "add frames of the new version");
    for (version, forth, hex) in frames() {
        let golden = bytes(hex);
        assert_eq!(framed(&forth), golden, "version {version}: {forth:?}");
        let read = Forth::decode(&golden[4..]).expect("it is a frame");
        assert_eq!(format!("{read:?}"), format!("{forth:?}"));
    }
    let greeting = Greeting { version: 4, cluster: "c".to_owned(), from: 1, to: 2 };
    assert_eq!(framed(&greeting), bytes("00000009 0804 120163 1801 2002"));
    assert_eq!(framed(&Back { received: 8, taken: 3 }), bytes("00000004 0808 1003"));
}

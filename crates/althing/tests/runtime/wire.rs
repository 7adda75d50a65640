//! Values between nodes: the same bytes as protobuf's, and nothing that arbitrary bytes could
//! break.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use althing::wire::WireField;
use althing::{Codecs, Timestamp, Wire, actor};

fn bytes_of(value: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

#[track_caller]
fn survives<T: Wire + PartialEq + Debug>(value: &T) {
    assert_eq!(T::decode(&bytes_of(value)).as_ref(), Ok(value));
}

#[derive(Clone, Debug, Default, PartialEq, Wire)]
struct Numbers {
    a: u8,
    b: u16,
    c: u32,
    d: u64,
    e: i32,
    f: i64,
    g: bool,
    h: f32,
    i: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProstNumbers {
    #[prost(uint32, tag = "1")]
    a: u32,
    #[prost(uint32, tag = "2")]
    b: u32,
    #[prost(uint32, tag = "3")]
    c: u32,
    #[prost(uint64, tag = "4")]
    d: u64,
    #[prost(sint32, tag = "5")]
    e: i32,
    #[prost(sint64, tag = "6")]
    f: i64,
    #[prost(bool, tag = "7")]
    g: bool,
    #[prost(float, tag = "8")]
    h: f32,
    #[prost(double, tag = "9")]
    i: f64,
}

#[derive(Clone, Debug, PartialEq, Wire)]
struct Order {
    name: String,
    #[wire(4)]
    count: Option<u32>,
    raw: Vec<u8>,
    sizes: Vec<i64>,
    lines: Vec<Line>,
    colour: Colour,
    delivery: Delivery,
    prices: BTreeMap<String, u64>,
    tags: Vec<String>,
    colours: Vec<Colour>,
    first: Option<Box<Line>>,
}

#[derive(Clone, Debug, PartialEq, Wire)]
struct Line {
    text: Arc<str>,
    size: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Wire)]
enum Colour {
    Red,
    #[wire(5)]
    Green,
    Blue,
}

#[derive(Clone, Debug, PartialEq, Wire)]
enum Delivery {
    Fetched,
    Sent(String),
    #[wire(7)]
    Parts {
        count: u32,
        first: Line,
    },
    Within(Vec<u32>),
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProstOrder {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, optional, tag = "4")]
    count: Option<u32>,
    #[prost(bytes = "vec", tag = "5")]
    raw: Vec<u8>,
    #[prost(sint64, repeated, tag = "6")]
    sizes: Vec<i64>,
    #[prost(message, repeated, tag = "7")]
    lines: Vec<ProstLine>,
    #[prost(enumeration = "ProstColour", tag = "8")]
    colour: i32,
    #[prost(message, required, tag = "9")]
    delivery: ProstDelivery,
    #[prost(btree_map = "string, uint64", tag = "10")]
    prices: BTreeMap<String, u64>,
    #[prost(string, repeated, tag = "11")]
    tags: Vec<String>,
    #[prost(enumeration = "ProstColour", repeated, tag = "12")]
    colours: Vec<i32>,
    #[prost(message, optional, tag = "13")]
    first: Option<ProstLine>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProstLine {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(uint32, tag = "2")]
    size: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum ProstColour {
    Red = 0,
    Green = 5,
    Blue = 6,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProstDelivery {
    #[prost(oneof = "ProstHow", tags = "1, 2, 7, 8")]
    how: Option<ProstHow>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum ProstHow {
    #[prost(message, tag = "1")]
    Fetched(()),
    #[prost(string, tag = "2")]
    Sent(String),
    #[prost(message, tag = "7")]
    Parts(ProstParts),
    #[prost(message, tag = "8")]
    Within(ProstWithin),
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProstParts {
    #[prost(uint32, tag = "1")]
    count: u32,
    #[prost(message, required, tag = "2")]
    first: ProstLine,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProstWithin {
    #[prost(uint32, repeated, tag = "1")]
    days: Vec<u32>,
}

#[test]
fn numbers_have_the_bytes_of_prost() {
    let edges = [0, 1, 127, 128, 255, u64::from(u32::MAX), u64::MAX];
    for edge in edges {
        let (small, signed) = ((edge & 0xff) as u8, edge.cast_signed());
        let e = (signed & i64::from(i32::MAX)) as i32;
        let numbers = Numbers {
            a: small,
            b: u16::from(small) << 8,
            c: edge as u32,
            d: edge,
            e: e.wrapping_neg(),
            f: signed,
            g: edge != 0,
            h: edge as f32 / 3.0,
            i: edge as f64 / 7.0,
        };
        let same = ProstNumbers {
            a: numbers.a.into(),
            b: numbers.b.into(),
            c: numbers.c,
            d: numbers.d,
            e: numbers.e,
            f: numbers.f,
            g: numbers.g,
            h: numbers.h,
            i: numbers.i,
        };
        assert_eq!(bytes_of(&numbers), prost::Message::encode_to_vec(&same), "{numbers:?}");
        survives(&numbers);
    }
}

fn order(delivery: Delivery) -> Order {
    Order {
        name: "tea".repeat(60),
        count: Some(0),
        raw: vec![0, 255, 7],
        sizes: vec![0, -1, i64::MIN, i64::MAX],
        lines: vec![line(""), line("two"), line(&"long".repeat(5_000))],
        colour: Colour::Blue,
        delivery,
        prices: [("tea".to_owned(), 3), (String::new(), 0)].into(),
        tags: vec![String::new(), "hot".to_owned()],
        colours: vec![Colour::Green, Colour::Red],
        first: Some(Box::new(line("first"))),
    }
}

fn line(text: &str) -> Line {
    Line { text: text.into(), size: u16::try_from(text.len()).unwrap() }
}

fn same_line(text: &str) -> ProstLine {
    ProstLine { text: text.to_owned(), size: u32::try_from(text.len()).unwrap() }
}

#[test]
fn messages_have_the_bytes_of_prost() {
    let deliveries = [
        (Delivery::Fetched, ProstHow::Fetched(())),
        (Delivery::Sent(String::new()), ProstHow::Sent(String::new())),
        (Delivery::Sent("home".to_owned()), ProstHow::Sent("home".to_owned())),
        (
            Delivery::Parts { count: 2, first: line("a") },
            ProstHow::Parts(ProstParts { count: 2, first: same_line("a") }),
        ),
        (Delivery::Within(vec![1, 300]), ProstHow::Within(ProstWithin { days: vec![1, 300] })),
    ];
    for (delivery, how) in deliveries {
        let order = order(delivery);
        let same = ProstOrder {
            name: order.name.clone(),
            count: order.count,
            raw: order.raw.clone(),
            sizes: order.sizes.clone(),
            lines: order.lines.iter().map(|line| same_line(&line.text)).collect(),
            colour: ProstColour::Blue.into(),
            delivery: ProstDelivery { how: Some(how) },
            prices: order.prices.clone(),
            tags: order.tags.clone(),
            colours: vec![ProstColour::Green.into(), ProstColour::Red.into()],
            first: Some(same_line("first")),
        };
        assert_eq!(bytes_of(&order), prost::Message::encode_to_vec(&same));
        survives(&order);
    }
}

#[test]
fn a_value_that_is_no_message_is_the_field_1_of_one() {
    assert_eq!(bytes_of(&300_u32), [0x08, 0xac, 0x02]);
    assert_eq!(bytes_of(&-1_i32), [0x08, 1]);
    assert_eq!(bytes_of(&"tea".to_owned()), [0x0a, 3, b't', b'e', b'a']);
    assert_eq!(bytes_of(&vec![1_u32, 2]), [0x0a, 2, 1, 2]);
    assert_eq!(bytes_of(&vec![1_u8, 2]), [0x0a, 2, 1, 2]);
    assert_eq!(bytes_of(&Some(0_u32)), [0x08, 0]);
    assert_eq!(bytes_of(&()), []);
    assert_eq!(bytes_of(&(1_u8, true)), [0x08, 1, 0x10, 1]);
    assert_eq!(bytes_of(&Colour::Green), [0x08, 5]);
    assert_eq!(bytes_of(&Ok::<u32, String>(0)), [0x08, 0]);
    assert_eq!(bytes_of(&Err::<u32, String>("no".to_owned())), [0x12, 2, b'n', b'o']);
    assert_eq!(bytes_of(&Duration::from_nanos(300)), [0x08, 0xac, 0x02]);
    assert_eq!(bytes_of(&Timestamp(300)), [0x08, 0xac, 0x02]);
    assert_eq!(bytes_of(&bytes::Bytes::from_static(b"ab")), [0x0a, 2, b'a', b'b']);
}

#[test]
fn lists_and_options_survive_inside_each_other() {
    survives(&vec![vec![1_u32, 2], vec![]]);
    survives(&vec![vec![1_u8, 2], vec![]]);
    survives(&Some(Vec::<u8>::new()));
    survives(&vec![Some(None), Some(Some(3_u8)), None]);
    survives(&Ok::<Vec<Line>, ()>(vec![line("a")]));
    survives(&Err::<Vec<Line>, ()>(()));
    survives(&Ok::<Option<Line>, Colour>(None));
    survives(&(vec![1_i8, -1], Some(Box::new((1_u64,))), -0.0_f64, f32::NEG_INFINITY));
    survives(&Duration::from_nanos(u64::MAX));
    survives(&(usize::MAX, isize::MIN, i16::MIN, u16::MAX));
}

#[test]
fn what_is_not_there_reads_as_nothing() {
    assert_eq!(Numbers::decode(&[]), Ok(Numbers::default()));
    assert_eq!(<(String, Option<u8>, Vec<Line>)>::decode(&[]), Ok(Default::default()));
    assert_eq!(<(Line,)>::decode(&[]), Ok((line(""),)));
    let error = Order::decode(&[]).unwrap_err();
    assert_eq!(error.to_string(), "delivery: none of the known variants");
}

#[derive(Debug, PartialEq, Wire)]
struct Newer {
    text: String,
    size: u16,
    #[wire(900)]
    more: Vec<u64>,
    ratio: f32,
    exact: f64,
}

#[test]
fn fields_that_nobody_knows_are_skipped() {
    let newer =
        Newer { text: "a".to_owned(), size: 1, more: vec![1, 2, 3], ratio: 1.0, exact: 2.0 };
    assert_eq!(Line::decode(&bytes_of(&newer)), Ok(line("a")));
    assert_eq!(<()>::decode(&bytes_of(&newer)), Ok(()));
}

#[test]
fn of_a_field_that_is_there_twice_the_later_counts() {
    let twice = [bytes_of(&line("a")), bytes_of(&line("bc"))].concat();
    assert_eq!(Line::decode(&twice), Ok(line("bc")));
    let twice = [bytes_of(&Ok::<u8, u8>(1)), bytes_of(&Err::<u8, u8>(2))].concat();
    assert_eq!(Result::<u8, u8>::decode(&twice), Ok(Err(2)));
}

#[test]
fn numbers_in_a_list_may_be_packed_or_not() {
    let mut unpacked = Vec::new();
    for number in [1_u32, 300] {
        number.encode_single(1, &mut unpacked);
    }
    assert_eq!(Vec::<u32>::decode(&unpacked), Ok(vec![1, 300]));
}

#[test]
fn bytes_that_are_no_value_are_refused_and_the_field_is_named() {
    let cases: [(&[u8], &str); 9] = [
        (&[0x08], "the bytes end too early"),
        (&[0x0a, 5, b'a'], "the bytes end too early"),
        (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], "the bytes end too early"),
        (&[0x10, 0xff, 0xff, 0x7f], "size: a number out of its type's range"),
        (&[0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], "more than 64 bits"),
        (&[0x0a, 1, 0xff], "text: text that is not UTF-8"),
        (&[0x08, 1], "text: a number where text, bytes or a message belongs"),
        (&[0x00, 1], "a field number out of range"),
        (&[0x0b], "no field has the wire type 3"),
    ];
    for (bytes, expected) in cases {
        let error = Line::decode(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let nested = Order::decode(&[0x3a, 2, 0x10, 0x80]).unwrap_err().to_string();
    assert_eq!(nested, "lines: the bytes end too early");
    assert_eq!(Colour::decode(&[0x08, 1]).unwrap_err().to_string(), "no variant has the number 1");
}

#[derive(Debug, PartialEq, Wire)]
struct Nest {
    inner: Option<Box<Nest>>,
}

#[test]
fn messages_nest_32_deep_and_no_deeper() {
    let nest =
        |depth| (0..depth).fold(Nest { inner: None }, |nest, _| Nest { inner: Some(nest.into()) });
    survives(&nest(32));
    let error = Nest::decode(&bytes_of(&nest(33))).unwrap_err().to_string();
    assert!(error.ends_with("more than 32 messages nested in each other"), "{error}");
}

#[test]
fn arbitrary_and_damaged_bytes_never_panic() {
    let whole = bytes_of(&order(Delivery::Parts { count: 2, first: line("a") }));
    let mut random = Random(7);
    for round in 0..40_000 {
        let mut bytes = if round % 2 == 0 {
            (0..random.below(200)).map(|_| random.byte()).collect()
        } else {
            whole[..1 + random.below(600)].to_vec()
        };
        for _ in 0..1 + random.below(3) {
            let place = random.below(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(place) {
                *byte = random.byte();
            }
        }
        let _ = Order::decode(&bytes);
        let _ = Numbers::decode(&bytes);
        let _ = Nest::decode(&bytes);
        let _ = Result::<Vec<Vec<u16>>, (Colour, Delivery)>::decode(&bytes);
        if let Ok(value) = Vec::<u64>::decode(&bytes) {
            assert!(
                value.capacity() <= 2 * bytes.len() + 4,
                "a capacity that no data stands behind"
            );
        }
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap() % limit
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

#[derive(Default)]
struct Cart {
    lines: Vec<Line>,
}

#[actor(name = "shop.cart", wire)]
impl Cart {
    #[wire(name = "put")]
    async fn add(&mut self, line: Line, times: u16) -> Result<u32, Colour> {
        self.lines.extend(std::iter::repeat_n(line, times.into()));
        u32::try_from(self.lines.len()).map_err(|_| Colour::Red)
    }

    async fn lines(&self) -> Vec<Line> {
        self.lines.clone()
    }

    async fn r#move(&mut self) {}

    /// Stays here: a task cannot travel.
    #[wire(skip)]
    async fn run(&mut self, task: fn(&mut Vec<Line>)) {
        task(&mut self.lines);
    }
}

#[test]
fn messages_travel_by_the_name_of_their_method_unless_they_have_another() {
    let codecs = Codecs::<Cart>::new().unwrap();
    let mut names: Vec<&str> = codecs.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["lines", "move", "put"]);
    let put = cart_messages::Add { line: line("tea"), times: 2 };
    let bytes = bytes_of(&put);
    assert_eq!(bytes, bytes_of(&(line("tea"), 2_u16)));
    assert_eq!(cart_messages::Add::decode(&bytes).unwrap().times, 2);
}

struct Shelf<T>(Vec<T>);

#[actor(name = "shelf", wire)]
impl<T: Clone + Send + Sync + 'static> Shelf<T> {
    async fn keep(&mut self, row: T) -> Option<T> {
        self.0.push(row);
        self.0.first().cloned()
    }

    async fn len(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn a_generic_actor_travels_if_its_types_do() {
    assert_eq!(Codecs::<Shelf<Line>>::new().unwrap().names().count(), 2);
}

//! Metrics as text are valid for Prometheus whatever actors and messages are called.

use std::collections::HashSet;

use althing::{Actor, Context, Handler, Node};

const ODD: &str = "a<b, \"c\">\\d\nof e";

struct Odd;
struct Again;

mod left {
    pub(crate) struct Add;
}

mod right {
    pub(crate) struct Add;
}

impl Actor for Odd {
    const NAME: &'static str = ODD;
}

impl Actor for Again {
    const NAME: &'static str = ODD;
}

impl Handler<left::Add> for Odd {
    type Reply = ();
    async fn handle(&mut self, _: left::Add, _ctx: &mut Context<Self>) {}
}

impl Handler<right::Add> for Odd {
    type Reply = ();
    async fn handle(&mut self, _: right::Add, _ctx: &mut Context<Self>) {}
}

impl Handler<Vec<(u8, Option<u8>)>> for Odd {
    type Reply = ();
    async fn handle(&mut self, _: Vec<(u8, Option<u8>)>, _ctx: &mut Context<Self>) {}
}

/// The labels' values of a line, by the text format's own rules; the rest of it has to be a number.
fn values(line: &str) -> Vec<String> {
    let (name, mut rest) = line.split_once('{').expect("every series has labels");
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
    let mut values = Vec::new();
    loop {
        let (label, after) = rest.split_once("=\"").expect(line);
        assert!(label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect(line) {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().expect(line).1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("no escape: {c} in {line}"),
                }),
                (_, c) => value.push(c),
            }
        };
        values.push(value);
        rest = &after[end + 1..];
        if let Some(number) = rest.strip_prefix("} ") {
            number.parse::<f64>().expect(line);
            return values;
        }
        rest = rest.strip_prefix(',').expect(line);
    }
}

#[tokio::test]
async fn each_series_comes_once_and_names_come_back_whole() {
    let node = Node::builder("odd").actor(async |_| Ok(Odd)).build();
    // The first message of a thread is timed, and one in 512: each of the three is, once.
    let odd = node.get::<Odd>("a");
    odd.send(left::Add).await.unwrap();
    for _ in 1..512 {
        odd.send(right::Add).await.unwrap();
    }
    odd.send(right::Add).await.unwrap();
    for _ in 513..1_024 {
        odd.send(left::Add).await.unwrap();
    }
    odd.send(vec![(1_u8, None::<u8>)]).await.unwrap();
    // Another type of the same name is refused when it starts, and is known from then on.
    let again = node.spawn(Again);
    again.stopped().await;
    let text = node.metrics().prometheus_text();
    let mut series = HashSet::new();
    let mut messages = HashSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let values = values(line);
        assert_eq!(values[0], ODD, "{line}");
        let (name, _) = line.rsplit_once(' ').unwrap();
        assert!(series.insert(name.to_owned()), "twice: {name}");
        if line.starts_with("althing_message_handling_seconds_count") {
            messages.insert(values[1].clone());
        }
    }
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages.contains("Vec<(u8, Option<u8>)>"), "{messages:?}");
}

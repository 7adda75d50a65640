use std::collections::BTreeMap;

use serde_json::Value;

use super::super::tests::{KEEP, connection, join, only, tagged, waiting};
use super::super::{Answer, Channels, Join, Post};
use super::*;
use crate::connection::Connection;
use crate::fossil::tests::apply;

/// A client that reads deltas as the SDKs do, with the kind of publications that it wants.
struct Reader {
    kind: Option<&'static str>,
    connection: Arc<Connection>,
    is_subscribed: bool,
    position: Option<(u64, String)>,
    value: Vec<u8>,
    heard: Vec<Vec<u8>>,
    wanted: Vec<Vec<u8>>,
}

impl Reader {
    fn new(number: usize, kind: Option<&'static str>) -> Self {
        let connection = connection(&number.to_string());
        let (value, heard, wanted) = (Vec::new(), Vec::new(), Vec::new());
        Self { kind, connection, is_subscribed: false, position: None, value, heard, wanted }
    }

    fn wants(&self, kind: &str) -> bool {
        self.kind.is_none_or(|wanted| wanted == kind)
    }

    /// Subscribes, or goes.
    fn turn(&mut self, channels: &mut Channels, kept: &BTreeMap<u64, (Vec<u8>, String)>) {
        self.read();
        self.is_subscribed = !self.is_subscribed;
        if !self.is_subscribed {
            channels.leave(&"news".into(), &self.connection.id, 0);
            return;
        }
        let result =
            SubscribeResult { delta: true, recoverable: true, ..SubscribeResult::default() };
        let asked = Join {
            filter: self.kind.and_then(only),
            tells_coming: false,
            result,
            answer: Answer::Reply(1),
            ..join(&self.connection, self.position.clone())
        };
        let result = channels.join_here(asked, 0).unwrap();
        if let Some((from, _)) = self.position.as_ref().filter(|_| result.recovered) {
            let missed = kept.range(from + 1..).filter(|(_, (_, kind))| self.wants(kind));
            let missed: Vec<_> = missed.map(|(_, (document, _))| document.clone()).collect();
            self.wanted.extend(missed);
        }
        self.position = Some((result.offset, result.epoch));
    }

    fn read(&mut self) {
        for message in waiting(&self.connection) {
            let message: Value = serde_json::from_slice(&message).unwrap();
            let missed = message["subscribe"]["publications"].as_array().cloned();
            let pushed = Some(message["push"]["pub"].clone()).filter(Value::is_object);
            for publication in missed.into_iter().flatten().chain(pushed) {
                let data = publication["data"].as_str().expect("a string").as_bytes();
                self.value = match publication["delta"].as_bool() {
                    Some(true) => apply(&self.value, data),
                    _ => data.to_vec(),
                };
                self.heard.push(self.value.clone());
                if let (Some(offset), Some(position)) =
                    (publication["offset"].as_u64(), &mut self.position)
                {
                    position.0 = offset;
                }
            }
        }
        assert_eq!(self.heard, self.wanted);
    }
}

fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

/// Readers with and without filters come and go among publications of all sorts.
fn read_all(seed: u64) {
    let mut state = seed;
    let (mut channels, mut kept) = (Channels::new(), BTreeMap::new());
    let kinds = [None, Some("a"), Some("b"), Some("c"), None];
    let mut readers: Vec<_> =
        kinds.iter().enumerate().map(|(number, kind)| Reader::new(number, *kind)).collect();
    for number in 0..80 {
        if random(&mut state) % 3 == 1 {
            let reader = random(&mut state) % readers.len();
            readers[reader].turn(&mut channels, &kept);
        } else {
            let kind = ["a", "b"][random(&mut state) % 2];
            let text = format!("{}{number}", "a long text ".repeat(random(&mut state) % 9));
            let keep = Some(KEEP).filter(|_| !random(&mut state).is_multiple_of(4));
            let may_be_delta = !random(&mut state).is_multiple_of(4);
            let post = Post { keep, may_be_delta, ..tagged(kind, &text) };
            let position = channels.publish_one(&"news".into(), &post, 0);
            let document = post.payload.data.to_vec();
            if position.offset > 0 {
                kept.insert(position.offset, (document.clone(), kind.to_owned()));
            }
            for reader in readers.iter_mut().filter(|one| one.is_subscribed && one.wants(kind)) {
                reader.wanted.push(document.clone());
            }
        }
        // Some read later than others.
        if random(&mut state) % 2 == 1 {
            readers.iter_mut().for_each(Reader::read);
        }
    }
    readers.iter_mut().for_each(Reader::read);
}

#[test]
fn who_comes_back_with_and_without_a_filter_reads_the_same_documents_from_deltas() {
    for seed in 0..500 {
        let outcome = std::panic::catch_unwind(|| read_all(seed));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

//! Bytes become envelopes, and their replies bytes, without any network.

use std::sync::mpsc;

use super::*;
use crate::activation::context::Context;
use crate::actor::Handler;
use crate::error::AskError;
use crate::mail::dispatch::Write;

struct Counter;

impl Actor for Counter {
    const NAME: &'static str = "counter";
}

impl Handler<u32> for Counter {
    type Reply = String;
    async fn handle(&mut self, message: u32, _: &mut Context<Self>) -> String {
        message.to_string()
    }
}

impl Handler<u64> for Counter {
    type Reply = u64;
    async fn handle(&mut self, message: u64, _: &mut Context<Self>) -> u64 {
        message
    }
}

impl Remote for Counter {
    fn codecs(codecs: &mut Codecs<Self>) {
        codecs.message::<u32, Write>("say").message::<u64, Write>("count");
    }
}

type Outcome = Result<Vec<u8>, Option<AskError>>;

fn wire_reply() -> (Option<WireReply>, mpsc::Receiver<Outcome>) {
    let (sender, receiver) = mpsc::channel();
    let reply: WireReply = Box::new(move |outcome| sender.send(outcome).expect("a receiver"));
    (Some(reply), receiver)
}

#[test]
fn a_message_is_found_by_its_type_and_by_its_name() {
    let codecs = Codecs::<Counter>::new().expect("different names");
    let codecs: &dyn AnyCodecs = &codecs;
    let codec = codecs.of::<u32, String>().expect("registered");
    let mut bytes = Vec::new();
    (codec.encode)(&7, &mut bytes);
    assert_eq!(codec.name, "say");
    assert!(codecs.of::<u8, String>().is_none());
    let (mut reply, _outcome) = wire_reply();
    let envelope = codecs.decode("say", &bytes, &mut reply).expect("the name").expect("a message");
    assert!(reply.is_none());
    assert_eq!((envelope.name())(), std::any::type_name::<u32>());
    assert!(codecs.decode("shout", &bytes, &mut reply).is_none());
    assert_eq!((codec.decode_reply)(&[0x0a, 1, b'7']), Ok("7".to_owned()));
}

#[test]
fn what_becomes_of_a_message_reaches_the_sender_s_slot() {
    let codecs = Codecs::<Counter>::new().expect("different names");
    let (mut reply, outcome) = wire_reply();
    let envelope = codecs.decode("count", &[8, 1], &mut reply).expect("the name").expect("good");
    envelope.reject(AskError::Cycle(Vec::new()));
    assert_eq!(outcome.recv(), Ok(Err(Some(AskError::Cycle(Vec::new())))));
    let (mut reply, outcome) = wire_reply();
    drop(codecs.decode("count", &[8, 1], &mut reply));
    assert_eq!(outcome.recv(), Ok(Err(None)));
}

#[test]
fn bytes_that_are_no_message_leave_the_sender_its_slot() {
    let codecs = Codecs::<Counter>::new().expect("different names");
    let (mut reply, _outcome) = wire_reply();
    assert!(codecs.decode("count", &[8], &mut reply).expect("the name").is_err());
    assert!(reply.is_some());
}

#[test]
fn two_messages_of_one_name_are_found_out() {
    struct Twice;
    impl Actor for Twice {
        const NAME: &'static str = "twice";
    }
    impl Handler<u32> for Twice {
        type Reply = ();
        async fn handle(&mut self, _: u32, _: &mut Context<Self>) {}
    }
    impl Handler<u64> for Twice {
        type Reply = ();
        async fn handle(&mut self, _: u64, _: &mut Context<Self>) {}
    }
    impl Remote for Twice {
        fn codecs(codecs: &mut Codecs<Self>) {
            codecs.message::<u32, Write>("say").message::<u64, Write>("say");
        }
    }
    let error = Codecs::<Twice>::new().expect_err("one name");
    assert_eq!(error.to_string(), "twice registers `say` twice");
}

//! What a thread keeps for itself is dropped as the thread ends, after the runtime's own thread-locals
//! perhaps. Such a drop may use the runtime as any other.

use std::cell::RefCell;

use crate::support::{AtDrop, Flex, alone, flex, node, nothing};
use althing::{ActorRef, Node};
use tokio::runtime::Builder;

type Deed = fn(&Node, &ActorRef<Flex>);
type Last = AtDrop<Box<dyn FnMut()>>;

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

const DEEDS: [Deed; 4] = [
    |_, actor| actor.send(nothing()).try_tell().expect("there is room"),
    |node, _| drop(node.spawn(Flex::default())),
    |_, actor| drop(actor.stop()),
    |_, actor| actor.kill(),
];

fn at_the_end_of_a_thread(deed: Deed, is_before_all: bool) {
    let home = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (node, actor, other) = home.block_on(async {
        let node = node();
        (node.clone(), flex(&node), flex(&node))
    });
    let thread = std::thread::spawn(move || {
        if is_before_all {
            // What is used first is dropped last.
            LAST.with_borrow_mut(|last| *last = Some(AtDrop(Box::new(|| {}))));
        }
        other.send(nothing()).try_tell().expect("there is room");
        node.spawn(Flex::default()).kill();
        let deed: Box<dyn FnMut()> = Box::new(move || deed(&node, &actor));
        LAST.with_borrow_mut(|last| *last = Some(AtDrop(deed)));
    });
    thread.join().expect("it ends in peace");
}

/// A panic there ends the process.
#[test]
fn the_last_drops_of_a_thread_may_tell_spawn_stop_and_kill() {
    alone("thread_ends::the_last_drops_of_a_thread_may_tell_spawn_stop_and_kill", || {
        for deed in DEEDS {
            at_the_end_of_a_thread(deed, false);
            at_the_end_of_a_thread(deed, true);
        }
    });
}

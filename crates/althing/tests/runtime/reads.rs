//! Reads overlap while they wait, however they began.

use std::sync::Arc;

use crate::support::{On, node, settle, soon, within};
use althing::{Actor, ActorRef, AskError, Context, Handler, Read, ReadHandler, Receives};
use tokio::sync::Notify;

/// A door that readers open for each other.
#[derive(Default)]
struct Door {
    opens: Arc<Notify>,
    writes: u32,
}

/// Passes at once, waits until the door opens, or opens it.
enum Pass {
    AtOnce,
    Waiting,
    Opening,
}

struct Write;

impl Actor for Door {
    const NAME: &'static str = "test.door";
}

impl Receives<Pass> for Door {
    type Reply = u32;
    type Way = Read;
}

impl ReadHandler<Pass> for Door {
    type Reply = u32;

    async fn read(&self, pass: Pass, _: &Context<Self>) -> u32 {
        match pass {
            Pass::AtOnce => {}
            Pass::Waiting => self.opens.notified().await,
            Pass::Opening => self.opens.notify_one(),
        }
        self.writes
    }
}

impl Handler<Write> for Door {
    type Reply = u32;

    async fn handle(&mut self, _: Write, _: &mut Context<Self>) -> u32 {
        self.writes += 1;
        self.writes
    }
}

/// One that has answered promptly: further asks run in place, on their asker's task.
async fn prompt_door() -> ActorRef<Door> {
    let door = node().spawn(Door::default());
    for _ in 0..2 {
        assert_eq!(door.send(Pass::AtOnce).await, Ok(0));
    }
    door
}

#[test]
fn a_read_that_began_in_place_overlaps_with_those_after_it() {
    within(On::OneThread, async {
        let door = prompt_door().await;
        let waiter = door.clone();
        let waits = tokio::spawn(async move { waiter.send(Pass::Waiting).await });
        settle().await;
        assert_eq!(soon("the second read", door.send(Pass::Opening)).await, Ok(0));
        assert_eq!(soon("the first read", waits).await.unwrap(), Ok(0));
    });
}

#[test]
fn a_write_waits_for_a_read_that_began_in_place() {
    within(On::OneThread, async {
        let door = prompt_door().await;
        let (reader, writer, opens) = (door.clone(), door.clone(), Arc::new(Notify::new()));
        let reads = tokio::spawn(async move { reader.send(Pass::Waiting).await });
        settle().await;
        let writes = tokio::spawn({
            let opens = opens.clone();
            async move {
                opens.notify_one();
                writer.send(Write).await
            }
        });
        soon("the write is sent", opens.notified()).await;
        settle().await;
        assert!(!writes.is_finished(), "it runs beside a read");
        door.kill();
        assert_eq!(reads.await.unwrap(), Err(AskError::NoReply(door.id())));
        assert_eq!(writes.await.unwrap(), Err(AskError::Stopped(door.id())));
    });
}

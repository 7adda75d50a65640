//! Children with a name and a ready value: found by it, stopped with their parent, judged like any
//! child.

use althing::{
    ActorOptions, ActorRef, ChildFailed, Context, NameTaken, Node, StopReason, Supervision,
    Terminated, actor,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

struct Clerk(u32);

fn escalate() -> ActorOptions {
    ActorOptions::default().supervision(Supervision::Escalate)
}

#[actor(name = "test.clerk", options = escalate)]
impl Clerk {
    async fn number(&self) -> u32 {
        self.0
    }

    async fn fail(&mut self) {
        panic!("on purpose");
    }
}

struct Office;

fn stop() -> ActorOptions {
    ActorOptions::default().supervision(Supervision::Stop)
}

#[actor(name = "test.office", options = stop)]
impl Office {
    async fn hire(
        &mut self,
        name: Option<String>,
        number: u32,
        ctx: &mut Context<Self>,
    ) -> Result<ActorRef<Clerk>, NameTaken> {
        let clerk = ctx.child(Clerk(number));
        match name {
            Some(name) => clerk.named(name).start(),
            None => Ok(clerk.start()),
        }
    }
}

struct Witness(UnboundedSender<Terminated>);

#[actor(name = "test.witness")]
impl Witness {
    async fn watch(&mut self, other: ActorRef<Office>, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }

    async fn terminated(&mut self, other: Terminated) {
        self.0.send(other).unwrap();
    }
}

#[tokio::test]
async fn a_named_child_is_found_by_its_name_and_stops_with_its_parent() {
    let node = Node::builder("test").build();
    let office = node.spawn(Office);
    let ada = office.hire(Some("Ada".into()), 7).flatten().await.unwrap();
    let nobody = office.hire(None, 8).flatten().await.unwrap();
    assert_eq!(node.get::<Clerk>("Ada"), ada);
    assert_eq!((ada.number().await, nobody.number().await), (Ok(7), Ok(8)));
    office.stop().await;
    ada.stopped().await;
    nobody.stopped().await;
    assert!(ada.is_stopped() && nobody.is_stopped());
}

#[tokio::test]
async fn a_name_that_is_taken_leaves_the_parent_as_it_was() {
    let node = Node::builder("test").build();
    let office = node.spawn(Office);
    let elsewhere = node.spawn_named("Ada", Clerk(1)).unwrap();
    let NameTaken(id) = office.hire(Some("Ada".into()), 7).await.unwrap().unwrap_err();
    assert_eq!(id.to_string(), "test.clerk/Ada");
    office.stop().await;
    assert_eq!(elsewhere.number().await, Ok(1), "another's actor is no child");
}

#[tokio::test]
async fn a_named_child_escalates_to_its_parent() {
    let node = Node::builder("test").build();
    let (heard, mut ends) = unbounded_channel();
    let (office, witness) = (node.spawn(Office), node.spawn(Witness(heard)));
    witness.watch(office.clone()).await.unwrap();
    let ada = office.hire(Some("Ada".into()), 7).flatten().await.unwrap();
    assert!(ada.fail().await.is_err());
    let StopReason::Failed(error) = ends.recv().await.unwrap().reason else {
        panic!("the office failed")
    };
    let failed = error.downcast_ref::<ChildFailed>().unwrap();
    assert_eq!((&failed.child, failed.error.to_string().as_str()), (&ada.id(), "on purpose"));
}

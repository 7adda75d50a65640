//! Errors that a caller can act on: causes kept whole, refusals with types, and whether a retry is
//! safe.

use std::error::Error;
use std::io;
use std::time::Duration;

use althing::{
    ActorError, ActorOptions, AskError, CallError, ChildFailed, Context, Node, Rejection, ReplyTo,
    Start, StopReason, Supervision, Terminated, actor,
};

struct Document;

#[actor(name = "test.document")]
impl Document {
    async fn load(start: Start<Self>) -> Result<Self, ActorError> {
        match start.key() {
            "missing" => Err(io::Error::from(io::ErrorKind::NotFound))?,
            "broken" => Err(io::Error::other("the disk is on fire"))?,
            _ => Ok(Self),
        }
    }

    async fn pages(&self) -> u32 {
        7
    }
}

#[tokio::test]
async fn who_asks_can_tell_not_found_from_a_broken_disk() {
    let node = Node::builder("test").actor(Document::load).build();
    assert_eq!(node.get::<Document>("faust").pages().await, Ok(7));
    for (key, kind) in [("missing", io::ErrorKind::NotFound), ("broken", io::ErrorKind::Other)] {
        let error = node.get::<Document>(key).pages().await.unwrap_err();
        let AskError::NotStarted(_, why) = &error else { panic!("{error}") };
        assert_eq!(why.downcast_ref::<io::Error>().unwrap().kind(), kind);
        let source = error.source().unwrap();
        assert_eq!(source.downcast_ref::<io::Error>().unwrap().kind(), kind);
    }
}

#[tokio::test]
async fn an_actor_error_keeps_the_whole_chain_and_is_equal_by_its_text() {
    let child = ChildFailed {
        child: Node::builder("test").build().get::<Document>("a").id(),
        error: io::Error::other("no disk").into(),
    };
    let error = ActorError::from(child);
    assert_eq!(error.to_string(), "test.document/a failed: no disk");
    assert!(error.downcast_ref::<io::Error>().is_none());
    assert!(error.source().unwrap().downcast_ref::<io::Error>().is_some());
    assert_eq!(ActorError::new("no disk"), io::Error::other("no disk").into());
    assert_ne!(ActorError::new("no disk"), ActorError::new("no time"));
}

#[derive(Default)]
struct Clerk {
    kept: Vec<ReplyTo<()>>,
}

#[actor(name = "test.clerk")]
impl Clerk {
    #[restrict(Self::knows)]
    async fn greet(&mut self, name: String) -> Result<usize, String> {
        assert_ne!(name, "panic");
        if name == "Mallory" { Err("we do not talk".to_owned()) } else { Ok(name.len()) }
    }

    #[delayed]
    async fn keep(&mut self, reply: ReplyTo<()>) {
        self.kept.push(reply);
    }

    async fn forget(&mut self) {
        self.kept.clear();
    }

    #[rate_limit(per_second = 2, burst = 1)]
    async fn ring(&mut self) {}

    fn knows(&self, message: &clerk_messages::Greet) -> Result<(), Rejection> {
        match message.name.as_str() {
            "" => Err(Rejection::restricted("no name")),
            "later" => Err(Rejection::RateLimited { retry_after: Duration::from_secs(9) }),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn flatten_tells_the_handler_s_error_from_a_lost_message() {
    let clerk = Node::builder("test").build().spawn(Clerk::default());
    assert_eq!(clerk.greet("Ada".into()).flatten().await, Ok(3));
    let refused = clerk.greet("Mallory".into()).flatten().await.unwrap_err();
    assert_eq!(refused, CallError::Reply("we do not talk".to_owned()));
    assert!(refused.may_have_run(), "its handler said so itself");
    clerk.stop().await;
    let lost = clerk.greet("Ada".into()).flatten().await.unwrap_err();
    assert_eq!(lost, CallError::Ask(AskError::Stopped(clerk.id())));
    assert!(!lost.may_have_run());
}

#[tokio::test(start_paused = true)]
async fn an_error_says_whether_the_message_may_have_run() {
    let node = Node::builder("test").build();
    let clerk = node.spawn(Clerk::default());
    let timeout = clerk.keep().timeout(Duration::from_millis(1)).await.unwrap_err();
    let (no_reply, forgotten) = tokio::join!(clerk.keep(), clerk.forget());
    let no_reply = no_reply.unwrap_err();
    let rejected = clerk.greet(String::new()).await.unwrap_err();
    let panicked = clerk.greet("panic".into()).await.unwrap_err();
    let stopped = clerk.ring().await.unwrap_err();
    let not_started = node.get::<Document>("a").pages().await.unwrap_err();
    forgotten.unwrap();
    let expected = [
        (AskError::Timeout(clerk.id()), timeout, true),
        (AskError::NoReply(clerk.id()), no_reply, true),
        (AskError::HandlerPanicked(clerk.id()), panicked, true),
        (AskError::Rejected(clerk.id(), Rejection::Restricted("no name".into())), rejected, false),
        (AskError::Stopped(clerk.id()), stopped, false),
    ];
    for (variant, error, may_have_run) in expected {
        assert_eq!((&error, error.may_have_run()), (&variant, may_have_run));
    }
    assert!(!not_started.may_have_run() && matches!(not_started, AskError::NotStarted(..)));
    assert!(!AskError::Overloaded(clerk.id()).may_have_run());
    assert!(!AskError::Cycle(vec![clerk.id()]).may_have_run());
}

#[tokio::test(start_paused = true)]
async fn who_is_limited_learns_when_to_come_back() {
    let clerk = Node::builder("test").build().spawn(Clerk::default());
    clerk.ring().await.unwrap();
    let Err(AskError::Rejected(_, Rejection::RateLimited { retry_after })) = clerk.ring().await
    else {
        panic!("one a second more than allowed")
    };
    assert_eq!(retry_after, Duration::from_millis(500));
    tokio::time::advance(retry_after).await;
    clerk.ring().await.unwrap();
    let later = clerk.greet("later".into()).await;
    let reason = Rejection::RateLimited { retry_after: Duration::from_secs(9) };
    assert_eq!(later, Err(AskError::Rejected(clerk.id(), reason)));
}

/// As many as the deployment says.
struct Gate {
    per_second: u32,
}

const BURST: u32 = 1;

#[actor(name = "test.gate")]
impl Gate {
    #[rate_limit(per_second = Self::per_second, burst = BURST + 1)]
    async fn pass(&self) {}

    #[rate_limit(per_second = |gate: &Self| gate.per_second)]
    async fn peek(&self) {}

    #[skip]
    fn per_second(&self) -> u32 {
        self.per_second
    }
}

#[tokio::test(start_paused = true)]
async fn a_deployment_decides_how_much_is_too_much() {
    let gate = Node::builder("test").build().spawn(Gate { per_second: 4 });
    let admitted =
        |calls: Vec<Result<(), AskError>>| calls.iter().filter(|call| call.is_ok()).count();
    let mut passed = Vec::new();
    let mut peeked = Vec::new();
    for _ in 0..6 {
        passed.push(gate.pass().await);
        peeked.push(gate.peek().await);
    }
    let Some(Err(AskError::Rejected(_, why))) = passed.last() else { panic!("{passed:?}") };
    assert_eq!(*why, Rejection::RateLimited { retry_after: Duration::from_millis(250) });
    assert_eq!((admitted(passed), admitted(peeked)), (2, 4));
}

struct Risky;

fn stop() -> ActorOptions {
    ActorOptions::default().supervision(Supervision::Stop)
}

fn resume() -> ActorOptions {
    ActorOptions::default().supervision(Supervision::Resume)
}

fn escalate() -> ActorOptions {
    ActorOptions::default().supervision(Supervision::Escalate)
}

#[actor(name = "test.risky", options = stop)]
impl Risky {
    async fn panic(&mut self) {
        panic!("on purpose");
    }

    async fn fail(&mut self, ctx: &mut Context<Self>) -> &'static str {
        ctx.fail(io::Error::other("no disk"));
        "said before the end"
    }

    async fn adopt(&mut self, ctx: &mut Context<Self>) -> althing::ActorRef<Child> {
        ctx.spawn(async |_| Ok(Child))
    }
}

struct Child;

#[actor(name = "test.child", options = escalate)]
impl Child {
    async fn fail(&mut self, ctx: &mut Context<Self>) {
        ctx.fail(io::Error::other("no disk"));
    }
}

struct Patient(u32);

#[actor(name = "test.patient", options = resume)]
impl Patient {
    async fn fail(&mut self, ctx: &mut Context<Self>) -> u32 {
        self.0 += 1;
        ctx.fail(ActorError::new("again"));
        self.0
    }
}

#[derive(Default)]
struct Witness {
    seen: Option<Terminated>,
    asked: Option<ReplyTo<Terminated>>,
}

#[actor(name = "test.witness")]
impl Witness {
    async fn watch(&mut self, other: althing::ActorRef<Risky>, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }

    #[delayed]
    async fn seen(&mut self, reply: ReplyTo<Terminated>) {
        match self.seen.take() {
            Some(seen) => drop(reply.send(seen)),
            None => self.asked = Some(reply),
        }
    }

    async fn terminated(&mut self, other: Terminated) {
        match self.asked.take() {
            Some(reply) => drop(reply.send(other)),
            None => self.seen = Some(other),
        }
    }
}

/// What `Witness` hears of an actor's end.
async fn end_of(node: &Node, risky: &althing::ActorRef<Risky>, end: impl Future) -> ActorError {
    let witness = node.spawn(Witness::default());
    witness.watch(risky.clone()).await.unwrap();
    end.await;
    let terminated = witness.seen().await.unwrap();
    assert_eq!(terminated.id, risky.id());
    match terminated.reason {
        StopReason::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_end_of_a_failed_actor_names_its_cause() {
    let node = Node::builder("test").build();
    let risky = node.spawn(Risky);
    let error = end_of(&node, &risky, risky.panic()).await;
    assert_eq!(error, ActorError::new("on purpose"));

    let risky = node.spawn(Risky);
    let said = async { assert_eq!(risky.fail().await, Ok("said before the end")) };
    let error = end_of(&node, &risky, said).await;
    assert_eq!(error.downcast_ref::<io::Error>().unwrap().to_string(), "no disk");
}

#[tokio::test]
async fn a_child_s_failure_reaches_whoever_watches_the_parent() {
    let node = Node::builder("test").build();
    let risky = node.spawn(Risky);
    let child = risky.adopt().await.unwrap();
    let error = end_of(&node, &risky, child.fail()).await;
    let failed = error.downcast_ref::<ChildFailed>().unwrap();
    assert_eq!(failed.child, child.id());
    assert!(failed.error.downcast_ref::<io::Error>().is_some());
}

#[tokio::test]
async fn supervision_decides_about_a_failure_without_a_panic() {
    let node = Node::builder("test").actor(async |_| Ok(Patient(0))).build();
    let patient = node.spawn(Patient(0));
    assert_eq!(patient.fail().await, Ok(1));
    assert_eq!(patient.fail().await, Ok(2), "the state is kept");
}

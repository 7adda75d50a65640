//! A sender that waits may be polled by one runtime after the other. It keeps its deadline by the clock
//! of the one that polls it, whatever has become of the others.

use std::future::{Future, IntoFuture, pending};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::support::{Do, Flex, flex, later, node, nothing, watched};
use althing::{
    ActorOptions, ActorRef, AskError, Delayed, DelayedHandler, MailboxKind, Node, Receives,
    ReplyTo, SendError,
};
use tokio::runtime::{Builder, Runtime};

const DEADLINE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(3);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A runtime that runs only while somebody is in its `block_on`.
fn idle_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

fn ask(actor: &ActorRef<Flex>, what: Do) -> Boxed<Result<u64, AskError>> {
    let actor = actor.clone();
    Box::pin(async move { actor.send(what).timeout(DEADLINE).await })
}

/// Begins a future in a runtime.
fn begin<T>(there: &Runtime, future: &mut Boxed<T>) {
    there.block_on(async {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(future.as_mut().poll(&mut cx), Poll::Pending));
    });
}

/// Awaits it in another one.
fn end<T>(there: &Runtime, future: Boxed<T>) -> T {
    let ended = there.block_on(async { tokio::time::timeout(PATIENCE, future).await });
    ended.expect("it keeps its deadline")
}

#[test]
fn an_ask_keeps_its_deadline_though_the_runtime_where_it_began_has_ended() {
    watched(|| {
        let (home, first, second) = (runtime(), runtime(), runtime());
        let actor = home.block_on(async { flex(&node()) });
        let mut asking = ask(&actor, later(pending()));
        begin(&first, &mut asking);
        drop(first);
        assert_eq!(end(&second, asking), Err(AskError::Timeout(actor.id())));
    });
}

#[test]
fn an_ask_keeps_its_deadline_though_the_runtime_where_it_began_stands_still() {
    watched(|| {
        let (home, first, second) = (runtime(), idle_runtime(), runtime());
        let actor = home.block_on(async { flex(&node()) });
        let mut asking = ask(&actor, later(pending()));
        begin(&first, &mut asking);
        assert_eq!(end(&second, asking), Err(AskError::Timeout(actor.id())));
    });
}

/// Hands its reply to somebody else.
struct Keep(std::sync::mpsc::Sender<ReplyTo<u64>>);

impl Receives<Keep> for Flex {
    type Reply = u64;
    type Way = Delayed;
}

impl DelayedHandler<Keep> for Flex {
    type Reply = u64;

    async fn handle(
        &mut self,
        Keep(keep): Keep,
        reply: ReplyTo<u64>,
        _: &mut althing::Context<Self>,
    ) {
        keep.send(reply).expect("somebody waits for it");
    }
}

#[test]
fn an_ask_keeps_its_deadline_though_it_began_at_home_and_that_has_ended() {
    watched(|| {
        let (home, second) = (runtime(), runtime());
        let actor = home.block_on(async { flex(&node()) });
        let (keep, kept) = std::sync::mpsc::channel();
        let asked = actor.clone();
        let mut asking: Boxed<_> =
            Box::pin(async move { asked.send(Keep(keep)).timeout(DEADLINE).into_future().await });
        begin(&home, &mut asking);
        let reply = kept.recv().expect("it is asked");
        drop(home);
        assert_eq!(end(&second, asking), Err(AskError::Timeout(actor.id())));
        drop(reply);
    });
}

#[test]
fn a_tell_that_waits_for_room_keeps_its_deadline_though_its_first_runtime_has_ended() {
    watched(|| {
        let (home, first, second) = (runtime(), runtime(), runtime());
        let actor = home.block_on(async {
            let options = ActorOptions::default().mailbox(MailboxKind::Bounded(1));
            flex(&Node::builder("test").options::<Flex>(options).build())
        });
        actor.send(later(pending())).try_tell().unwrap();
        while actor.mailbox_depth() > 0 {
            std::thread::yield_now();
        }
        actor.send(nothing()).try_tell().unwrap();
        let teller = actor;
        let mut telling: Boxed<_> =
            Box::pin(async move { teller.send(nothing()).timeout(DEADLINE).tell().await });
        begin(&first, &mut telling);
        drop(first);
        assert!(matches!(end(&second, telling), Err(SendError::Timeout(_))));
    });
}

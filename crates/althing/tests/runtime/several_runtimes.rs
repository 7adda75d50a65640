//! A node belongs to one runtime. Who asks it from another one gets the same answers, and neither's
//! end harms the other.
//!
//! A handler that runs in place runs on its asker's thread. Its sleeps and sockets must still be
//! those of its node's runtime: the asker's may have no timers, may end at any moment, or may not
//! be running.

use std::future::{IntoFuture, pending};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Do, Flex, flex, later, node, nothing, watched};
use althing::{
    Actor, ActorRef, AskError, Context, Delayed, DelayedHandler, EventHandler, Handler, Node,
    Published, Receives, ReplyTo, TopicOptions,
};
use tokio::runtime::{Builder, Handle, Id, Runtime};

const PATIENCE: Duration = Duration::from_secs(3);

/// A runtime of one worker with timers and sockets.
fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime can be built")
}

/// A runtime of one worker without either.
fn bare_runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).build().expect("a runtime can be built")
}

fn actor_on(home: &Runtime) -> ActorRef<Flex> {
    home.block_on(async { flex(&node()) })
}

/// Asks from a task of that runtime.
fn ask_from(asking: &Runtime, actor: &ActorRef<Flex>, what: Do) -> Result<u64, AskError> {
    let actor = actor.clone();
    asking.block_on(async {
        tokio::spawn(async move { actor.send(what).await }).await.expect("it runs")
    })
}

fn sleeping(pause: Duration) -> Do {
    later(async move {
        tokio::time::sleep(pause).await;
        7
    })
}

#[test]
fn a_handler_that_is_asked_from_another_runtime_uses_the_timers_of_its_own() {
    watched(|| {
        let (home, other) = (runtime(), bare_runtime());
        let actor = actor_on(&home);
        ask_from(&other, &actor, nothing()).unwrap();
        assert_eq!(ask_from(&other, &actor, sleeping(Duration::from_millis(1))), Ok(7));
    });
}

#[test]
fn an_actor_that_is_started_from_another_runtime_uses_the_timers_of_its_own() {
    watched(|| {
        let (home, other) = (runtime(), bare_runtime());
        let node = home.block_on(async { node() });
        let starting = async move {
            node.spawn_with(async |_| {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(Flex::default())
            })
        };
        let actor = other.block_on(async { tokio::spawn(starting).await.unwrap() });
        assert_eq!(home.block_on(async { actor.send(nothing()).await }), Ok(0));
        assert_eq!(actor.node().metrics().kinds[0].panicked, 0);
    });
}

/// Keeps the runtime that its events came in.
#[derive(Default)]
struct Ear(Vec<Id>);

struct Heard;

impl Actor for Ear {
    const NAME: &'static str = "test.ear";
}

impl EventHandler<u32> for Ear {
    async fn event(&mut self, _: &Published<u32>, _: &mut Context<Self>) {
        self.0.push(Handle::current().id());
    }
}

impl Handler<Heard> for Ear {
    type Reply = Vec<Id>;

    async fn handle(&mut self, _: Heard, _: &mut Context<Self>) -> Vec<Id> {
        self.0.clone()
    }
}

#[test]
fn a_subscriber_to_a_topic_of_another_node_hears_in_its_own_runtime() {
    watched(|| {
        let (home, other) = (runtime(), runtime());
        let topic = other.block_on(async { node().topic::<u32>("t", TopicOptions::default()) });
        let ear = home.block_on(async { node().spawn(Ear::default()) });
        let _subscription = topic.subscribe(&ear);
        let publishing = async move { topic.publish(1).map(drop) };
        other.block_on(async { tokio::spawn(publishing).await.unwrap() }).unwrap();
        let heard = home.block_on(async { ear.send(Heard).await });
        assert_eq!(heard, Ok(vec![home.handle().id()]));
    });
}

/// A factory begins on the thread of whoever starts its actor, which is in the node's runtime
/// meanwhile, and not afterwards.
#[test]
fn a_handler_uses_the_timers_of_its_own_also_after_its_asker_has_started_somebody() {
    watched(|| {
        let (home, other) = (runtime(), bare_runtime());
        let node = home.block_on(async { node() });
        let (idle, actor) = (node.spawn(Flex::default()), node.spawn(Flex::default()));
        for _ in 0..2 {
            // From now on it is known to answer promptly, and is asked in place.
            assert_eq!(ask_from(&home, &idle, nothing()), Ok(0));
        }
        let asking = async move {
            let starts = move |_| {
                let idle = idle.clone();
                async move {
                    idle.send(nothing()).await?;
                    Ok(Flex::default())
                }
            };
            let _started = node.spawn_with(starts);
            actor.send(sleeping(Duration::from_millis(1))).await
        };
        let slept = other.block_on(async { tokio::spawn(asking).await.unwrap() });
        assert_eq!(slept, Ok(7));
    });
}

#[test]
fn a_handler_goes_on_when_its_askers_runtime_ends() {
    watched(|| {
        let (home, other) = (runtime(), runtime());
        let actor = actor_on(&home);
        ask_from(&other, &actor, nothing()).unwrap();
        let (tx, ended) = tokio::sync::oneshot::channel();
        let working = later(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            tx.send(()).ok();
            0
        });
        other.block_on(async {
            let asking = tokio::spawn(async move { actor.send(working).await });
            // Begun by now, and asleep.
            tokio::time::sleep(Duration::from_millis(50)).await;
            asking.abort();
        });
        other.shutdown_background();
        let ended = home.block_on(async { tokio::time::timeout(PATIENCE, ended).await });
        assert_eq!(ended, Ok(Ok(())));
    });
}

#[test]
fn an_ask_fails_when_its_actors_runtime_has_ended() {
    watched(|| {
        let (home, other) = (runtime(), runtime());
        let actor = actor_on(&home);
        home.shutdown_background();
        let asking = async move { actor.send(nothing()).timeout(Duration::from_millis(300)).await };
        let asked = other.block_on(async { tokio::spawn(asking).await });
        assert!(matches!(asked, Ok(Err(_))), "the asker panicked or was answered: {asked:?}");
    });
}

#[test]
fn an_open_ask_fails_when_its_actors_runtime_ends() {
    watched(|| {
        let (home, other) = (runtime(), runtime());
        let actor = actor_on(&home);
        let asked = other.spawn({
            let actor = actor.clone();
            async move { actor.send(later(pending())).timeout(PATIENCE).await }
        });
        while !actor.is_active() || actor.mailbox_depth() > 0 {
            std::thread::yield_now();
        }
        drop(home);
        let asked = other.block_on(async { tokio::time::timeout(2 * PATIENCE, asked).await });
        assert!(matches!(asked, Ok(Ok(Err(_)))), "{asked:?}");
    });
}

/// A current-thread runtime runs only while somebody is in its `block_on`.
#[test]
fn an_ask_keeps_its_deadline_while_its_actors_runtime_does_not_run() {
    watched(|| {
        let home = Builder::new_current_thread().enable_all().build().unwrap();
        let other = runtime();
        let actor = actor_on(&home);
        let asked = other.block_on(async {
            let ask = async { actor.send(nothing()).timeout(Duration::from_millis(100)).await };
            tokio::time::timeout(PATIENCE, ask).await
        });
        assert!(matches!(asked, Ok(Err(AskError::Timeout(_)))), "{asked:?}");
    });
}

#[test]
fn an_actor_whose_runtime_ends_in_its_handler_has_ended() {
    watched(|| {
        let (home, other) = (runtime(), runtime());
        let actor = actor_on(&home);
        actor.send(later(pending())).try_tell().unwrap();
        while actor.mailbox_depth() > 0 {
            std::thread::yield_now();
        }
        drop(home);
        let ended = other.block_on(async { tokio::time::timeout(PATIENCE, actor.stopped()).await });
        assert_eq!(ended, Ok(()));
    });
}

/// A thread that belongs to no runtime may ask and tell; heavy work goes to the node's runtime
/// likewise.
#[test]
fn heavy_work_may_be_awaited_outside_of_any_runtime() {
    watched(|| {
        let home = runtime();
        let node: Node = home.block_on(async { node() });
        assert_eq!(block_on(node.blocking(|| 7)), 7);
    });
}

/// Runs a future on a thread that knows no runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        std::thread::yield_now();
    }
}

#[test]
#[should_panic(expected = "timers are disabled")]
fn a_node_is_not_built_on_a_runtime_without_timers() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { drop(node()) });
}

/// A current-thread runtime runs only while somebody is in its `block_on`.
#[test]
fn a_shutdown_keeps_its_deadline_while_its_nodes_runtime_does_not_run() {
    watched(|| {
        let home = Builder::new_current_thread().enable_all().build().unwrap();
        let other = runtime();
        let actor = actor_on(&home);
        actor.send(later(pending())).try_tell().unwrap();
        let node = actor.node();
        let report = other.block_on(async {
            tokio::time::timeout(PATIENCE, node.shutdown(Duration::from_millis(100))).await
        });
        assert_eq!(report.expect("it keeps its deadline").killed, [actor.id()]);
    });
}

#[test]
fn a_shutdown_ends_though_its_nodes_runtime_ends_meanwhile() {
    watched(|| {
        let (home, other) = (runtime(), runtime());
        let actor = actor_on(&home);
        actor.send(later(pending())).try_tell().unwrap();
        let node = actor.node();
        let shutdown = other.spawn(async move { node.shutdown(Duration::from_secs(60)).await });
        std::thread::sleep(Duration::from_millis(50));
        drop(home);
        let report = other.block_on(async { tokio::time::timeout(PATIENCE, shutdown).await });
        assert!(matches!(report, Ok(Ok(_))), "{report:?}");
    });
}

/// Has somebody else give its replies.
struct Keeper(std::sync::mpsc::Sender<ReplyTo<u32>>);

struct Keep;

impl Actor for Keeper {
    const NAME: &'static str = "test.keeper";
}

impl Receives<Keep> for Keeper {
    type Reply = u32;
    type Way = Delayed;
}

impl DelayedHandler<Keep> for Keeper {
    type Reply = u32;

    async fn handle(&mut self, _: Keep, reply: ReplyTo<u32>, _: &mut Context<Self>) {
        self.0.send(reply).ok();
    }
}

/// Its deadline is by the timers of the actor's runtime, because there are no others.
#[test]
fn an_ask_outside_of_any_runtime_ends_though_its_actors_runtime_does_while_others_owe_the_reply() {
    watched(|| {
        let home = runtime();
        let (keep, kept) = std::sync::mpsc::channel();
        let keeper = home.block_on(async { node().spawn(Keeper(keep)) });
        let asking = std::thread::spawn(move || block_on(keeper.send(Keep).into_future()));
        let reply = kept.recv().expect("it is asked");
        // It waits by now.
        std::thread::sleep(Duration::from_millis(50));
        drop(home);
        let asked = asking.join().expect("it does not panic");
        assert!(matches!(asked, Err(AskError::Timeout(_))), "{asked:?}");
        drop(reply);
    });
}

#[test]
fn a_sleep_of_a_node_ends_with_its_runtime_wherever_it_is_awaited() {
    watched(|| {
        let (home, other) = (runtime(), runtime());
        let node = home.block_on(async { node() });
        let slept = other.spawn(node.sleep(Duration::from_secs(3_600)));
        std::thread::sleep(Duration::from_millis(50));
        drop(home);
        let slept = other.block_on(async { tokio::time::timeout(PATIENCE, slept).await });
        assert!(matches!(slept, Ok(Ok(()))), "{slept:?}");
    });
}

#[test]
#[should_panic(expected = "the node's runtime has ended")]
fn who_awaits_heavy_work_that_is_not_done_hears_why() {
    let (home, other) = (runtime(), runtime());
    let node = home.block_on(async { node() });
    drop(home);
    other.block_on(node.blocking(|| 7));
}

/// Somebody has told it, and nobody has run it.
#[test]
fn an_actor_that_was_about_to_run_when_its_runtime_ended_keeps_no_state() {
    watched(|| {
        let home = Builder::new_current_thread().enable_all().build().unwrap();
        let kept = Arc::new(());
        let state = Flex { kept: vec![Box::new(kept.clone())], ..Flex::default() };
        let actor = home.block_on(async {
            let actor = node().spawn(state);
            actor.send(nothing()).try_tell().unwrap();
            actor
        });
        drop(home);
        assert!(actor.is_stopped());
        assert_eq!(Arc::strong_count(&kept), 1);
    });
}

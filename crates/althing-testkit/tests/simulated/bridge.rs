//! Two nodes in one process: the second reaches the first one's actors through encode and decode.

use std::sync::Arc;
use std::time::Duration;

use althing::{
    ActorId, ActorRef, AskError, Context, Epoch, Node, Published, ReplyTo, SendError, Sequence,
    StopReason, Terminated, TopicOptions, Wire, actor,
};
use althing_testkit::{Bridge, World, sweep};
use parking_lot::Mutex;

type Log = Arc<Mutex<Vec<String>>>;

/// Keeps what it is told, in order.
struct Ledger {
    log: Log,
    held: Vec<ReplyTo<u32>>,
}

#[actor(name = "test.ledger", wire)]
impl Ledger {
    async fn write(&mut self, line: String) -> u32 {
        self.log.lock().push(line);
        u32::try_from(self.log.lock().len()).unwrap_or(u32::MAX)
    }

    #[delayed]
    async fn later(&mut self, reply: ReplyTo<u32>) {
        self.held.push(reply);
    }

    async fn answer_all(&mut self, with: u32) {
        for reply in self.held.drain(..) {
            reply.send(with);
        }
    }

    async fn slowly(&mut self, ctx: &mut Context<Self>) {
        ctx.node().sleep(Duration::from_secs(60)).await;
    }

    async fn panics(&mut self) {
        panic!("on purpose");
    }

    #[wire(skip)]
    async fn stays(&mut self) {}

    async fn stopping(&mut self, reason: StopReason) {
        self.log.lock().push(format!("{reason:?}"));
    }
}

/// Asks whom it is told to.
struct Caller;

#[actor(name = "test.caller", wire)]
impl Caller {
    async fn ask(
        &mut self,
        other: ActorRef<Caller>,
        back: ActorRef<Caller>,
    ) -> Result<(), AskError> {
        other.answer(back).await?
    }

    async fn answer(&mut self, back: ActorRef<Caller>) -> Result<(), AskError> {
        back.nothing().await
    }

    async fn nothing(&mut self) {}

    async fn bear(&mut self, ctx: &mut Context<Self>) -> ActorRef<Caller> {
        ctx.node().spawn(Caller)
    }

    async fn wait_for(
        &mut self,
        other: ActorRef<Caller>,
        ctx: &mut Context<Self>,
    ) -> Result<(), AskError> {
        ctx.node().sleep(Duration::from_secs(1)).await;
        other.nothing().await
    }
}

/// Watches others.
struct Watcher {
    log: Log,
}

#[actor(name = "test.watcher")]
impl Watcher {
    async fn look(&mut self, other: ActorRef<Ledger>, ctx: &mut Context<Self>) {
        ctx.watch(&other);
    }

    async fn terminated(&mut self, other: Terminated) {
        self.log.lock().push(format!("{} {:?}", other.id, other.reason));
    }
}

struct Scene {
    world: World,
    bridge: Bridge,
    one: Node,
    two: Node,
    log: Log,
}

/// Two nodes of which the first owns every actor.
fn scene(world: &World) -> Scene {
    let (bridge, log) = (Bridge::new(), Log::default());
    let node = |name| {
        let log = log.clone();
        world
            .node(name)
            .cluster(bridge.end())
            .actor(move |_| {
                let log = log.clone();
                async move { Ok(Ledger { log, held: Vec::new() }) }
            })
            .actor(async |_| Ok(Caller))
            .build()
    };
    let (one, two) = (node("one"), node("two"));
    Scene { world: world.clone(), bridge, one, two, log }
}

fn ledger(key: &str) -> ActorId {
    ActorId::named("test.ledger", key)
}

#[test]
fn a_tell_from_another_node_reaches_the_one_actor() {
    let Scene { world, one, two, log, .. } = scene(&World::new(1));
    world.run(async {
        let (here, there) = (one.get::<Ledger>("a"), two.get::<Ledger>("a"));
        for n in 0..10 {
            there.write(format!("{n}")).tell().await.expect("there is room");
        }
        assert_eq!(there.write("last".into()).await, Ok(11));
        assert_eq!(here.write("here".into()).await, Ok(12), "it is the same actor");
        let expected: Vec<_> =
            (0..10).map(|n| n.to_string()).chain(["last".into(), "here".into()]).collect();
        assert_eq!(*log.lock(), expected);
        assert!(here.is_active() && !there.is_active());
        assert_eq!(here.id(), there.id());
    });
}

#[test]
fn a_delayed_reply_and_a_panic_cross_as_they_are() {
    let Scene { world, one, two, .. } = scene(&World::new(2));
    world.run(async {
        let there = two.get::<Ledger>("a");
        let asker = there.clone();
        let later = world.spawn(async move { asker.later().await });
        while !one.get::<Ledger>("a").is_active() {
            two.sleep(Duration::from_millis(1)).await;
        }
        there.answer_all(7).await.expect("it answers");
        let later = later.await;
        assert_eq!(later, Ok(7));
        assert_eq!(there.panics().await, Err(AskError::HandlerPanicked(there.id())));
        let slow = there.slowly().timeout(Duration::from_secs(1)).await;
        assert_eq!(slow, Err(AskError::Timeout(there.id())));
    });
}

#[test]
fn a_message_that_does_not_travel_goes_back_to_its_sender() {
    let Scene { world, two, .. } = scene(&World::new(3));
    world.run(async {
        let there = two.get::<Ledger>("a");
        let refused = there.stays().await.expect_err("it stays");
        assert!(matches!(&refused, AskError::LocalOnly(id, name) if *id == there.id() && name.contains("Stays")));
        assert!(!refused.may_have_run());
        assert!(matches!(there.stays().tell().await, Err(SendError::LocalOnly(_))));
        assert!(matches!(there.stays().try_tell(), Err(SendError::LocalOnly(_))));
    });
}

#[test]
fn addresses_in_messages_lead_to_the_same_actors_on_the_other_node() {
    let Scene { world, one, two, .. } = scene(&World::new(4));
    world.run(async {
        // Anonymous, and on the second node: the first one answers through the address that
        // crossed.
        let mine = two.spawn(Caller);
        let there = two.get::<Caller>("a");
        assert_eq!(there.answer(mine.clone()).await, Ok(Ok(())));
        let mut bytes = Vec::new();
        mine.encode(&mut bytes);
        let from_one: ActorRef<Caller> = one.decode(&bytes).expect("an address");
        assert_eq!(from_one.nothing().await, Ok(()));
        assert_eq!(from_one.id(), mine.id());
        mine.stop().await;
        assert_eq!(from_one.nothing().await, Err(AskError::Stopped(mine.id())));
    });
}

#[test]
fn an_address_in_a_reply_leads_to_the_same_actor_for_whoever_has_asked() {
    let Scene { world, bridge, one, two, .. } = scene(&World::new(4));
    world.run(async {
        let far = ActorId::named("test.caller", "far");
        bridge.settle(&far, &two);
        let child = one.get::<Caller>("far").bear().await.expect("it can be read");
        assert_eq!(child.id().origin().map(|(node, _)| node), Some(two.incarnation()));
        assert_eq!(child.nothing().await, Ok(()));
    });
}

#[test]
fn a_cycle_over_two_nodes_fails_at_once_and_names_its_path() {
    let Scene { world, bridge, one, two, .. } = scene(&World::new(5));
    world.run(async {
        let far = ActorId::named("test.caller", "far");
        bridge.settle(&far, &two);
        let (near, far) = (one.get::<Caller>("near"), one.get::<Caller>("far"));
        let outcome = near.ask(far.clone(), near.clone()).await.expect("it ran");
        assert_eq!(outcome, Err(AskError::Cycle(vec![near.id(), far.id(), near.id()])));
        assert_eq!(one.elapsed(), Duration::ZERO, "no deadline was waited for");
        // The same call without a cycle.
        let other = one.get::<Caller>("other");
        assert_eq!(near.ask(far, other).await, Ok(Ok(())));
    });
}

#[test]
fn two_that_ask_each_other_over_two_nodes_do_not_wait_for_their_deadlines() {
    sweep(0..20, async |world| {
        let Scene { bridge, one, two, .. } = scene(&world);
        let far = ActorId::named("test.caller", "far");
        bridge.settle(&far, &two);
        let (near, far) = (one.get::<Caller>("near"), one.get::<Caller>("far"));
        let (to, from) = (far.clone(), near.clone());
        let a = world.spawn(async move { from.wait_for(to).await });
        let b = far.wait_for(near.clone()).await;
        let a = a.await;
        let is_cycle = |outcome: &Result<Result<(), AskError>, AskError>| {
            matches!(outcome, Ok(Err(AskError::Cycle(_))))
        };
        assert!(is_cycle(&a) || is_cycle(&b), "{a:?} {b:?}");
        assert!(one.elapsed() < Duration::from_secs(2), "{a:?} {b:?}");
    });
}

#[test]
fn a_watcher_on_another_node_hears_of_the_end_once() {
    let Scene { world, one, two, log, .. } = scene(&World::new(6));
    world.run(async {
        let heard = Log::default();
        let watcher = two.spawn(Watcher { log: heard.clone() });
        let there = two.get::<Ledger>("a");
        there.write("it lives".into()).await.expect("it runs");
        watcher.look(there.clone()).await.expect("it runs");
        two.sleep(Duration::from_secs(1)).await;
        one.get::<Ledger>("a").stop().await;
        two.sleep(Duration::from_secs(1)).await;
        assert_eq!(*heard.lock(), ["test.ledger/a Requested"]);
        assert_eq!(*log.lock(), ["it lives", "Requested"]);
    });
}

#[test]
fn stop_and_kill_of_an_actor_elsewhere_end_it_where_it_runs() {
    let Scene { world, one, two, .. } = scene(&World::new(7));
    world.run(async {
        let (here, there) = (one.get::<Ledger>("a"), two.get::<Ledger>("a"));
        there.write("x".into()).await.expect("it runs");
        there.stop().await;
        assert!(!here.is_active());
        there.write("y".into()).await.expect("the next life");
        there.kill();
        there.stopped().await;
        assert!(!here.is_active());
        there.activate();
        two.sleep(Duration::from_secs(1)).await;
        assert!(here.is_active());
    });
}

#[test]
fn a_move_keeps_the_order_of_each_sender_and_loses_nothing() {
    sweep(0..40, async |world| {
        let Scene { bridge, one, two, log, .. } = scene(&world);
        let mut senders = Vec::new();
        for (who, node) in [&one, &two].into_iter().enumerate() {
            let (ledger, node) = (node.get::<Ledger>("a"), node.clone());
            senders.push(world.spawn(async move {
                for n in 0..100 {
                    ledger.write(format!("{who} {n}")).tell().await.expect("accepted");
                    if n % 7 == 0 {
                        node.sleep(Duration::from_millis(1)).await;
                    }
                }
            }));
        }
        for to in [&two, &one, &two] {
            one.sleep(Duration::from_millis(4)).await;
            bridge.carry(&ledger("a"), to).await;
        }
        for sender in senders {
            sender.await;
        }
        one.sleep(Duration::from_secs(1)).await;
        for who in 0..2 {
            let lines = log.lock().clone();
            let heard: Vec<_> =
                lines.iter().filter(|line| line.starts_with(&format!("{who} "))).cloned().collect();
            let sent: Vec<_> = (0..100).map(|n| format!("{who} {n}")).collect();
            assert_eq!(heard, sent);
        }
        assert!(two.get::<Ledger>("a").is_active() && !one.get::<Ledger>("a").is_active());
    });
}

#[test]
fn a_sealed_actor_runs_nothing_and_goes_on_where_it_was() {
    let Scene { world, one, log, .. } = scene(&World::new(8));
    world.run(async {
        let ledger_ref = one.get::<Ledger>("a");
        ledger_ref.write("1".into()).await.expect("it runs");
        let sealed = one.seal(&ledger("a")).await.expect("it is in memory");
        ledger_ref.write("2".into()).tell().await.expect("there is room");
        one.sleep(Duration::from_secs(1)).await;
        assert_eq!(*log.lock(), ["1"]);
        assert_eq!(sealed.mailbox_depth(), 1);
        drop(sealed);
        assert_eq!(ledger_ref.write("3".into()).await, Ok(3));
        assert_eq!(*log.lock(), ["1", "2", "3"]);
        assert!(one.seal(&ledger("asleep")).await.is_none());
    });
}

#[test]
fn a_frozen_node_runs_nothing_until_it_thaws() {
    let Scene { world, one, two, log, .. } = scene(&World::new(9));
    world.run(async {
        let awake = one.get::<Ledger>("awake");
        awake.write("1".into()).await.expect("it runs");
        one.freeze().await;
        let (awake_there, asleep) = (two.get::<Ledger>("awake"), one.get::<Ledger>("asleep"));
        for ledger in [&awake, &awake_there, &asleep] {
            ledger.write("2".into()).tell().await.expect("there is room");
        }
        one.sleep(Duration::from_secs(3)).await;
        assert_eq!(*log.lock(), ["1"]);
        one.thaw();
        one.sleep(Duration::from_secs(1)).await;
        assert_eq!(*log.lock(), ["1", "2", "2", "2"]);
    });
}

#[test]
fn a_fence_ends_an_older_epoch_without_a_word_and_spares_its_own() {
    let Scene { world, bridge, one, two, log } = scene(&World::new(10));
    world.run(async {
        let there = two.get::<Ledger>("a");
        there.write("1".into()).await.expect("it runs");
        one.fence(&ledger("a"), Epoch(1));
        assert_eq!(there.write("2".into()).await, Ok(2), "it runs in that epoch");
        bridge.settle(&ledger("a"), &two);
        one.fence(&ledger("a"), Epoch(2));
        assert_eq!(there.write("3".into()).await, Ok(3), "by the new owner");
        assert!(!one.get::<Ledger>("a").is_active());
        assert_eq!(*log.lock(), ["1", "2", "3"], "no hook ran");
    });
}

#[test]
fn who_asked_or_watched_an_actor_of_a_lost_node_hears_of_it() {
    let Scene { world, bridge, one, two, .. } = scene(&World::new(11));
    world.run(async {
        bridge.settle(&ledger("b"), &two);
        let heard = Log::default();
        let watcher = one.spawn(Watcher { log: heard.clone() });
        let there = one.get::<Ledger>("b");
        watcher.look(there.clone()).await.expect("it runs");
        let asker = there.clone();
        let asked = world.spawn(async move { asker.slowly().await });
        one.sleep(Duration::from_secs(1)).await;
        bridge.lose(&two);
        world.crash(&two);
        assert_eq!(asked.await, Err(AskError::NodeLost(there.id())));
        one.sleep(Duration::from_secs(1)).await;
        assert_eq!(*heard.lock(), ["test.ledger/b NodeLost"]);
        assert_eq!(there.write("again".into()).await, Ok(1), "on the node that is left");
    });
}

/// Hears numbers.
struct Listener {
    log: Log,
}

#[actor(name = "test.listener")]
impl Listener {
    #[event]
    async fn hear(&mut self, event: &Published<u32>) {
        self.log.lock().push(format!("{} {}", event.sequence.0, event.payload));
    }
}

#[test]
fn an_event_reaches_subscribers_on_another_node_with_its_number() {
    let Scene { world, bridge, one, two, .. } = scene(&World::new(12));
    world.run(async {
        let topic = one.topic::<u32>("numbers", TopicOptions::default());
        topic.publish(100).expect("anybody may");
        let there = bridge.relay(&topic, &two, Epoch(1)).expect("nobody owns it there");
        let logs: Vec<_> = (0..3).map(|_| Log::default()).collect();
        let listeners: Vec<_> =
            logs.iter().map(|log| two.spawn(Listener { log: log.clone() })).collect();
        let subscriptions: Vec<_> =
            listeners.iter().map(|listener| there.subscribe(listener)).collect();
        for n in 0..50 {
            topic.publish(n).expect("anybody may");
        }
        one.sleep(Duration::from_secs(1)).await;
        let expected: Vec<_> = (0..50).map(|n| format!("{} {n}", n + 2)).collect();
        for log in &logs {
            assert_eq!(*log.lock(), expected);
        }
        assert_eq!(there.last(), Sequence(51));
        drop(subscriptions);
    });
}

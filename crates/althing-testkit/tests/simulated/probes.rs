//! Probes: they tell the test what they hear, answer what it says, and need no node to be made.

use std::time::Duration;

use althing::{Actor, ActorError, ActorRef, AskError, Context, Handler, Recipient, Start};
use althing_testkit::{Probe, World};

struct Price(&'static str);

/// Buys what costs less than ten.
struct Buyer {
    prices: Recipient<Price, u32>,
}

struct Buy(&'static str);

impl Actor for Buyer {
    const NAME: &'static str = "test.buyer";
}

impl Handler<Buy> for Buyer {
    type Reply = bool;

    async fn handle(&mut self, Buy(thing): Buy, _: &mut Context<Self>) -> bool {
        self.prices.ask(Price(thing)).await.is_ok_and(|price| price < 10)
    }
}

#[test]
fn a_probe_answers_by_a_rule() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let (prices, mut asked) = Probe::<Price, u32>::spawn_asked(&node);
        asked.answers(|Price(thing)| if *thing == "bread" { 3 } else { 300 });
        let buyer = node.spawn(Buyer { prices: prices.recipient() });
        assert_eq!(buyer.send(Buy("bread")).await, Ok(true));
        assert_eq!(buyer.send(Buy("gold")).await, Ok(false));
        assert_eq!(asked.next().await.0, "bread");
        assert_eq!(asked.next().await.0, "gold");
    });
}

#[test]
fn a_test_answers_when_it_has_seen_the_question() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let (prices, mut asked) = Probe::<Price, u32>::spawn_asked(&node);
        let buyer = node.spawn(Buyer { prices: prices.recipient() });
        let client = world.spawn(async move { buyer.send(Buy("bread")).await });
        let (Price(thing), answer) = asked.next_ask().await;
        assert_eq!(thing, "bread");
        world.sleep(Duration::from_secs(2)).await;
        assert!(answer.send(3));
        assert_eq!(client.await, Ok(true));
        assert_eq!(world.elapsed(), Duration::from_secs(2));
    });
}

#[test]
fn an_answer_that_is_dropped_fails_the_ask_and_the_probe_lives_on() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let (prices, mut asked) = Probe::<Price, u32>::spawn_asked(&node);
        let id = prices.id();
        let other = prices.clone();
        let client = world.spawn(async move { prices.send(Price("bread")).await });
        drop(asked.next_ask().await.1);
        assert_eq!(client.await, Err(AskError::HandlerPanicked(id)));
        asked.answers(|_| 4);
        assert_eq!(other.send(Price("bread")).await, Ok(4));
    });
}

#[test]
fn an_answer_nobody_waits_for_says_so() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let (prices, mut asked) = Probe::<Price, u32>::spawn_asked(&node);
        prices.send(Price("bread")).tell().await.expect("room");
        let (_, answer) = asked.next_ask().await;
        prices.kill();
        prices.stopped().await;
        assert!(!answer.send(3));
    });
}

struct Greeter {
    log: ActorRef<Probe<String>>,
}

struct Greet(&'static str);

impl Actor for Greeter {
    const NAME: &'static str = "test.greeter";
}

impl Handler<Greet> for Greeter {
    type Reply = ();

    async fn handle(&mut self, Greet(name): Greet, ctx: &mut Context<Self>) {
        let text = format!("{} greets {name} on {}", ctx.key(), ctx.node().name());
        self.log.send(text).tell().await.ok();
    }
}

#[test]
fn a_factory_uses_a_probe_of_its_own_node() {
    let world = World::new(1);
    let (log, mut heard) = Probe::unplaced();
    let build = |name| {
        let log = log.clone();
        let factory = move |start: Start<Greeter>| {
            let log = log.on(&start.node());
            async move { Ok::<_, ActorError>(Greeter { log }) }
        };
        world.node(name).actor(factory).build()
    };
    let (inn, bar) = (build("inn"), build("bar"));
    world.run(async {
        for (node, key) in [(&inn, "ada"), (&inn, "bob"), (&bar, "cleo")] {
            node.get::<Greeter>(key).send(Greet("you")).await.expect("it runs");
        }
        assert_eq!(heard.next().await, "ada greets you on inn");
        assert_eq!(heard.next().await, "bob greets you on inn");
        assert_eq!(heard.next().await, "cleo greets you on bar");
        assert_eq!(log.on(&inn), log.on(&inn));
        assert_eq!(log.on(&inn).node(), inn);
        assert_eq!(log.on(&bar).node(), bar);
    });
}

#[test]
fn a_probe_hears_from_the_node_after_a_crash_too() {
    let world = World::new(1);
    let (log, mut heard) = Probe::unplaced();
    world.run(async {
        for life in 0..3 {
            let node = world.node("inn").build();
            log.on(&node).send(life).tell().await.expect("room");
            assert_eq!(heard.next().await, life);
            world.crash(&node);
            assert!(log.on(&node).is_stopped() || log.on(&node).send(9).await.is_err());
        }
        assert!(heard.so_far().is_empty());
    });
}

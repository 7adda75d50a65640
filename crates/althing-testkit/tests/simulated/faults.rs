//! Faults on demand: what they do, once to each message, and that none is asked for in vain.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use althing::{
    Actor, ActorError, ActorOptions, ActorRef, AskError, Context, EventHandler, Handler, Node,
    Published, Supervision, TopicOptions,
};
use althing_testkit::{AnyMessage, World};

#[derive(Default)]
struct Clerk {
    filed: Vec<u32>,
}

struct File(u32);
struct Filed;

impl Actor for Clerk {
    const NAME: &'static str = "test.clerk";
}

impl Handler<File> for Clerk {
    type Reply = usize;

    async fn handle(&mut self, File(number): File, _: &mut Context<Self>) -> usize {
        self.filed.push(number);
        self.filed.len()
    }
}

impl Handler<Filed> for Clerk {
    type Reply = Vec<u32>;

    async fn handle(&mut self, _: Filed, _: &mut Context<Self>) -> Vec<u32> {
        self.filed.clone()
    }
}

impl EventHandler<u32> for Clerk {
    async fn event(&mut self, event: &Published<u32>, _: &mut Context<Self>) {
        self.filed.push(event.payload);
    }
}

fn clerk(node: &Node) -> ActorRef<Clerk> {
    node.spawn_with(|_| async { Ok::<_, ActorError>(Clerk::default()) })
}

/// Asks often enough that the runtime knows the handlers to be quick: later asks run in place.
async fn warm_up(clerk: &ActorRef<Clerk>) {
    for number in 0..3 {
        clerk.send(File(number)).await.expect("it runs");
        clerk.send(Filed).await.expect("it runs");
    }
}

fn last_way(world: &World) -> String {
    let lines = world.trace().lines().to_vec();
    lines.into_iter().rev().find(|line| line.contains(" takes File")).expect("it was filed")
}

#[test]
fn asks_run_in_place_under_faults_as_they_do_in_production() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.panic_next::<Clerk, Filed>(1);
    world.run(async {
        let clerk = clerk(&node);
        assert!(clerk.send(Filed).await.is_err());
        warm_up(&clerk).await;
        clerk.send(File(9)).await.expect("it runs");
        let line = last_way(&world);
        assert!(line.ends_with("in place: ran"), "{line}");
    });
}

#[test]
fn an_ask_in_place_meets_a_panic() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let clerk = clerk(&node);
        warm_up(&clerk).await;
        world.panic_next::<Clerk, File>(2);
        for _ in 0..2 {
            let failed = clerk.send(File(9)).await;
            assert_eq!(failed, Err(AskError::HandlerPanicked(clerk.id())));
        }
        assert_eq!(clerk.send(File(10)).await, Ok(1), "it has begun anew");
    });
}

#[test]
fn an_ask_in_place_meets_a_delay_once() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let clerk = clerk(&node);
        warm_up(&clerk).await;
        let before = world.elapsed();
        world.delay_sometimes::<Clerk, File>(1_000, Duration::from_secs(1));
        assert_eq!(clerk.send(File(9)).await, Ok(4));
        assert_eq!(world.elapsed() - before, Duration::from_secs(1));
        let line = last_way(&world);
        assert!(!line.contains("in place"), "{line}");
    });
}

#[test]
fn a_message_in_the_mailbox_meets_a_delay_once() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.delay_sometimes::<Clerk, File>(1_000, Duration::from_secs(1));
    world.run(async {
        let clerk = clerk(&node);
        for number in 0..5 {
            clerk.send(File(number)).tell().await.expect("room");
        }
        assert_eq!(
            clerk.send(Filed).timeout(Duration::from_secs(60)).await.unwrap(),
            [0, 1, 2, 3, 4]
        );
        assert_eq!(world.elapsed(), Duration::from_secs(5));
    });
}

#[test]
fn what_waits_behind_a_delayed_message_stays_behind_it() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.delay_next::<Clerk, File>(1, Duration::from_secs(1));
    world.run(async {
        let clerk = clerk(&node);
        clerk.send(File(1)).tell().await.expect("room");
        world.sleep(Duration::from_millis(500)).await;
        clerk.send(File(2)).tell().await.expect("room");
        assert_eq!(clerk.send(Filed).await.unwrap(), [1, 2]);
        assert_eq!(world.elapsed(), Duration::from_secs(1));
    });
}

#[test]
fn an_actor_that_is_to_stop_after_a_delayed_message_runs_it_first_and_no_other() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.delay_next::<Clerk, File>(1, Duration::from_secs(1));
    world.run(async {
        let clerk = clerk(&node);
        let (first, second) = (clerk.clone(), clerk.clone());
        let first = world.spawn(async move { first.send(File(1)).await });
        let second = world.spawn(async move { second.send(File(2)).await });
        world.sleep(Duration::from_millis(1)).await;
        clerk.stop().await;
        assert!(first.await.is_ok());
        assert!(second.await.is_ok());
        assert_eq!(world.elapsed(), Duration::from_secs(1));
    });
}

#[test]
fn a_refused_ask_hears_of_it_and_a_refused_tell_is_lost() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let clerk = clerk(&node);
        world.refuse_next::<Clerk, File>(1);
        let refused = clerk.send(File(1)).await;
        assert!(matches!(refused, Err(AskError::Rejected(..))), "{refused:?}");
        warm_up(&clerk).await;
        world.refuse_next::<Clerk, File>(1);
        let refused = clerk.send(File(1)).await;
        assert!(matches!(refused, Err(AskError::Rejected(..))), "in place: {refused:?}");
        world.refuse_next::<Clerk, File>(1);
        clerk.send(File(8)).tell().await.expect("room");
        assert_eq!(clerk.send(Filed).await.unwrap(), [0, 1, 2]);
    });
}

#[test]
fn events_in_place_meet_faults() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.run(async {
        let clerks = [clerk(&node), clerk(&node), clerk(&node)];
        for clerk in &clerks {
            warm_up(clerk).await;
        }
        let topic = node.topic::<u32>("numbers", TopicOptions::default());
        let subscriptions = clerks.each_ref().map(|clerk| topic.subscribe(clerk));
        world.refuse_next::<Clerk, Published<u32>>(1);
        topic.publish(10).expect("nobody owns it");
        world.delay_next::<Clerk, Published<u32>>(1, Duration::from_secs(1));
        topic.publish(11).expect("nobody owns it");
        assert_eq!(clerks[0].send(Filed).await.unwrap(), [0, 1, 2, 11]);
        assert_eq!(world.elapsed(), Duration::from_secs(1));
        assert_eq!(clerks[1].send(Filed).await.unwrap(), [0, 1, 2, 10, 11]);
        assert_eq!(clerks[2].send(Filed).await.unwrap(), [0, 1, 2, 10, 11]);
        world.panic_next::<Clerk, Published<u32>>(1);
        topic.publish(12).expect("nobody owns it");
        assert_eq!(clerks[0].send(Filed).await.unwrap(), [0_u32; 0], "it has begun anew");
        assert_eq!(clerks[1].send(Filed).await.unwrap(), [0, 1, 2, 10, 11, 12]);
        drop(subscriptions);
    });
}

#[test]
fn any_message_stands_for_all_of_an_actor() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.panic_next::<Clerk, AnyMessage>(2);
    world.run(async {
        let clerk = clerk(&node);
        assert!(clerk.send(File(1)).await.is_err());
        assert!(clerk.send(Filed).await.is_err());
        assert!(clerk.send(Filed).await.is_ok());
    });
}

#[test]
fn a_chance_strikes_about_as_often_as_it_says() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.refuse_sometimes::<Clerk, File>(200);
    world.run(async {
        let clerk = clerk(&node);
        let mut refused = 0;
        for number in 0..1_000 {
            refused += u32::from(clerk.send(File(number)).await.is_err());
        }
        assert!((150..250).contains(&refused), "{refused}");
    });
}

#[test]
fn faults_do_not_change_the_schedule() {
    let sample = |with_rule: bool| {
        let world = World::new(5);
        let node = world.node("test").build();
        if with_rule {
            world.refuse_sometimes::<Clerk, File>(0);
        }
        world.run(async {
            let clerk = clerk(&node);
            let clients: Vec<_> = (0..20)
                .map(|number| {
                    let clerk = clerk.clone();
                    world.spawn(async move { clerk.send(File(number)).await })
                })
                .collect();
            for client in clients {
                client.await.expect("it runs");
            }
            clerk.send(Filed).await.unwrap()
        })
    };
    assert_eq!(sample(false), sample(true));
}

#[test]
fn a_fault_that_no_message_has_met_fails_the_test() {
    let world = World::new(8);
    let node = world.node("test").build();
    world.panic_next::<Clerk, File>(1);
    let run = || world.run(async { clerk(&node).send(Filed).await });
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the rule was asked for in vain");
    let text = panic.downcast_ref::<String>().expect("a panic with values in its text");
    assert!(text.contains("(seed 8): a panic for File to test.clerk"), "{text}");
    world.allow_unmet_faults();
    world.run(async { node.elapsed() });
    world.clear_faults();
}

/// Counts ticks, and goes on after a panic with what it has.
#[derive(Default)]
struct Pulse {
    ticks: u32,
}

struct Begin;
#[derive(Clone)]
struct Beat;
struct Beats;

impl Actor for Pulse {
    const NAME: &'static str = "test.pulse";

    fn options() -> ActorOptions {
        ActorOptions::default().supervision(Supervision::Resume)
    }
}

impl Handler<Begin> for Pulse {
    type Reply = ();

    async fn handle(&mut self, _: Begin, ctx: &mut Context<Self>) {
        ctx.every(Duration::from_secs(1), Beat);
    }
}

impl Handler<Beat> for Pulse {
    type Reply = ();

    async fn handle(&mut self, _: Beat, _: &mut Context<Self>) {
        self.ticks += 1;
    }
}

impl Handler<Beats> for Pulse {
    type Reply = u32;

    async fn handle(&mut self, _: Beats, _: &mut Context<Self>) -> u32 {
        self.ticks
    }
}

#[test]
fn a_timer_goes_on_after_the_faults_that_its_ticks_meet() {
    let world = World::new(1);
    let node = world.node("test").build();
    world.panic_next::<Pulse, Beat>(2);
    world.refuse_next::<Pulse, Beat>(3);
    world.delay_next::<Pulse, Beat>(1, Duration::from_millis(100));
    world.run(async {
        let pulse = node.spawn(Pulse::default());
        pulse.send(Begin).await.expect("it runs");
        world.sleep(Duration::from_millis(10_500)).await;
        assert_eq!(
            pulse.send(Beats).await,
            Ok(5),
            "two panicked, three were refused, one was late"
        );
    });
}

//! What metrics promise, against the public API only.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use althing::{
    Actor, ActorOptions, Admission, AskError, Context, EventHandler, Handler, KindSnapshot,
    MailboxKind, Metrics, Node, Published, Subscription, Topic, TopicOptions,
};
use tokio::sync::Semaphore;

const NAME: &str = "test.worker";

#[derive(Default)]
struct Worker {
    is_open: bool,
}

struct Work;
struct Sleep(Duration);
struct Hang;
struct Panic;
struct Forbidden;
struct Guarded;
struct Open;
struct Hold(Arc<Semaphore>);
struct News;

impl Actor for Worker {
    const NAME: &'static str = NAME;

    fn options() -> ActorOptions {
        ActorOptions::default().mailbox(MailboxKind::Bounded(4))
    }
}

impl Handler<Work> for Worker {
    type Reply = ();
    async fn handle(&mut self, _: Work, _ctx: &mut Context<Self>) {}
}

impl Handler<Sleep> for Worker {
    type Reply = ();
    async fn handle(&mut self, Sleep(time): Sleep, ctx: &mut Context<Self>) {
        ctx.node().sleep(time).await;
    }
}

impl Handler<Hang> for Worker {
    type Reply = ();
    async fn handle(&mut self, _: Hang, _ctx: &mut Context<Self>) {
        pending().await
    }
}

impl Handler<Panic> for Worker {
    type Reply = ();
    async fn handle(&mut self, _: Panic, _ctx: &mut Context<Self>) {
        panic!("on purpose");
    }
}

impl Handler<Forbidden> for Worker {
    type Reply = ();
    fn admit(&mut self, _: &Forbidden, _ctx: &mut Context<Self>) -> Admission {
        Admission::Reject("never".into())
    }
    async fn handle(&mut self, _: Forbidden, _ctx: &mut Context<Self>) {}
}

impl Handler<Guarded> for Worker {
    type Reply = ();
    fn admit(&mut self, _: &Guarded, _ctx: &mut Context<Self>) -> Admission {
        if self.is_open { Admission::Run } else { Admission::Stash }
    }
    async fn handle(&mut self, _: Guarded, _ctx: &mut Context<Self>) {}
}

impl Handler<Open> for Worker {
    type Reply = ();
    async fn handle(&mut self, _: Open, ctx: &mut Context<Self>) {
        self.is_open = true;
        ctx.unstash_all();
    }
}

impl Handler<Hold> for Worker {
    type Reply = ();
    async fn handle(&mut self, Hold(gate): Hold, _ctx: &mut Context<Self>) {
        gate.acquire().await.expect("never closed").forget();
    }
}

impl EventHandler<News> for Worker {
    async fn event(&mut self, _: &Published<News>, _ctx: &mut Context<Self>) {}
}

fn node() -> Node {
    Node::builder("test").actor(async |_| Ok(Worker::default())).build()
}

fn worker(node: &Node) -> KindSnapshot {
    node.metrics().kind(NAME).cloned().expect("a worker was addressed")
}

#[tokio::test]
async fn every_message_is_counted_once_told_or_asked() {
    let node = node();
    let actor = node.get::<Worker>("a");
    for _ in 0..300 {
        actor.send(Work).await.unwrap();
        actor.send(Work).tell().await.unwrap();
    }
    actor.send(Work).await.unwrap();
    assert_eq!(worker(&node).handled, 601);
}

#[tokio::test]
async fn histogram_holds_one_in_512_messages() {
    // One thread only: its shard's count decides who is timed.
    let node = node();
    let actor = node.get::<Worker>("a");
    for _ in 0..4_000 {
        actor.send(Work).await.unwrap();
    }
    let worker = worker(&node);
    assert_eq!(worker.handling.count(), worker.handled.div_ceil(512));
    assert_eq!(worker.messages.iter().map(|message| message.sampled).sum::<u64>(), 8);
    assert_eq!(worker.messages[0].name, "Work");
}

#[tokio::test(start_paused = true)]
async fn handling_time_includes_the_waits_of_a_handler() {
    let node = node();
    // The first message of a type is always timed.
    node.get::<Worker>("a").send(Sleep(Duration::from_secs(2))).await.unwrap();
    let worker = worker(&node);
    assert_eq!(worker.handling.count(), 1);
    assert!(worker.handling.mean() >= Duration::from_secs(2), "{:?}", worker.handling.mean());
    assert!(worker.messages[0].max >= Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_of_all_threads_add_up() {
    let node = node();
    let tasks: Vec<_> = (0..8)
        .map(|i| {
            let actor = node.get::<Worker>(format!("{i}"));
            tokio::spawn(async move {
                for _ in 0..500 {
                    actor.send(Work).await.unwrap();
                    actor.send(Work).tell().await.unwrap();
                }
                actor.send(Work).await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(worker(&node).handled, 8 * 1_001);
}

#[tokio::test]
async fn failures_are_counted_by_kind() {
    let node = node();
    let actor = node.get::<Worker>("a");
    assert!(matches!(actor.send(Forbidden).await, Err(AskError::Rejected(..))));
    assert!(matches!(actor.send(Panic).await, Err(AskError::HandlerPanicked(_))));
    actor.send(Work).await.unwrap();
    let worker = worker(&node);
    assert_eq!((worker.rejected, worker.panicked, worker.failed()), (1, 1, 2));
    assert_eq!((worker.started, worker.stopped, worker.restarted), (2, 1, 1));
    assert_eq!((worker.live(), worker.handled), (1, 3));
}

#[tokio::test]
async fn live_actors_are_those_with_their_state_in_memory() {
    let node = node();
    let actors: Vec<_> = (0..3).map(|i| node.get::<Worker>(format!("{i}"))).collect();
    for actor in &actors {
        actor.send(Work).await.unwrap();
    }
    assert_eq!(worker(&node).live(), 3);
    actors[0].stop().await;
    actors[1].kill();
    actors[1].stopped().await;
    assert_eq!(worker(&node).live(), 1);
}

#[tokio::test(start_paused = true)]
async fn asks_that_time_out_or_find_no_room_are_counted() {
    let node = node();
    let actor = node.get::<Worker>("a");
    assert!(matches!(actor.send(Hang).await, Err(AskError::Timeout(_))));
    for _ in 0..4 {
        actor.send(Work).try_tell().unwrap();
    }
    assert!(actor.send(Work).try_tell().is_err());
    assert!(actor.send(Work).tell().await.is_err());
    assert!(matches!(actor.send(Work).await, Err(AskError::Overloaded(_))));
    let worker = worker(&node);
    assert_eq!((worker.timed_out, worker.overloaded), (1, 3));
}

#[tokio::test]
async fn a_stashed_message_counts_when_it_runs() {
    let node = node();
    let actor = node.get::<Worker>("a");
    actor.send(Guarded).tell().await.unwrap();
    actor.send(Open).await.unwrap();
    actor.send(Work).await.unwrap();
    assert_eq!(worker(&node).handled, 3);
}

fn subscribe(node: &Node, key: &str) -> (Topic<News>, Subscription) {
    let topic = node.topic::<News>("news", TopicOptions::default());
    let subscription = topic.subscribe(&node.get::<Worker>(key));
    (topic, subscription)
}

#[tokio::test(start_paused = true)]
async fn depth_age_and_missed_events_show_an_actor_that_is_behind() {
    let node = node();
    let actor = node.get::<Worker>("behind");
    let (topic, _subscription) = subscribe(&node, "behind");
    let gate = Arc::new(Semaphore::new(0));
    actor.send(Hold(gate.clone())).tell().await.unwrap();
    // The handler holds the actor from here on.
    while node.metrics().kind(NAME).is_none_or(|worker| worker.handled == 0) {
        tokio::task::yield_now().await;
    }
    for _ in 0..6 {
        topic.publish(News).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(7)).await;
    let worker = worker(&node);
    assert_eq!((worker.depth, worker.depth_max, worker.missed), (4, 4, 2));
    assert!(worker.oldest >= Duration::from_secs(6), "{:?}", worker.oldest);

    let inspection = node.inspector().look(10);
    assert_eq!(inspection.deep.len(), 1);
    assert_eq!((inspection.deep[0].depth, inspection.deep[0].is_active), (4, true));
    assert_eq!(inspection.deep[0].id, actor.id());

    gate.add_permits(1);
    actor.send(Work).await.unwrap();
    assert_eq!(node.metrics().kind(NAME).map(|worker| worker.depth), Some(0));
}

#[tokio::test]
async fn an_inspector_tells_the_busiest_since_its_last_look() {
    let node = node();
    let mut inspector = node.inspector();
    for (key, messages) in [("a", 5), ("b", 50), ("c", 20)] {
        for _ in 0..messages {
            node.get::<Worker>(key).send(Work).await.unwrap();
        }
    }
    let hot: Vec<_> = inspector.look(2).hot.iter().map(|view| view.handled).collect();
    assert_eq!(hot, [50, 20]);
    node.get::<Worker>("a").send(Work).await.unwrap();
    let inspection = inspector.look(2);
    assert_eq!(inspection.hot.len(), 1, "only one was busy since");
    assert_eq!((inspection.hot[0].handled, inspection.visited), (1, 3));
    assert_eq!(inspection.hot[0].id.key().map(|key| &**key), Some("a"));
}

#[tokio::test]
async fn prometheus_gets_each_family_once_and_each_type_in_it() {
    let node = node();
    node.get::<Worker>("a").send(Work).await.unwrap();
    let text = node.metrics().prometheus_text();
    assert!(text.contains("# TYPE althing_messages_handled_total counter\n"));
    assert!(text.contains("althing_messages_handled_total{actor=\"test.worker\"} 1\n"));
    assert!(text.contains("althing_actors_live{actor=\"test.worker\"} 1\n"));
    assert!(
        text.contains("althing_handling_seconds_bucket{actor=\"test.worker\",le=\"+Inf\"} 1\n")
    );
    assert!(text.contains("althing_handling_seconds_count{actor=\"test.worker\"} 1\n"));
    let count = r#"althing_message_handling_seconds_count{actor="test.worker",message="Work"} 1"#;
    assert!(text.contains(count), "{text}");
    let mut types: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let all = types.len();
    types.dedup();
    assert_eq!(types.len(), all);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        assert!(value.is_some_and(f64::is_finite), "{line}");
    }
}

#[tokio::test]
async fn histogram_buckets_rise_to_the_count() {
    let node = node();
    for _ in 0..5_120 {
        node.get::<Worker>("a").send(Work).await.unwrap();
    }
    let text = node.metrics().prometheus_text();
    let buckets: Vec<u64> = text
        .lines()
        .filter(|line| line.starts_with("althing_handling_seconds_bucket"))
        .map(|line| line.rsplit(' ').next().expect("a value").parse().expect("a whole number"))
        .collect();
    assert!(buckets.is_sorted());
    assert_eq!(buckets.last(), Some(&10));
}

#[tokio::test]
async fn a_node_with_metrics_off_works_and_counts_nothing() {
    let node =
        Node::builder("test").metrics(Metrics::Off).actor(async |_| Ok(Worker::default())).build();
    node.get::<Worker>("a").send(Work).await.unwrap();
    node.get::<Worker>("a").send(Work).tell().await.unwrap();
    node.get::<Worker>("a").send(Work).await.unwrap();
    let worker = worker(&node);
    assert_eq!((worker.handled, worker.started, worker.handling.count()), (0, 0, 0));
}

//! What tracing promises: one span per handled message, its parent the span that it was sent from.

use std::sync::Arc;

use crate::support::{Flex, On, flex, node, within};
use althing::{
    Actor, ActorRef, Context, EventHandler, Handler, Node, Published, Read, ReadHandler, Receives,
    Topic, TopicOptions, Tracing,
};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Instrument, Subscriber, info_span};
use tracing_subscriber::layer::{Context as LayerContext, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

struct Front {
    back: ActorRef<Back>,
    topic: Topic<News>,
}
struct Back;

struct Ask;
struct Tell;
struct Publish;
struct Work;
struct Look;
struct Slow;
struct News;

impl Actor for Front {
    const NAME: &'static str = "test.front";
}

impl Actor for Back {
    const NAME: &'static str = "test.back";
}

impl Handler<Ask> for Front {
    type Reply = ();
    async fn handle(&mut self, _: Ask, _ctx: &mut Context<Self>) {
        self.back.send(Work).await.expect("the back lives");
    }
}

impl Handler<Tell> for Front {
    type Reply = ();
    async fn handle(&mut self, _: Tell, _ctx: &mut Context<Self>) {
        for _ in 0..3 {
            self.back.send(Work).tell().await.expect("the back lives");
        }
    }
}

impl Handler<Publish> for Front {
    type Reply = ();
    async fn handle(&mut self, _: Publish, _ctx: &mut Context<Self>) {
        self.topic.publish(News).expect("nobody owns it");
    }
}

impl Handler<Work> for Back {
    type Reply = ();
    async fn handle(&mut self, _: Work, _ctx: &mut Context<Self>) {
        tracing::info_span!("inside").in_scope(|| ());
    }
}

impl Handler<Slow> for Back {
    type Reply = ();
    async fn handle(&mut self, _: Slow, _ctx: &mut Context<Self>) {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        tracing::info_span!("inside").in_scope(|| ());
    }
}

impl ReadHandler<Look> for Back {
    type Reply = ();
    async fn read(&self, _: Look, _ctx: &Context<Self>) {}
}

impl Receives<Look> for Back {
    type Reply = ();
    type Way = Read;
}

impl EventHandler<News> for Back {
    async fn event(&mut self, _: &Published<News>, _ctx: &mut Context<Self>) {}
}

/// Spans as `parent/…/name`, with actor type and message type in place of `handle`.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

struct Path(String);

#[derive(Default)]
struct Fields {
    actor: String,
    message: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.rsplit("::").next().unwrap_or(value).to_owned();
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "actor" {
            let id = format!("{value:?}");
            self.actor = id.split(['#', '/']).next().unwrap_or(&id).to_owned();
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: LayerContext<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let span = context.span(id).expect("just made");
        let name = match span.name() {
            "handle" => format!("{} {}", fields.actor, fields.message),
            name => name.to_owned(),
        };
        let path = match span.parent() {
            Some(parent) => {
                let extensions = parent.extensions();
                format!("{} > {name}", extensions.get::<Path>().expect("parents come first").0)
            }
            None => name,
        };
        self.0.lock().push(path.clone());
        span.extensions_mut().insert(Path(path));
    }
}

/// Runs `work` in the span `request` and returns the spans that were made, sorted.
fn spans<F: Future<Output = ()> + Send + 'static>(
    tracing: Tracing,
    work: impl FnOnce(ActorRef<Front>, ActorRef<Back>) -> F,
) -> Vec<String> {
    let recorder = Recorder::default();
    let subscriber = tracing_subscriber::registry().with(recorder.clone());
    let _default = tracing::subscriber::set_default(subscriber);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let node = Node::builder("test").trace(tracing).build();
        let topic = node.topic("news", TopicOptions::default());
        let back = node.spawn(Back);
        let front = node.spawn(Front { back: back.clone(), topic: topic.clone() });
        let _subscription = topic.subscribe(&back);
        let work = work(front.clone(), back.clone());
        tokio::spawn(work.instrument(info_span!("request"))).await.expect("no panic");
        front.stop().await;
        back.stop().await;
    });
    let mut spans = recorder.0.lock().clone();
    spans.sort();
    spans
}

#[test]
fn an_ask_in_place_nests_under_its_asker() {
    let mut spans = spans(Tracing::On, |front, _| async move {
        // The first goes through the mailbox: its handler is not known to be quick yet.
        front.send(Ask).await.unwrap();
        front.send(Ask).await.unwrap();
    });
    assert_eq!(spans.len(), 1 + 2 * 3, "each way makes the same spans: {spans:?}");
    spans.dedup();
    assert_eq!(
        spans,
        [
            "request",
            "request > test.front Ask",
            "request > test.front Ask > test.back Work",
            "request > test.front Ask > test.back Work > inside",
        ]
    );
}

#[test]
fn told_messages_take_the_senders_span_through_mailboxes() {
    let spans = spans(Tracing::On, |front, _| async move {
        front.send(Tell).tell().await.unwrap();
    });
    assert_eq!(spans.iter().filter(|path| path.ends_with("Tell > test.back Work")).count(), 3);
    assert!(spans.iter().all(|path| path.starts_with("request")), "{spans:?}");
}

#[test]
fn a_handler_that_waits_stays_in_its_span() {
    for is_told in [false, true] {
        let spans = spans(Tracing::On, move |_, back| async move {
            if is_told {
                back.send(Slow).tell().await.unwrap();
            }
            back.send(Slow).await.unwrap();
        });
        let inside = spans.iter().filter(|path| *path == "request > test.back Slow > inside");
        assert_eq!(inside.count(), 1 + usize::from(is_told), "{spans:?}");
    }
}

#[test]
fn reads_and_events_have_spans_too() {
    let spans = spans(Tracing::On, |front, back| async move {
        back.send(Look).tell().await.unwrap();
        front.send(Publish).await.unwrap();
    });
    assert!(spans.contains(&"request > test.back Look".to_owned()), "{spans:?}");
    let event = "request > test.front Publish > test.back Published<tracing::News>";
    let short = "request > test.front Publish > test.back News>";
    assert!(spans.iter().any(|path| path == event || path == short), "{spans:?}");
}

#[test]
fn a_refused_message_comes_back_whole_when_traced() {
    spans(Tracing::On, |_, back| async move {
        back.kill();
        back.stopped().await;
        let refused = back.send(Work).try_tell();
        assert!(matches!(refused, Err(althing::SendError::Stopped(Work))));
        assert!(back.send(Work).await.is_err());
    });
}

#[test]
fn a_node_without_tracing_makes_no_spans() {
    let spans = spans(Tracing::Off, |front, _| async move { front.send(Ask).await.unwrap() });
    assert!(spans.iter().any(|path| path.ends_with("inside")), "{spans:?}");
    assert!(spans.iter().all(|path| !path.contains("test.")), "{spans:?}");
}

/// Looks at the node whenever something is logged.
struct Onlooker(Arc<Mutex<Option<Node>>>);

impl<S: Subscriber> Layer<S> for Onlooker {
    fn on_event(&self, _: &tracing::Event<'_>, _: LayerContext<'_, S>) {
        let node = self.0.lock().take();
        if let Some(node) = node {
            drop(node.spawn(Flex::default()));
        }
    }
}

struct Namesake;

impl Actor for Namesake {
    const NAME: &'static str = Flex::NAME;
}

/// That its name is another type's is logged.
#[test]
fn whoever_hears_that_a_name_is_twice_may_use_the_node() {
    within(On::OneThread, async {
        let looked_at = Arc::new(Mutex::new(None));
        let onlooker = Onlooker(looked_at.clone());
        let subscriber = tracing_subscriber::registry().with(onlooker);
        let _default = tracing::subscriber::set_default(subscriber);
        let node = node();
        flex(&node);
        *looked_at.lock() = Some(node.clone());
        drop(node.spawn(Namesake));
        assert!(looked_at.lock().is_none(), "somebody has logged");
    });
}

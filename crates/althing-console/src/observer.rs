//! Looks at the node when asked, at most once a second: all viewers share one look and see the same
//! rates.

use std::time::Duration;

use althing::{Inspector, Node};
use parking_lot::Mutex;

use crate::lines::{TopicLine, TreeLine};
use crate::view::{Seen, Since, TopicsView, TreeView, View};
use crate::windows::{WINDOWS, Windows};

/// Pause between two looks. A little under the second at which viewers ask, so that each gets a
/// fresh one.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// Actors listed as hot, and as deep.
const ACTORS_MAX: usize = 12;
/// From when on a handler is listed: a request's patience.
const STUCK_AFTER: Duration = Duration::from_secs(1);
/// Topics on a page, and actors found in the tree.
const FOUND_MAX: usize = 100;

pub(crate) struct Observer {
    node: Node,
    state: Mutex<State>,
}

struct State {
    inspector: Inspector,
    last: Option<Look>,
    windows: Windows,
}

struct Look {
    at: Duration,
    since: Since,
    view: View,
}

impl Observer {
    pub(crate) fn new(node: &Node) -> Self {
        let state = State { inspector: node.inspector(), last: None, windows: Windows::default() };
        Self { node: node.clone(), state: Mutex::new(state) }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// The present view. Takes tens of milliseconds on a node with a million actors, so it belongs
    /// on the blocking pool.
    pub(crate) fn view(&self) -> View {
        let mut state = self.state.lock();
        let state = &mut *state;
        let now = self.node.elapsed();
        if let Some(last) = &state.last
            && now - last.at < LOOK_EVERY
        {
            return last.view.clone();
        }
        let snapshot = self.node.metrics();
        let actors = state.inspector.look(ACTORS_MAX);
        let stuck = state.inspector.long_running(STUCK_AFTER, ACTORS_MAX);
        let since = state.last.take().map(|last| Since { elapsed: now - last.at, ..last.since });
        let [short, long] = WINDOWS.map(|window| state.windows.window(window, now));
        let seen = Seen { snapshot: &snapshot, actors: &actors, stuck: &stuck, short, long };
        let view = View {
            node: self.node.name().to_owned(),
            uptime_s: now.as_secs(),
            ..View::new(&seen, since.as_ref())
        };
        state.windows.keep(now, &snapshot);
        let since = Since { snapshot, elapsed: Duration::ZERO };
        state.last = Some(Look { at: now, since, view: view.clone() });
        view
    }
}

impl Observer {
    /// The topics whose names hold `text`, after the name `after`. Each asker is served alone,
    /// after those before.
    pub(crate) fn topics(&self, text: &str, after: &str) -> TopicsView {
        let state = self.state.lock();
        let (topics, left) = state.inspector.topics(text, after, FOUND_MAX);
        TopicsView { topics: topics.iter().map(TopicLine::from).collect(), left }
    }

    /// The actors whose kind or key holds `text`, with their parents; likewise.
    pub(crate) fn tree(&self, text: &str) -> TreeView {
        let state = self.state.lock();
        let tree = state.inspector.tree(text, FOUND_MAX);
        TreeView { actors: tree.actors.iter().map(TreeLine::from).collect(), left: tree.left }
    }
}

#[cfg(test)]
mod tests {
    use althing::{Actor, Context, Handler};

    use super::*;

    struct Worker;
    struct Work;
    struct Nap(Duration);

    impl Actor for Worker {
        const NAME: &'static str = "test.worker";
    }

    impl Handler<Nap> for Worker {
        type Reply = ();
        async fn handle(&mut self, Nap(time): Nap, ctx: &mut Context<Self>) {
            ctx.node().sleep(time).await;
        }
    }

    impl Handler<Work> for Worker {
        type Reply = ();
        async fn handle(&mut self, _: Work, _ctx: &mut Context<Self>) {}
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_look_within_a_second_share_one_look_and_the_next_tells_rates() {
        let node = Node::builder("harbour").actor(async |_| Ok(Worker)).build();
        let observer = Observer::new(&node);
        let first = observer.view();
        for _ in 0..100 {
            node.get::<Worker>("a").send(Work).await.unwrap();
        }
        assert_eq!(observer.view(), first);
        tokio::time::advance(Duration::from_secs(2)).await;
        let later = observer.view();
        assert_eq!((later.hot[0].id.as_str(), later.hot[0].rate), ("test.worker/a", 50.0));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(observer.view().hot, [], "nobody was busy since");
    }

    #[tokio::test(start_paused = true)]
    async fn quantiles_are_of_the_window_and_not_since_the_start() {
        let node = Node::builder("harbour").actor(async |_| Ok(Worker)).build();
        let observer = Observer::new(&node);
        let worker = node.get::<Worker>("a");
        // The first message is timed, and then one in 512.
        worker.send(Nap(Duration::from_secs(3))).timeout(Duration::from_secs(9)).await.unwrap();
        let first = observer.view();
        assert!(first.kinds[0].short.p99_us >= 3e6, "{:?}", first.kinds[0]);
        assert_eq!((first.slow[0].message.as_str(), first.short_s.round()), ("Nap", 3.0));
        for _ in 0..12 {
            tokio::time::advance(Duration::from_secs(1)).await;
            observer.view();
        }
        for _ in 0..512 {
            worker.send(Work).await.unwrap();
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        let view = observer.view();
        let kind = &view.kinds[0];
        assert_eq!((kind.short.timed, view.short_s.round()), (1, 10.0));
        assert!(kind.short.p99_us < 1e6, "the nap is over: {kind:?}");
        assert_eq!(view.long_s.round(), 13.0, "the first look was thirteen seconds ago");
        let work = view.slow.iter().find(|line| line.message == "Work").expect("it was timed");
        assert_eq!((work.short.timed, work.long.timed), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_that_does_not_come_back_is_listed_from_the_second_look_on() {
        let node = Node::builder("harbour").actor(async |_| Ok(Worker)).build();
        let observer = Observer::new(&node);
        let worker = node.get::<Worker>("a");
        worker.send(Nap(Duration::from_secs(60))).tell().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(observer.view().stuck, []);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let stuck = observer.view().stuck;
        assert_eq!((stuck[0].id.as_str(), stuck[0].activity.as_str()), ("test.worker/a", "Nap"));
        assert_eq!((stuck[0].at_least_s.round(), stuck[0].blocks_thread), (5.0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn rates_of_types_count_from_the_look_before() {
        let node = Node::builder("harbour").actor(async |_| Ok(Worker)).build();
        let observer = Observer::new(&node);
        for messages in [1, 30] {
            for _ in 0..messages {
                node.get::<Worker>("a").send(Work).await.unwrap();
            }
            observer.view();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        node.get::<Worker>("a").send(Work).await.unwrap();
        assert_eq!(observer.view().kinds[0].rate, 1.0);
    }
}

//! Looks at the node when asked, at most once a second: all viewers share one look and see the same rates.

use std::time::Duration;

use althing::{Inspector, Node};
use parking_lot::Mutex;

use crate::view::{Since, View};

/// Pause between two looks. A little under the second at which viewers ask, so that each gets a fresh one.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// Actors listed as hot, and as deep.
const ACTORS_MAX: usize = 12;

pub(crate) struct Observer {
    node: Node,
    state: Mutex<State>,
}

struct State {
    inspector: Inspector,
    last: Option<Look>,
}

struct Look {
    at: Duration,
    since: Since,
    view: View,
}

impl Observer {
    pub(crate) fn new(node: &Node) -> Self {
        let state = State { inspector: node.inspector(), last: None };
        Self { node: node.clone(), state: Mutex::new(state) }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// The present view. Takes tens of milliseconds on a node with a million actors, so it belongs on the blocking pool.
    pub(crate) fn view(&self) -> View {
        let mut state = self.state.lock();
        let now = self.node.elapsed();
        if let Some(last) = &state.last
            && now - last.at < LOOK_EVERY
        {
            return last.view.clone();
        }
        let snapshot = self.node.metrics();
        let seen = state.inspector.look(ACTORS_MAX);
        let since = state.last.take().map(|last| Since { elapsed: now - last.at, ..last.since });
        let view = View {
            node: self.node.name().to_owned(),
            uptime_s: now.as_secs(),
            ..View::new(&snapshot, &seen, since.as_ref())
        };
        let since = Since { snapshot, elapsed: Duration::ZERO };
        state.last = Some(Look { at: now, since, view: view.clone() });
        view
    }
}

#[cfg(test)]
mod tests {
    use althing::{Actor, Context, Handler};

    use super::*;

    struct Worker;
    struct Work;

    impl Actor for Worker {
        const NAME: &'static str = "test.worker";
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

//! The actors of a node one by one: those whose name holds a text, and a certain one.

use std::sync::Arc;

use crate::address::actor_id::{ActorId, KindName};
use crate::address::place::AnyPlace;
use crate::metrics::inspection::{ActorView, Inspector, VISITS_MAX, view};
use crate::metrics::tree::holds;

/// What was found of the actors in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// Some of them, by name.
    pub actors: Vec<ActorView>,
    /// Actors that would have been found too, had there been room.
    pub left: usize,
}

impl Inspector {
    /// The actors whose kind or key holds `text`, `limit` at most; an empty `text` finds all.
    ///
    /// Visits every actor of the node, and locks the mailboxes of those that it finds for a moment.
    pub fn actors(&self, text: &str, limit: usize) -> Listing {
        let (mut found, mut left): (Vec<Arc<dyn AnyPlace>>, _) = (Vec::new(), 0);
        self.node().holdings().directory.sample(VISITS_MAX, |place| {
            if !holds(place.header(), text) {
                return;
            }
            if found.len() < limit {
                found.push(place.clone());
            } else {
                left += 1;
            }
        });
        let now_s = self.node().tick_coarse();
        let look = |place: &Arc<dyn AnyPlace>| self.view_of(place, now_s);
        let mut actors: Vec<_> = found.iter().map(look).collect();
        actors.sort_by(|one, other| one.id.cmp(&other.id));
        Listing { actors, left }
    }

    /// What the actor is doing; `None` if this node has nothing of it in memory.
    pub fn actor(&self, id: &ActorId) -> Option<ActorView> {
        let holdings = self.node().holdings();
        let place = match (id.place_of_birth(), id.key()) {
            (Some(origin), _) if origin.node == self.node().incarnation => {
                holdings.directory.anonymous(origin)
            }
            (None, Some(key)) => {
                let kind = holdings.kinds.of_name(id.kind().as_str())?;
                holdings.directory.find(&kind, key)
            }
            _ => None,
        }?;
        Some(self.view_of(&place, self.node().tick_coarse()))
    }

    /// Whether the node was built with actors of that name, or has met some.
    pub fn knows(&self, kind: &KindName) -> bool {
        self.node().holdings().kinds.of_name(kind.as_str()).is_some()
    }

    fn view_of(&self, place: &Arc<dyn AnyPlace>, now_s: u32) -> ActorView {
        let header = place.header();
        let before = self.before.get(&header.serial()).copied().unwrap_or(0);
        view(header, header.mailbox.tally().wrapping_sub(before), now_s)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Actor, ActorId, Context, Handler, Node};

    struct Clerk;
    struct Work;

    impl Actor for Clerk {
        const NAME: &'static str = "test.clerk";
    }

    impl Handler<Work> for Clerk {
        type Reply = ();
        async fn handle(&mut self, _: Work, _ctx: &mut Context<Self>) {}
    }

    #[tokio::test]
    async fn actors_are_listed_by_a_part_of_their_name_and_found_by_the_whole() {
        let node = Node::builder("test").actor(async |_| Ok(Clerk)).build();
        for key in ["ada", "alan", "grace"] {
            node.get::<Clerk>(key).send(Work).await.expect("it works");
        }
        let inspector = node.inspector();
        let named = |text, limit| {
            let listing = inspector.actors(text, limit);
            let keys = listing.actors.iter().map(|actor| actor.id.to_string());
            (keys.collect::<Vec<_>>(), listing.left)
        };
        assert_eq!(named("a", 9).0, ["test.clerk/ada", "test.clerk/alan", "test.clerk/grace"]);
        assert_eq!(named("rac", 9), (vec!["test.clerk/grace".to_owned()], 0));
        assert_eq!((named("", 2).0.len(), named("", 2).1), (2, 1));
        let ada = inspector.actor(&ActorId::named("test.clerk", "ada")).expect("it is here");
        assert_eq!((ada.is_active, ada.depth, ada.handled), (true, 0, 1));
        assert_eq!(inspector.actor(&ActorId::named("test.clerk", "nobody")), None);
        assert_eq!(inspector.actor(&ActorId::named("test.other", "ada")), None);
        assert!(inspector.knows(ada.id.kind()));
    }
}

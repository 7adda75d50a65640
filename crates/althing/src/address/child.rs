//! Children that are there already, when they are started: a value and, if wanted, a name.
//!
//! A parent is set before its child can run, because a child may fail at once.

use crate::activation::context::Context;
use crate::actor::Actor;
use crate::address::actor_id::Key;
use crate::address::actor_ref::ActorRef;
use crate::address::parent::Parent;
use crate::address::place::AsAnyPlace;
use crate::error::NameTaken;
use crate::node::shared::Node;

impl<A: Actor> Context<A> {
    /// Prepares a child from a value; [`spawn`](Self::spawn) is for one that a factory builds.
    ///
    /// ```
    /// use althing::{ActorRef, Context, NameTaken, Node, actor};
    ///
    /// struct Clerk(String);
    /// struct Office;
    ///
    /// #[actor(name = "example.clerk")]
    /// impl Clerk {
    ///     async fn name(&self) -> String {
    ///         self.0.clone()
    ///     }
    /// }
    ///
    /// #[actor(name = "example.office")]
    /// impl Office {
    ///     async fn hire(&mut self, name: String, ctx: &mut Context<Self>) -> Result<(), NameTaken> {
    ///         ctx.child(Clerk(name.clone())).named(name).start()?;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Node::builder("town").build();
    /// let office = node.spawn(Office);
    /// office.hire("Ada".into()).flatten().await?;
    /// assert_eq!(node.get::<Clerk>("Ada").name().await?, "Ada");
    /// assert!(office.hire("Ada".into()).await?.is_err(), "there is one of that name");
    /// # Ok(())
    /// # }
    /// ```
    pub fn child<C: Actor>(&mut self, actor: C) -> Child<C> {
        Child {
            node: self.node(),
            parent: Parent::of(self.address().place().as_any_place()),
            actor,
        }
    }
}

/// A child that is still to be started, from [`Context::child`].
///
/// It stops when its parent does, and at once if its parent has stopped or restarted by then.
/// Unless its type has a factory on this node, it cannot be built anew, and so stops at its first
/// failure that is not resumed.
#[must_use = "a child does nothing until it is started"]
pub struct Child<C: Actor> {
    node: Node,
    parent: Parent,
    actor: C,
}

impl<C: Actor> Child<C> {
    /// Gives it a name, by which `node.get` finds it.
    pub fn named(self, key: impl Into<Key>) -> NamedChild<C> {
        NamedChild { child: self, key: key.into() }
    }

    /// Starts it without a name.
    pub fn start(self) -> ActorRef<C> {
        self.node.spawn_under(self.actor, &self.parent)
    }
}

impl<C: Actor> std::fmt::Debug for Child<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child").field("name", &C::NAME).finish_non_exhaustive()
    }
}

/// A child with a name that is still to be started, from [`Child::named`].
#[must_use = "a child does nothing until it is started"]
pub struct NamedChild<C: Actor> {
    child: Child<C>,
    key: Key,
}

impl<C: Actor> NamedChild<C> {
    /// Starts it.
    ///
    /// # Errors
    /// `NameTaken` if an actor of that type and name runs, or was unloaded and may come back.
    pub fn start(self) -> Result<ActorRef<C>, NameTaken> {
        let Child { node, parent, actor } = self.child;
        node.spawn_named_under(self.key, actor, Some(&parent))
    }
}

impl<C: Actor> std::fmt::Debug for NamedChild<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NamedChild").field(&self.child).field(&self.key).finish()
    }
}

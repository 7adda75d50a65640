//! The number of a timer, which no other timer of its node ever has.

/// Names a timer of an actor.
///
/// ```
/// use std::time::Duration;
///
/// use althing::{Context, Node, TimerId, actor};
///
/// struct Bomb(Option<TimerId>);
///
/// #[actor(name = "example.bomb")]
/// impl Bomb {
///     async fn arm(&mut self, ctx: &mut Context<Self>) {
///         self.0 = Some(ctx.after(Duration::from_secs(60), bomb_messages::Explode));
///     }
///
///     async fn disarm(&mut self, ctx: &mut Context<Self>) -> bool {
///         self.0.take().is_some_and(|timer| ctx.cancel(timer))
///     }
///
///     async fn explode(&mut self) {
///         unreachable!("somebody disarms it");
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let bomb = Node::builder("film").build().spawn(Bomb(None));
/// bomb.arm().await?;
/// assert!(bomb.disarm().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub(super) u64);

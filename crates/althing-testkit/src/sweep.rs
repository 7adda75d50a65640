//! Runs a test under many seeds, or under the one that failed.

use std::future::Future;

use crate::world::World;

/// Names the one seed to run, where a failure is looked into.
pub(crate) const SEED_VARIABLE: &str = "ALTHING_SEED";

/// Runs `test` in a world of its own for each seed, and stops at the first that fails, whose trace
/// it prints.
///
/// With the environment variable `ALTHING_SEED` it runs that seed and no other.
///
/// ```
/// use althing::actor;
/// use althing_testkit::{World, sweep};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// #[actor(name = "example.counter")]
/// impl Counter {
///     async fn add(&mut self, n: u64) -> u64 {
///         self.0 += n;
///         self.0
///     }
/// }
///
/// sweep(0..100, async |world: World| {
///     let node = world.node("test").build();
///     let counter = node.spawn(Counter::default());
///     let other = counter.clone();
///     let client = world.spawn(async move { other.add(2).await });
///     counter.add(3).await.expect("it runs");
///     client.await.expect("it runs");
///     assert_eq!(counter.add(0).await, Ok(5), "in whichever order they came");
/// });
/// ```
///
/// # Panics
/// As the test does, and if `ALTHING_SEED` is set to what is no number.
pub fn sweep<F>(seeds: impl IntoIterator<Item = u64>, test: F)
where
    F: AsyncFn(World),
{
    let only = std::env::var(SEED_VARIABLE).ok().map(|text| {
        text.parse().unwrap_or_else(|_| panic!("{SEED_VARIABLE} is no number: {text}"))
    });
    match only {
        Some(seed) => run(seed, &test),
        None => seeds.into_iter().for_each(|seed| run(seed, &test)),
    }
}

fn run<F: AsyncFn(World)>(seed: u64, test: &F) {
    let world = World::swept(seed);
    // Made inside, because a test may hold its world.
    let future = boxed(test(world.clone()));
    world.run(future);
}

/// Tests are large futures, and small stacks are common.
fn boxed<'a>(
    future: impl Future<Output = ()> + 'a,
) -> std::pin::Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(future)
}

//! Faults on demand, as handlers meet them: panics and delays for messages of a type to an actor type.

use std::time::Duration;

use althing::Fault;
use parking_lot::Mutex;

use crate::random::Random;

/// Which faults a world injects; the first rule that fits a message decides.
///
/// ```
/// use althing::{Actor, AskError, Context, Handler};
/// use althing_testkit::World;
///
/// struct Worker;
/// struct Work;
///
/// impl Actor for Worker {
///     const NAME: &'static str = "example.worker";
/// }
///
/// impl Handler<Work> for Worker {
///     type Reply = ();
///
///     async fn handle(&mut self, _: Work, _: &mut Context<Self>) {}
/// }
///
/// let world = World::new(7);
/// let node = world.node("test").build();
/// world.faults().panic_next("example.worker", "Work", 1);
/// world.run(async {
///     let worker = node.spawn(Worker);
///     assert_eq!(worker.send(Work).await, Err(AskError::HandlerPanicked(worker.id())));
/// });
/// ```
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Vec<Rule>>,
}

#[derive(Debug)]
struct Rule {
    actor: &'static str,
    message: &'static str,
    chance_per_mille: u32,
    left: u32,
    fault: Fault,
}

impl Faults {
    /// Makes the next `times` handlers of `message` (the end of its type's path) in actors named `actor` panic.
    pub fn panic_next(&self, actor: &'static str, message: &'static str, times: u32) {
        self.add(Rule {
            actor,
            message,
            chance_per_mille: 1_000,
            left: times,
            fault: Fault::Panic,
        });
    }

    /// Makes handlers of any message in actors named `actor` panic with that chance, by the world's seed.
    pub fn panic_sometimes(&self, actor: &'static str, chance_per_mille: u32) {
        let fault = Fault::Panic;
        self.add(Rule { actor, message: "", chance_per_mille, left: u32::MAX, fault });
    }

    /// Delays handlers of any message in actors named `actor` with that chance, by the world's seed.
    pub fn delay_sometimes(&self, actor: &'static str, chance_per_mille: u32, delay: Duration) {
        let fault = Fault::Delay(delay);
        self.add(Rule { actor, message: "", chance_per_mille, left: u32::MAX, fault });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.lock().is_empty()
    }

    /// Ends all faults.
    pub fn clear(&self) {
        self.rules.lock().clear();
    }

    fn add(&self, rule: Rule) {
        self.rules.lock().push(rule);
    }

    pub(crate) fn decide(&self, actor: &str, message: &str, random: &mut Random) -> Fault {
        let mut rules = self.rules.lock();
        for rule in rules.iter_mut() {
            let fits = rule.left > 0 && rule.actor == actor && message.ends_with(rule.message);
            if fits && random.below(1_000) < rule.chance_per_mille as usize {
                rule.left -= 1;
                return rule.fault;
            }
        }
        Fault::None
    }
}

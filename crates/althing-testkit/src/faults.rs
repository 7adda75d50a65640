//! Faults on demand, as messages meet them: panics, delays and refusals, by the types of actor and
//! message.
//!
//! A rule that has met no message at all fails the test: it would have proven nothing.

use std::any::{TypeId, type_name};
use std::time::Duration;

use althing::{Actor, Fault, KindName};
use parking_lot::Mutex;

use crate::random::Random;
use crate::words::short_type;

/// Stands for every message of an actor where a fault asks for a message type.
///
/// ```
/// use althing::actor;
/// use althing_testkit::{AnyMessage, World};
///
/// struct Shop;
///
/// #[actor(name = "example.shop")]
/// impl Shop {
///     async fn order(&mut self) -> u32 {
///         7
///     }
/// }
///
/// let world = World::new(7);
/// let node = world.node("test").build();
/// world.refuse_next::<Shop, AnyMessage>(1);
/// world.run(async {
///     let shop = node.spawn(Shop);
///     assert!(shop.order().await.is_err());
///     assert_eq!(shop.order().await, Ok(7));
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AnyMessage;

/// Which faults a world injects; the first rule that fits a message decides.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    rules: Mutex<Vec<Rule>>,
}

/// How often a rule strikes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Often {
    /// The next messages, this many.
    Next(u32),
    /// Each message with this chance.
    PerMille(u32),
}

#[derive(Debug)]
struct Rule {
    actor: KindName,
    /// Full path of the type; `None` for any.
    message: Option<&'static str>,
    often: Often,
    fault: Fault,
    /// Messages that the rule fitted.
    met: u64,
}

impl Faults {
    pub(crate) fn add<A: Actor, M: 'static>(&self, often: Often, fault: Fault) {
        let is_any = TypeId::of::<M>() == TypeId::of::<AnyMessage>();
        let message = (!is_any).then(type_name::<M>);
        self.rules.lock().push(Rule { actor: A::kind_name(), message, often, fault, met: 0 });
    }

    pub(crate) fn clear(&self) {
        self.rules.lock().clear();
    }

    /// What happens to a message.
    pub(crate) fn decide(&self, actor: &str, message: &str, random: &mut Random) -> Fault {
        for rule in self.rules.lock().iter_mut() {
            if rule.fits(actor, message) && rule.strikes(random) {
                return rule.fault;
            }
        }
        Fault::None
    }

    /// The rules that no message has met, in words.
    pub(crate) fn unmet(&self) -> Vec<String> {
        self.rules.lock().iter().filter(|rule| rule.met == 0).map(Rule::describe).collect()
    }
}

impl Rule {
    fn fits(&self, actor: &str, message: &str) -> bool {
        self.actor == *actor && self.message.is_none_or(|own| own == message)
    }

    fn strikes(&mut self, random: &mut Random) -> bool {
        self.met += 1;
        match &mut self.often {
            Often::Next(0) => false,
            Often::Next(left) => {
                *left -= 1;
                true
            }
            Often::PerMille(chance) => random.below(1_000) < *chance as usize,
        }
    }

    fn describe(&self) -> String {
        let message = self.message.map_or_else(|| "any message".to_owned(), short_type);
        format!("{} for {message} to {}", fault_in_words(self.fault), self.actor)
    }
}

/// What a fault does.
pub(crate) fn fault_in_words(fault: Fault) -> String {
    match fault {
        Fault::None => "no fault".to_owned(),
        Fault::Panic => "a panic".to_owned(),
        Fault::Delay(delay) => delay_in_words(delay),
        Fault::Refuse => "a refusal".to_owned(),
        _ => format!("{fault:?}"),
    }
}

fn delay_in_words(delay: Duration) -> String {
    format!("a delay of {delay:?}")
}

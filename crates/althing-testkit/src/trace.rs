//! What happened in a world, as lines that a person reads, and as one number that two runs are
//! compared by.
//!
//! Steps are kept as values and put into words only when somebody reads them, because nearly all
//! runs are never read. The number covers every step, also those that are no longer kept.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use althing::stable_hash::mix;
use althing::{ActorId, Fault, Sequence, Step, StopReason, Way};

use crate::faults::fault_in_words;
use crate::member::MemberId;
use crate::words::short_type;

/// Steps kept; a failure is seldom older, and a run of millions of steps must not fill the memory.
const KEPT_MAX: usize = 20_000;

/// What happened in a world, oldest first; as text, one step a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    lines: Vec<String>,
    left_out: u64,
}

impl Trace {
    /// The steps in words. Of a long run the last 20,000.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Steps before those that are kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The same without all but the last `lines`.
    #[must_use]
    pub fn last(mut self, lines: usize) -> Self {
        let cut = self.lines.len().saturating_sub(lines);
        self.lines.drain(..cut);
        self.left_out += cut as u64;
        self
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left_out > 0 {
            writeln!(f, "({} earlier steps)", self.left_out)?;
        }
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Takes steps down.
pub(crate) struct Recorder {
    entries: VecDeque<Entry>,
    /// Entries that are no longer kept.
    left_out: u64,
    fingerprint: u64,
    /// Where each actor's last message stands, while nothing is known of what became of it.
    open: HashMap<Who, u64>,
    /// Which messages of an actor wait, and since when.
    waiting: HashMap<Who, Vec<(&'static str, Duration)>>,
}

/// An actor of a world.
type Who = (MemberId, ActorId);

struct Entry {
    at: Duration,
    node: Arc<str>,
    actor: Option<ActorId>,
    what: What,
}

enum What {
    Message { message: &'static str, from: Option<ActorId>, way: Way, outcome: Option<Outcome> },
    Alone(Outcome),
    Ended { message: Option<&'static str>, after: Option<Duration> },
    Fault { message: &'static str, fault: Fault },
    Started,
    Stopped(StopReason),
    Restarts,
    Timer(&'static str),
    Publishes { topic: Arc<str>, sequence: Sequence },
    Crashed,
}

#[derive(Debug)]
enum Outcome {
    Ran,
    Waits,
    Stashed,
    Refused(String),
    Abandoned,
    Panicked(String),
}

/// Where and when a step is taken.
pub(crate) struct Scene<'a> {
    pub(crate) at: Duration,
    pub(crate) member: MemberId,
    pub(crate) node: &'a Arc<str>,
    pub(crate) actor: Option<&'a ActorId>,
}

impl Recorder {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            left_out: 0,
            fingerprint: mix(seed),
            open: HashMap::new(),
            waiting: HashMap::new(),
        }
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Takes down what no line tells of: a choice of the schedule, a jump in time.
    pub(crate) fn note(&mut self, what: u64) {
        self.fingerprint = mix(self.fingerprint ^ what).wrapping_add(1);
    }

    pub(crate) fn step(&mut self, scene: &Scene<'_>, step: &Step<'_>) {
        self.note_scene(scene);
        match *step {
            Step::Takes { message, from, way } => {
                self.note_text(message);
                if let Some(from) = from {
                    self.note_actor(from);
                }
                let from = from.cloned();
                self.add(scene, What::Message { message, from, way, outcome: None });
                let last = self.left_out + self.entries.len() as u64 - 1;
                self.open.extend(who(scene).map(|who| (who, last)));
            }
            Step::Ran => self.outcome(scene, Outcome::Ran),
            Step::Waits => self.outcome(scene, Outcome::Waits),
            Step::Stashed => self.outcome(scene, Outcome::Stashed),
            Step::Refused(why) => self.outcome(scene, Outcome::Refused(why.to_string())),
            Step::Abandoned => self.outcome(scene, Outcome::Abandoned),
            Step::Panicked(text) => {
                self.waiting.extend(who(scene).map(|who| (who, Vec::new())));
                self.outcome(scene, Outcome::Panicked(text.to_owned()));
            }
            Step::Ended => self.ended(scene),
            Step::Started => self.add(scene, What::Started),
            Step::Stopped(reason) => {
                self.note_text(&format!("{reason:?}"));
                if let Some(who) = who(scene) {
                    self.open.remove(&who);
                    self.waiting.remove(&who);
                }
                self.add(scene, What::Stopped(reason.clone()));
            }
            Step::Restarts => self.add(scene, What::Restarts),
            Step::TimerFires { message } => self.add(scene, What::Timer(message)),
            Step::Publishes { topic, sequence } => {
                self.note_text(topic);
                self.add(scene, What::Publishes { topic: topic.into(), sequence });
            }
            _ => {}
        }
    }

    pub(crate) fn fault(&mut self, scene: &Scene<'_>, message: &'static str, fault: Fault) {
        self.note_scene(scene);
        self.note_text(message);
        self.add(scene, What::Fault { message, fault });
    }

    pub(crate) fn crash(&mut self, scene: &Scene<'_>) {
        self.note_scene(scene);
        self.add(scene, What::Crashed);
    }

    /// What became of the message that the actor took last.
    fn outcome(&mut self, scene: &Scene<'_>, new: Outcome) {
        self.note(u64::from(new.letter()));
        let Some(who) = who(scene) else { return };
        let Some(open) = self.open.remove(&who) else {
            // A refusal or a panic is told of before the end that follows it.
            if !matches!(new, Outcome::Ran) {
                self.add(scene, What::Alone(new));
            }
            return;
        };
        let Some(index) = open.checked_sub(self.left_out) else { return };
        let Some(Entry { what: What::Message { message, outcome, .. }, .. }) =
            usize::try_from(index).ok().and_then(|index| self.entries.get_mut(index))
        else {
            return;
        };
        if matches!(new, Outcome::Waits) {
            self.waiting.entry(who).or_default().push((message, scene.at));
        }
        *outcome = Some(new);
    }

    fn ended(&mut self, scene: &Scene<'_>) {
        let waiting = who(scene).and_then(|who| self.waiting.get_mut(&who));
        let known = match waiting {
            Some(waiting) if waiting.len() == 1 => waiting.pop(),
            // Reads overlap, and which of them has ended is not known.
            Some(waiting) => {
                waiting.pop();
                None
            }
            None => None,
        };
        let message = known.map(|(message, _)| message);
        let after = known.map(|(_, since)| scene.at.saturating_sub(since));
        self.add(scene, What::Ended { message, after });
    }

    fn add(&mut self, scene: &Scene<'_>, what: What) {
        if self.entries.len() == KEPT_MAX {
            self.entries.pop_front();
            self.left_out += 1;
        }
        let (at, node, actor) = (scene.at, scene.node.clone(), scene.actor.cloned());
        self.entries.push_back(Entry { at, node, actor, what });
    }

    fn note_scene(&mut self, scene: &Scene<'_>) {
        self.note(u64::try_from(scene.at.as_nanos()).unwrap_or(u64::MAX));
        self.note(u64::from(scene.member.0));
        if let Some(actor) = scene.actor {
            self.note_actor(actor);
        }
    }

    fn note_actor(&mut self, actor: &ActorId) {
        self.note_text(actor.kind().as_str());
        self.note_text(actor.key().map_or("", |key| key));
        self.note(actor.origin().map_or(0, |(_, serial)| serial));
    }

    fn note_text(&mut self, text: &str) {
        // FNV-1a (Fowler, Noll, Vo).
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.note(hash);
    }

    pub(crate) fn trace(&self) -> Trace {
        let lines = self.entries.iter().map(ToString::to_string).collect();
        Trace { lines, left_out: self.left_out }
    }
}

fn who(scene: &Scene<'_>) -> Option<Who> {
    scene.actor.map(|actor| (scene.member, actor.clone()))
}

impl Outcome {
    fn letter(&self) -> u8 {
        match self {
            Self::Ran => b'r',
            Self::Waits => b'w',
            Self::Stashed => b's',
            Self::Refused(_) => b'f',
            Self::Abandoned => b'a',
            Self::Panicked(_) => b'p',
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ran => f.write_str("ran"),
            Self::Waits => f.write_str("waits"),
            Self::Stashed => f.write_str("stashed by a guard"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Abandoned => f.write_str("dropped, its asker waits no more"),
            Self::Panicked(text) => write!(f, "panicked: {text}"),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, node, actor, what } = self;
        write!(f, "{:>6}.{:06} {node}: ", at.as_secs(), at.subsec_micros())?;
        match actor {
            Some(actor) => write!(f, "{actor} ")?,
            None if matches!(what, What::Crashed) => {}
            None => f.write_str("the test ")?,
        }
        match what {
            What::Message { message, from, way, outcome } => {
                write!(f, "takes {}", short_type(message))?;
                if let Some(from) = from {
                    write!(f, " from {from}")?;
                }
                if *way == Way::InPlace {
                    f.write_str(" in place")?;
                }
                match outcome {
                    Some(outcome) => write!(f, ": {outcome}"),
                    None => Ok(()),
                }
            }
            What::Alone(outcome) => write!(f, "{outcome}"),
            What::Ended { message, after } => {
                let message = message.map_or_else(|| "what it did".to_owned(), short_type);
                write!(f, "ends {message}")?;
                after.map_or(Ok(()), |after| write!(f, " after {after:?}"))
            }
            What::Fault { message, fault } => {
                write!(f, "meets {} for {}", fault_in_words(*fault), short_type(message))
            }
            What::Started => f.write_str("starts"),
            What::Stopped(reason) => write!(f, "stops: {reason:?}"),
            What::Restarts => f.write_str("restarts"),
            What::Timer(message) => write!(f, "is due a timer: {}", short_type(message)),
            What::Publishes { topic, sequence } => {
                write!(f, "publishes event {} of {topic}", sequence.0)
            }
            What::Crashed => f.write_str("crashes"),
        }
    }
}

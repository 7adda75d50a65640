//! All that happened, from the diaries, the callers and the store, as values that `checks` judges.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use althing::{ActorId, Wire};
use althing_store::{Postgres, Store};

use crate::callers::{Ack, Acks};
use crate::clock::Micros;
use crate::counter::{COUNTERS, Entry, KIND, name};

/// Events read from the store at once.
const PAGE: usize = 5_000;

/// What was done to a node, or became of it.
#[derive(Clone, Debug)]
pub(crate) struct Incident {
    /// A life; for a disturbance, the name of the node.
    pub(crate) life: String,
    pub(crate) deed: Deed,
    pub(crate) at: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Its process has ended without leaving in order.
    Died,
    /// It goes on after it was stopped.
    WentOn,
    /// Others have its buckets, and it has noticed.
    Evicted,
    /// It did not leave as a whole.
    LeftInPart,
    Joined,
    /// It did not become a member in its time, and was started again.
    NotJoined,
    /// A fault of a node ended that began then.
    Disturbed {
        from: Micros,
    },
}

/// One life of a counter in memory.
#[derive(Clone, Debug)]
pub(crate) struct Activation {
    pub(crate) counter: String,
    pub(crate) epoch: u64,
    pub(crate) life: String,
    /// When it did something; first, when it began.
    pub(crate) acts: Vec<Micros>,
}

/// A tell that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) sender: String,
    pub(crate) counter: String,
    pub(crate) number: u64,
    pub(crate) from: Micros,
    pub(crate) to: Micros,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) lease: Duration,
    pub(crate) journals: BTreeMap<String, Vec<Entry>>,
    pub(crate) activations: Vec<Activation>,
    /// Answers to callers' requests, and to their looks.
    pub(crate) requests: Vec<Ack>,
    pub(crate) looks: Vec<Ack>,
    /// Answers to asks of nodes' senders: sender, number.
    pub(crate) asks: Vec<(String, u64, Ack)>,
    pub(crate) told: Vec<Told>,
    /// Sender, counter, number.
    pub(crate) refused: Vec<(String, String, u64)>,
    pub(crate) incidents: Vec<Incident>,
    /// What was noticed on the way.
    pub(crate) troubles: Vec<String>,
}

impl History {
    /// Reads diaries and journals, once all nodes have ended.
    pub(crate) async fn read(
        directory: &Path,
        postgres: &str,
        incidents: Vec<Incident>,
        lease: Duration,
    ) -> Self {
        let mut history = Self { incidents, lease, ..Self::default() };
        let store = Postgres::connect(postgres).await.expect("the server is there");
        for number in 0..COUNTERS {
            let journal = history.journal(&store, &name(number)).await;
            history.journals.insert(name(number), journal);
        }
        let files = std::fs::read_dir(directory).expect("it is there").flatten();
        for path in files.map(|file| file.path()) {
            if path.extension().is_some_and(|is| is == "diary") {
                let life = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
                let text = std::fs::read_to_string(&path).expect("it can be read");
                history.take_diary(&life, &text);
            }
        }
        history.incidents.sort_by_key(|incident| incident.at);
        history
    }

    async fn journal(&mut self, store: &Postgres, counter: &str) -> Vec<Entry> {
        let (id, mut journal) = (ActorId::named(KIND, counter), Vec::new());
        loop {
            let page = store.events(&id, journal.len() as u64, PAGE).await;
            let page = page.expect("the journal can be read");
            for event in &page {
                if event.number != journal.len() as u64 + 1 {
                    let text = format!("{counter}: event {} after {}", event.number, journal.len());
                    self.troubles.push(text);
                }
                journal.push(Entry::decode(&event.bytes).expect("it was written by a node"));
            }
            if page.len() < PAGE {
                return journal;
            }
        }
    }

    /// Takes what callers were answered.
    pub(crate) fn take(&mut self, acks: Acks) {
        (self.looks, self.requests) = acks.into_iter().partition(|ack| ack.request.is_empty());
    }

    fn take_diary(&mut self, life: &str, text: &str) {
        let mut activations: BTreeMap<(String, u64), Activation> = BTreeMap::new();
        for line in text.lines() {
            // The last line of a life that was killed may be a part.
            if self.take_line(life, line, &mut activations).is_none() && text.ends_with('\n') {
                self.troubles.push(format!("the diary of {life} says `{line}`"));
            }
        }
        self.activations.extend(activations.into_values());
    }

    fn take_line(
        &mut self,
        life: &str,
        line: &str,
        activations: &mut BTreeMap<(String, u64), Activation>,
    ) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let incident =
            |deed, at: &str| at.parse().ok().map(|at| Incident { life: life.to_owned(), deed, at });
        match words[..] {
            ["open" | "ran", counter, epoch, serial, at] => {
                let (epoch, serial): (u64, u64) = (epoch.parse().ok()?, serial.parse().ok()?);
                let activation = activations.entry((counter.to_owned(), serial));
                let new = || Activation {
                    counter: counter.to_owned(),
                    epoch,
                    life: life.to_owned(),
                    acts: Vec::new(),
                };
                activation.or_insert_with(new).acts.push(at.parse().ok()?);
            }
            ["told", sender, counter, number, from, to] => self.told.push(Told {
                sender: sender.to_owned(),
                counter: counter.to_owned(),
                number: number.parse().ok()?,
                from: from.parse().ok()?,
                to: to.parse().ok()?,
            }),
            ["acked", sender, counter, number, value, epoch, from, to] => {
                let ack = Ack {
                    counter: counter.to_owned(),
                    request: String::new(),
                    value: value.parse().ok()?,
                    epoch: epoch.parse().ok()?,
                    from: from.parse().ok()?,
                    to: to.parse().ok()?,
                    tries: 1,
                };
                self.asks.push((sender.to_owned(), number.parse().ok()?, ack));
            }
            ["refused", sender, counter, number] => {
                let number = number.parse().ok()?;
                self.refused.push((sender.to_owned(), counter.to_owned(), number));
            }
            ["joined", at] => self.incidents.push(incident(Deed::Joined, at)?),
            ["evicted", at] => self.incidents.push(incident(Deed::Evicted, at)?),
            ["left-in-part", at] => self.incidents.push(incident(Deed::LeftInPart, at)?),
            _ => return None,
        }
        Some(())
    }
}

//! Labels: what a node says of itself, and what a kind of actors asks of the nodes that it lives on.
//!
//! What a kind asks for stands in its name, behind an `@`: `shop.index@disk=ssd,region=eu`. So
//! whoever knows an actor's name looks for it at the same place, a client or a node with another
//! version of the program too, and no two nodes can differ in what a kind asks for.

use althing::{ActorError, ActorId, AskError, Wire};

use crate::bucket::pool_of;
use crate::record::Record;

/// Bytes of one label: all that nodes say is in every record.
const LEN_MAX: usize = 64;
/// Labels that a node may have.
const LABELS_MAX: usize = 16;
/// Different sets of labels for which the kinds of one node may ask.
pub(crate) const ASKED_MAX: usize = 16;
/// Sets of labels for which kinds may ask, in the whole cluster: all their buckets are in each record.
pub(crate) const POOLS_MAX: usize = 64;

/// What a node says of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
pub(crate) struct Labels {
    /// Its own.
    pub(crate) own: Vec<String>,
    /// What kinds ask for that it knows: each is a set, separated by commas.
    pub(crate) asked: Vec<String>,
}

impl Labels {
    pub(crate) fn new<'a>(own: &[String], kinds: impl Iterator<Item = &'a str>) -> Self {
        let sorted = |mut all: Vec<String>| {
            all.sort_unstable();
            all.dedup();
            all
        };
        let asked = kinds.filter_map(asked_by).filter(|set| is_placed(set));
        let asked = asked.map(str::to_owned).collect();
        let (own, mut asked) = (sorted(own.to_vec()), sorted(asked));
        if asked.len() > ASKED_MAX {
            tracing::error!(
                "kinds ask for more than {ASKED_MAX} sets of labels: the rest has no place"
            );
            asked.truncate(ASKED_MAX);
        }
        Self { own, asked }
    }

    /// # Errors
    /// Says what is none, or too much for the record, which everybody reads.
    pub(crate) fn check(&self) -> Result<(), String> {
        check_labels(&self.own)?;
        match self.asked.len() > ASKED_MAX || !self.asked.iter().all(|set| is_set(set)) {
            true => Err("its kinds ask for too many labels, or for what is none".to_owned()),
            false => Ok(()),
        }
    }

    /// Whether a record that has the others has these. A node that ends knows no kinds any more.
    pub(crate) fn are_in(&self, others: &Self) -> bool {
        self.own == others.own && self.asked.iter().all(|set| others.asked.contains(set))
    }

    /// Whether all labels of that set are among the node's own.
    pub(crate) fn hold(&self, asked: &str) -> bool {
        asked.split(',').all(|label| self.own.iter().any(|own| own == label))
    }
}

/// Whether a node may have these labels: each is `key=value`, and there are 16 at most.
///
/// # Errors
/// Says which label is none, or that there are too many.
pub fn check_labels(labels: &[String]) -> Result<(), String> {
    if let Some(label) = labels.iter().find(|label| !is_label(label)) {
        return Err(format!(
            "`{label}` is no label: one is `key=value`, of letters, digits, `.`, `-`, `_` and `/`, \
             with {LEN_MAX} bytes at most"
        ));
    }
    if labels.len() > LABELS_MAX {
        return Err(format!(
            "a node has {LABELS_MAX} labels at most, and this one {}",
            labels.len()
        ));
    }
    Ok(())
}

fn is_label(text: &str) -> bool {
    let is_word = |word: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_/".contains(&byte);
        !word.is_empty() && word.bytes().all(is_allowed)
    };
    let parts = text.split_once('=');
    text.len() <= LEN_MAX && parts.is_some_and(|(key, value)| is_word(key) && is_word(value))
}

fn is_placed(asked: &str) -> bool {
    let is_set = is_set(asked);
    if !is_set {
        tracing::error!("a kind asks for more than {LABELS_MAX} labels and has no place: {asked}");
    }
    is_set
}

fn is_set(asked: &str) -> bool {
    asked.split(',').count() <= LABELS_MAX && asked.split(',').all(is_label)
}

/// The labels that a kind of that name asks for; `None` if it lives anywhere.
pub(crate) fn asked_by(kind: &str) -> Option<&str> {
    let (_, asked) = kind.rsplit_once('@')?;
    asked.split(',').all(is_label).then_some(asked)
}

/// Those labels, separated by commas, that a kind of that name asks for and a node with these lacks;
/// `None` if it has all.
pub(crate) fn lacking(kind: &str, own: &[String]) -> Option<String> {
    let is_lacking = |label: &&str| !own.iter().any(|own| own == label);
    let lacking: Vec<&str> = asked_by(kind)?.split(',').filter(is_lacking).collect();
    (!lacking.is_empty()).then(|| lacking.join(","))
}

/// What who asks that actor hears where no node may have it: none has the labels of its kind, or
/// there are too many of them.
pub(crate) fn nobody_has(id: ActorId, record: &Record) -> AskError {
    let (kind, asked) = (id.kind().as_str(), asked_by(id.kind().as_str()).unwrap_or_default());
    let has_pool = record.pools.contains_key(&pool_of(asked));
    let why = if !is_set(asked) {
        format!("`{kind}` asks for more than {LABELS_MAX} labels")
    } else if !has_pool && record.pools.len() >= POOLS_MAX {
        format!(
            "there is no place for `{kind}`: kinds ask for more than {POOLS_MAX} sets of labels"
        )
    } else {
        format!("no node has the labels that `{kind}` asks for: {asked}")
    };
    AskError::NotStarted(id, ActorError::new(why))
}

#[cfg(test)]
mod tests {
    use super::{Labels, asked_by, check_labels, lacking};

    #[test]
    fn a_kind_asks_for_labels_behind_an_at_sign() {
        assert_eq!(asked_by("shop.index@disk=ssd"), Some("disk=ssd"));
        assert_eq!(asked_by("a@b=c@disk=ssd,region=eu/1"), Some("disk=ssd,region=eu/1"));
        for anywhere in ["shop.index", "ana@home", "x@", "x@a=", "x@=b", "x@a=b,", "x@a=b c"] {
            assert_eq!(asked_by(anywhere), None, "{anywhere}");
        }
    }

    #[test]
    fn all_labels_of_a_set_must_hold() {
        let own = ["region=eu", "disk=ssd"].map(str::to_owned);
        let kinds = ["a@disk=ssd", "b", "c@disk=ssd"];
        let labels = Labels::new(&own, kinds.into_iter());
        assert_eq!(labels.asked, ["disk=ssd"]);
        assert!(labels.hold("disk=ssd") && labels.hold("disk=ssd,region=eu"));
        assert!(!labels.hold("disk=ssd,region=us") && !labels.hold("disk=s"));
    }

    #[test]
    fn what_a_node_lacks_is_named() {
        let own = ["region=eu", "disk=ssd"].map(str::to_owned);
        assert_eq!(lacking("a", &own), None);
        assert_eq!(lacking("a@disk=ssd,region=eu", &own), None);
        assert_eq!(lacking("a@disk=hdd,region=eu", &own).as_deref(), Some("disk=hdd"));
        assert_eq!(lacking("a@disk=hdd,zone=1", &own).as_deref(), Some("disk=hdd,zone=1"));
    }

    #[test]
    fn what_is_no_label_is_refused_by_its_text() {
        assert_eq!(check_labels(&["region=eu".to_owned()]), Ok(()));
        for wrong in ["region", "region=", "re gion=eu", "a=b,c=d", &"x=y".repeat(40)] {
            let why = check_labels(&[wrong.to_owned()]).unwrap_err();
            assert!(why.contains(wrong), "{why}");
        }
        assert!(check_labels(&vec!["a=b".to_owned(); 17]).unwrap_err().contains("16 labels"));
        let asked = |set: &str| Labels { own: Vec::new(), asked: vec![set.to_owned()] }.check();
        assert_eq!(asked("a=b,c=d"), Ok(()));
        assert!(asked("a").is_err() && asked(&vec!["a=b"; 17].join(",")).is_err());
        let many = (0..17).map(|n| format!("a={n}")).collect();
        assert!(Labels { own: Vec::new(), asked: many }.check().is_err());
    }
}

//! What a store has to do for candidates: one record, replaced by who knows it, and one lead.
//!
//! An error says nothing about what the store has done: it may have done it, or do it later. Each
//! operation ends by itself, with an error after half the length of a lead at the latest.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use althing::Wire;
use althing::stable_hash::fnv1a;

use crate::record::Record;

/// An operation under way.
pub(crate) type Op<'a, T> = Pin<Box<dyn Future<Output = Result<T, StorageError>> + Send + 'a>>;

/// A store, for one cluster.
pub(crate) trait Storage: Send + Sync {
    /// Takes the lead if nobody has it, and renews it for the one who has it; returns who has it
    /// then. It ends `lead_for` after the last time, or somewhat later.
    fn claim<'a>(&'a self, me: &'a Claimant, lead_for: Duration) -> Op<'a, Lead>;

    /// Gives the lead up, if it is `me` who has it.
    fn resign<'a>(&'a self, me: &'a Claimant) -> Op<'a, ()>;

    /// The record that counts; an empty one where there was none.
    fn load(&self) -> Op<'_, Record>;

    /// Has `record` count from now on, if the one that counts was stored
    /// `expected` times; `record.writes` says how often this one will have been.
    fn replace<'a>(&'a self, expected: u64, record: &'a Record) -> Op<'a, Replaced>;
}

/// Who wants the lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claimant {
    /// Another one in each life of a process.
    pub(crate) id: u64,
    /// Where members reach it.
    pub(crate) address: String,
}

/// Who has the lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    pub(crate) leader: Claimant,
    /// Rises whenever another one gets it.
    pub(crate) term: u64,
}

/// What became of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// It counts.
    Done,
    /// Another one counts than was expected.
    Refused,
}

/// Why it is unknown what a store has done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// An empty record in its place would begin epochs anew.
    #[error("the cluster's record is damaged: {0}")]
    Damaged(String),
    #[cfg(any(feature = "etcd", feature = "postgres"))]
    #[error("the store did not answer within {0:?}")]
    Silent(Duration),
    #[cfg(feature = "postgres")]
    #[error("{}", crate::authority::postgres::told(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[cfg(feature = "etcd")]
    #[error("{0}")]
    Etcd(#[from] crate::authority::etcd::EtcdError),
}

/// How long a store may take for one operation: while the record is replaced, renewals wait.
#[cfg(any(feature = "etcd", feature = "postgres"))]
pub(crate) fn patience(lead_for: Duration) -> Duration {
    lead_for / 2
}

/// Added to the sum of a record with labels. A candidate of a version without them takes such a record
/// for damaged and does not lead: it would store it without labels, and forget who owns what by them.
const WITH_LABELS: u64 = 0x6c61_6265_6c73;

/// A record as stores keep it: behind a sum that shows damage.
pub(crate) fn sealed(record: &Record) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    record.encode(&mut bytes);
    let sum = sum(record, &bytes[8..]);
    bytes[..8].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn sum(record: &Record, body: &[u8]) -> u64 {
    let labels = if record.has_labels() { WITH_LABELS } else { 0 };
    fnv1a(body.iter().copied()).wrapping_add(labels)
}

/// Reads what `sealed` has made.
pub(crate) fn opened(bytes: &[u8]) -> Result<Record, StorageError> {
    let (sum, body) = bytes
        .split_first_chunk::<8>()
        .ok_or_else(|| StorageError::Damaged("it is cut off".to_owned()))?;
    let read = Record::decode(body).map_err(|error| StorageError::Damaged(error.to_string()));
    match read {
        Ok(record) if u64::from_be_bytes(*sum) == self::sum(&record, body) => Ok(record),
        Ok(_) => Err(StorageError::Damaged("its sum is another one".to_owned())),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use althing::Wire;
    use althing::stable_hash::fnv1a;

    use super::{opened, sealed};
    use crate::label::Labels;
    use crate::record::{Member, Record, Stage};

    /// What a version without labels looks at first.
    fn has_a_sum_that_all_know(sealed: &[u8]) -> bool {
        let (sum, body) = sealed.split_first_chunk::<8>().expect("it has a sum");
        u64::from_be_bytes(*sum) == fnv1a(body.iter().copied())
    }

    #[test]
    fn a_candidate_of_a_version_without_labels_does_not_take_over_a_record_that_has_some() {
        let mut record = Record::empty();
        record.members.push(Member {
            incarnation: 1,
            name: "one".to_owned(),
            address: String::new(),
            stage: Stage::Active,
            since: 0,
            frame_len_max: 0,
            labels: Labels::default(),
        });
        assert!(has_a_sum_that_all_know(&sealed(&record)));
        assert_eq!(opened(&sealed(&record)).expect("it is whole"), record);
        record.members[0].labels.own.push("disk=ssd".to_owned());
        assert!(!has_a_sum_that_all_know(&sealed(&record)));
        assert_eq!(opened(&sealed(&record)).expect("it is whole"), record);
        // The sum of one kind does not open the other.
        let mut bytes = vec![0; 8];
        record.encode(&mut bytes);
        let sum = fnv1a(bytes[8..].iter().copied());
        bytes[..8].copy_from_slice(&sum.to_be_bytes());
        assert!(opened(&bytes).is_err());
    }
}

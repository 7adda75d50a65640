//! Who may publish what comes next, and which number it gets. Decides; changes nothing.

use super::number::{Number, first_number_of};
use super::published::{Sequence, TopicName};
use super::refusal::{Fenced, PublishError};
use crate::epoch::Epoch;

/// Who publishes, and who chooses the number.
#[derive(Clone, Copy)]
pub(super) enum Author {
    /// Anybody, with the next number.
    Anybody,
    /// The owner of this epoch, with the next number.
    Owner(Epoch),
    /// The owner of this epoch, with a number of its own.
    OwnerAt(Epoch, Sequence),
}

/// What a topic knows of its owner and its numbers.
#[derive(Clone, Copy)]
pub(super) struct Standing {
    pub(super) last: Sequence,
    /// Of the last owner.
    pub(super) epoch: Option<Epoch>,
    /// Whether that one is still there.
    pub(super) is_owned: bool,
    /// Whether events may be missing before the next one.
    pub(super) is_unsure: bool,
    /// Whether other nodes may hear it.
    pub(super) is_across: bool,
}

impl Author {
    /// The number of its next event.
    #[inline]
    pub(super) fn number(self, standing: Standing, topic: &TopicName) -> Result<Number, Refusal> {
        let Standing { last, epoch, is_owned, is_unsure, is_across } = standing;
        let number = match self {
            Self::OwnerAt(_, sequence) => Number::chosen(sequence, last, is_unsure),
            Self::Anybody => Number::next(last, None, is_unsure),
            Self::Owner(epoch) => {
                let first = if is_across { first_number_of(epoch) } else { None };
                Number::next(last, first, is_unsure)
            }
        };
        match (self, epoch) {
            (Self::Anybody, Some(epoch)) if is_owned => {
                Err(Refusal::Owned { topic: topic.clone(), epoch })
            }
            (Self::Owner(epoch) | Self::OwnerAt(epoch, _), Some(current)) if current != epoch => {
                Err(Refusal::Fenced(Fenced { topic: topic.clone(), epoch, current }))
            }
            _ if number.sequence <= last => {
                let sequence = number.sequence;
                Err(Refusal::NotAbove { topic: topic.clone(), sequence, last })
            }
            _ => Ok(number),
        }
    }
}

/// Why an event is not published; the payload is not in it, because nothing of the caller's may be
/// dropped under the lock.
pub(super) enum Refusal {
    Fenced(Fenced),
    Owned { topic: TopicName, epoch: Epoch },
    NotAbove { topic: TopicName, sequence: Sequence, last: Sequence },
}

impl Refusal {
    pub(super) fn with<T>(self, payload: T) -> PublishError<T> {
        match self {
            Self::Fenced(fenced) => PublishError::Fenced { fenced, payload },
            Self::Owned { topic, epoch } => PublishError::Owned { topic, epoch, payload },
            Self::NotAbove { topic, sequence, last } => {
                PublishError::NotAbove { topic, sequence, last, payload }
            }
        }
    }
}

//! What a cluster promises, checked against what happened. Pure: nothing here runs anything.

mod lost;
mod order;
mod overlap;
#[cfg(test)]
mod tests;
mod written;

use crate::history::History;

/// All that was broken, as sentences.
pub(crate) fn all(history: &History) -> Vec<String> {
    let mut broken = history.troubles.clone();
    broken.extend(overlap::activations_overlap(history).broken);
    broken.extend(overlap::epochs_fall(history));
    broken.extend(written::acknowledged_and_lost(history));
    broken.extend(written::done_twice(history));
    broken.extend(order::senders_out_of_order(history));
    broken.extend(order::answers_out_of_order(history));
    broken.extend(lost::lost_between_the_living(history));
    broken
}

pub(crate) use lost::lost;
pub(crate) use overlap::activations_overlap;

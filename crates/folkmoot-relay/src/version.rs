//! The version of what a channel shows, by which a newer state is told from an older one: publishers
//! that race, or two roads to one channel, bring them out of order.

use std::sync::Arc;

use althing::Wire;

/// What a publisher says of its data.
#[derive(Debug, Clone, PartialEq, Eq, Wire)]
pub(crate) struct Version {
    /// Rises with each change; above 0.
    pub(crate) number: u64,
    /// In which numbers count, such as the table's life; empty: that of whatever is known.
    pub(crate) epoch: Arc<str>,
}

impl Version {
    /// Whether it is no newer than what is known.
    pub(crate) fn is_outdated(&self, known: &Self) -> bool {
        (self.epoch.is_empty() || self.epoch == known.epoch) && self.number <= known.number
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    fn version(number: u64, epoch: &str) -> Version {
        Version { number, epoch: epoch.into() }
    }

    #[test]
    fn versions_of_one_epoch_rise_and_another_epoch_begins_anew() {
        let known = version(7, "a");
        assert!(version(7, "a").is_outdated(&known));
        assert!(version(6, "").is_outdated(&known));
        assert!(!version(8, "a").is_outdated(&known));
        assert!(!version(8, "").is_outdated(&known));
        assert!(!version(1, "b").is_outdated(&known));
    }
}

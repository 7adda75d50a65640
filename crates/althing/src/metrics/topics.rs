//! The topics of a node, for whoever looks from outside.
//!
//! Each is looked at under its own locks, for a moment; the node's list of topics is not locked
//! meanwhile.

use crate::metrics::inspection::Inspector;
use crate::topic::view::TopicView;

impl Inspector {
    /// The topics that somebody holds, by name: the first `limit` of those whose names hold `text`
    /// and come after `after`, and how many more there are. An empty `text` is in every name, and
    /// every name comes after an empty `after`.
    ///
    /// Two topics of one name and different types are not parted: then there may be more than
    /// `limit`.
    pub fn topics(&self, text: &str, after: &str, limit: usize) -> (Vec<TopicView>, usize) {
        self.node().holdings().topics.views(text, after, limit)
    }
}

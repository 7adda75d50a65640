//! What the client library tells of itself each second: which brokers answer, and how many records
//! of each partition there are.

use std::collections::HashMap;

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Statistics {
    brokers: HashMap<String, Broker>,
    topics: HashMap<String, Topic>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Broker {
    state: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Topic {
    partitions: HashMap<String, Partition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Partition {
    /// Where the next record goes that is not in an open transaction; negative: not known.
    ls_offset: i64,
    /// Below it everything is committed; negative: not known.
    committed_offset: i64,
}

/// Where a partition ends, and how far it was committed, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) end: i64,
    pub(super) committed: Option<i64>,
}

impl Statistics {
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// Whether a broker answers.
    pub(super) fn is_up(&self) -> bool {
        self.brokers.values().any(|broker| broker.state == "UP")
    }

    /// Of a partition of which something was fetched.
    pub(super) fn extent(&self, topic: &str, partition: i32) -> Option<Extent> {
        let partition = self.topics.get(topic)?.partitions.get(&partition.to_string())?;
        let committed = Some(partition.committed_offset).filter(|offset| *offset >= 0);
        (partition.ls_offset >= 0).then_some(Extent { end: partition.ls_offset, committed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_and_brokers_are_read() {
        let json = br#"{"brokers": {"a/1": {"state": "DOWN"}, "b/2": {"state": "UP", "x": 1}},
            "topics": {"news": {"age": 1, "partitions": {
                "0": {"ls_offset": 10, "committed_offset": 7},
                "1": {"ls_offset": 5, "committed_offset": -1001},
                "-1": {"ls_offset": -1001}}}}}"#;
        let statistics = Statistics::read(json).unwrap();
        assert!(statistics.is_up());
        let extent = statistics.extent("news", 0);
        assert_eq!(extent, Some(Extent { end: 10, committed: Some(7) }));
        assert_eq!(statistics.extent("news", 1), Some(Extent { end: 5, committed: None }));
        assert_eq!(statistics.extent("news", -1), None);
        assert_eq!(statistics.extent("nothing", 0), None);
        assert!(!Statistics::read(b"{}").unwrap().is_up());
    }
}

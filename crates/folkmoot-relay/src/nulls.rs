//! Fields that JSON has as `null`: they are as if they were not there, as they are for Go, in which
//! what backends speak with is written otherwise. Many of them write what they have nothing for so.

use serde::{Deserialize, Deserializer};

/// What is there, or what a field is that is not.
pub(crate) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

//! Why bytes are not the value that was expected.
//!
//! A receiver can only refuse such bytes, whatever is wrong with them: so there is one type, which
//! says what and where.

use std::borrow::Cow;

/// What is wrong with bytes that were to be decoded, and in which field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError {
    text: Cow<'static, str>,
    /// Innermost first.
    path: Vec<&'static str>,
}

impl WireError {
    /// Describes what is wrong.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), path: Vec::new() }
    }

    /// Adds the name of the field in which it is.
    #[must_use]
    pub fn inside(mut self, field: &'static str) -> Self {
        self.path.push(field);
        self
    }
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, field) in self.path.iter().rev().enumerate() {
            f.write_str(if place == 0 { "" } else { "." })?;
            f.write_str(field)?;
        }
        f.write_str(if self.path.is_empty() { "" } else { ": " })?;
        f.write_str(&self.text)
    }
}

impl std::error::Error for WireError {}

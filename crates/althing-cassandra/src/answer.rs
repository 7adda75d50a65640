//! Answers to what has a condition.

use std::error::Error;

use scylla::response::query_result::QueryResult;
use scylla::value::Row;

/// An answer came, and it is none to what was asked.
#[derive(Debug, thiserror::Error)]
#[error("the answer cannot be read: {0}")]
pub struct Misread(#[source] Box<dyn Error + Send + Sync>);

/// Whether the condition held.
///
/// # Errors
/// It is no answer to a statement with a condition.
pub fn is_applied(answer: QueryResult) -> Result<bool, Misread> {
    let answer = answer.into_rows_result().map_err(|error| Misread(error.into()))?;
    let row = answer.first_row::<Row>().map_err(|error| Misread(error.into()))?;
    let applied = row.columns.first().and_then(Option::as_ref);
    Ok(applied.and_then(|applied| applied.as_boolean()).unwrap_or(false))
}

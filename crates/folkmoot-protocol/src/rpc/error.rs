//! The error of a method: a code for programs, a message for people that names the field or limit.

use crate::codes::ErrorCode;
use crate::frame;

/// Why a request was refused. Nothing changed, except where [`ErrorCode::Internal`] leaves that
/// unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// The code on the wire.
    pub code: ErrorCode,
    /// The text on the wire.
    pub message: String,
    /// The field at fault, for forms and problem documents.
    pub field: Option<String>,
    /// The limit exceeded.
    pub limit: Option<u64>,
    /// When to try again, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl RpcError {
    /// An error about the request as a whole.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message, field: None, limit: None, retry_after_ms: None }
    }

    /// An unknown method. Its name is quoted only in part: a stranger chose it.
    pub fn method_not_found(method: &str) -> Self {
        let quoted: String = method.chars().take(64).collect();
        Self::new(ErrorCode::MethodNotFound, format!("no method `{quoted}`"))
    }

    /// A field that breaks a rule.
    pub fn invalid(field: &str, rule: impl AsRef<str>) -> Self {
        let message = format!("{field} {}", rule.as_ref());
        Self { field: Some(field.into()), ..Self::new(ErrorCode::InvalidField, message) }
    }

    /// A field over its limit.
    pub fn too_large(field: &str, limit: usize, unit: &str) -> Self {
        let message = format!("{field} is over the limit of {limit} {unit}");
        let (field, limit) = (Some(field.into()), Some(limit as u64));
        Self { field, limit, ..Self::new(ErrorCode::TooLarge, message) }
    }

    /// Something done too often: `what` in the plural, with the name of the limit and its unit.
    pub fn too_often(what: &str, limit: u64, unit: &str, retry_after_ms: u64) -> Self {
        let message = format!(
            "too many {what}: the limit is {limit} {unit}; try again in {retry_after_ms} ms"
        );
        let (limit, retry_after_ms) = (Some(limit), Some(retry_after_ms));
        Self { limit, retry_after_ms, ..Self::new(ErrorCode::RateLimited, message) }
    }

    /// A request whose JSON does not have the shape of its type.
    pub(crate) fn unreadable(error: &serde_path_to_error::Error<serde_json::Error>) -> Self {
        let text = error.inner().to_string();
        // The position says nothing to the sender of a payload that is embedded in a frame.
        let reason = text.split(" at line ").next().unwrap_or(&text);
        if !error.inner().is_data() {
            return Self::new(ErrorCode::BadRequest, format!("data is not JSON: {reason}"));
        }
        // A missing field is reported by its parent, so its name stands only in the text.
        let missing =
            reason.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
        let parent = match error.path().to_string() {
            path if path == "." => None,
            path => Some(path),
        };
        let field = match (parent, missing) {
            (Some(parent), Some(missing)) => Some(format!("{parent}.{missing}")),
            (None, Some(missing)) => Some(missing.to_owned()),
            (parent, None) => parent,
        };
        let message = match (&field, missing) {
            (Some(field), Some(_)) => format!("{field} is missing"),
            (Some(field), None) => format!("{field}: {reason}"),
            (None, _) => reason.to_owned(),
        };
        Self { field, ..Self::new(ErrorCode::InvalidField, message) }
    }
}

impl From<ErrorCode> for RpcError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code, code.text())
    }
}

impl From<RpcError> for frame::Error {
    fn from(error: RpcError) -> Self {
        let code = error.code;
        Self { code: code.code(), message: error.message, temporary: code.is_temporary() }
    }
}

impl From<ErrorCode> for frame::Error {
    fn from(code: ErrorCode) -> Self {
        RpcError::from(code).into()
    }
}

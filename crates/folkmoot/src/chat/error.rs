//! What a failure inside means to a client: a code it can act on, a text that names the reason.

use althing::AskError;
use folkmoot_protocol::ErrorCode;
use folkmoot_protocol::rpc::RpcError;

use crate::room::{Refusal, RoomError};
use crate::storage::{AppendError, ControlError, ReadError};
use crate::user::UserError;

/// The answer of a room, or what its failure means.
pub(crate) fn room_answer<T>(
    answer: Result<Result<T, RoomError>, AskError>,
) -> Result<T, RpcError> {
    answer.map_err(|error| failure(&error))?.map_err(room_failure)
}

/// The answer of a user's actor, or what its failure means.
pub(crate) fn user_answer<T>(
    answer: Result<Result<T, UserError>, AskError>,
) -> Result<T, RpcError> {
    answer.map_err(|error| failure(&error))?.map_err(user_failure)
}

/// An actor did not answer.
pub(crate) fn failure(error: &AskError) -> RpcError {
    let code = match error {
        AskError::Overloaded(_) => ErrorCode::TooManyRequests,
        // Rooms and users fail to start only when the store cannot be read.
        AskError::NotStarted(..) => ErrorCode::StoreUnavailable,
        _ => ErrorCode::Internal,
    };
    tracing::warn!(%error, "an actor did not answer");
    code.into()
}

pub(crate) fn room_failure(error: RoomError) -> RpcError {
    match error {
        RoomError::NoSuchRoom => RpcError::new(ErrorCode::NotFound, error.to_string()),
        RoomError::Busy => RpcError::new(ErrorCode::TooManyRequests, error.to_string()),
        RoomError::Crowded => RpcError::new(ErrorCode::LimitExceeded, error.to_string()),
        RoomError::NotSubscribed => RpcError::new(ErrorCode::PermissionDenied, error.to_string()),
        RoomError::Refused(refusal) => refused(&refusal),
        RoomError::Append(error) => append_failure(&error),
        RoomError::Control(error) => control_failure(&error),
        RoomError::Read(error) => read_failure(&error),
    }
}

/// A rule of a room forbids it.
pub(super) fn refused(refusal: &Refusal) -> RpcError {
    let code = match refusal {
        Refusal::NotMember
        | Refusal::Banned
        | Refusal::Blocked
        | Refusal::Archived
        | Refusal::PeerDeleted
        | Refusal::Muted { .. }
        | Refusal::NotAllowed(_) => ErrorCode::PermissionDenied,
        Refusal::NoMessage(_)
        | Refusal::NoSuchMember
        | Refusal::NoSuchUser
        | Refusal::NoUpload(_) => ErrorCode::NotFound,
        Refusal::TooManyReactions | Refusal::TooManyPins => ErrorCode::LimitExceeded,
        Refusal::KeyReused { .. } => ErrorCode::KeyReused,
        Refusal::Unloaded(_) => ErrorCode::Internal,
    };
    RpcError::new(code, refusal.to_string())
}

pub(crate) fn user_failure(error: UserError) -> RpcError {
    match error {
        UserError::NoSuchUser => RpcError::new(ErrorCode::NotFound, error.to_string()),
        UserError::NotMember => RpcError::new(ErrorCode::PermissionDenied, error.to_string()),
        UserError::TooManyConnections(limit) => {
            let limit = Some(limit as u64);
            RpcError { limit, ..RpcError::new(ErrorCode::LimitExceeded, error.to_string()) }
        }
        UserError::Append(error) => append_failure(&error),
        UserError::Read(error) => read_failure(&error),
        UserError::Control(error) => control_failure(&error),
        UserError::RoomAway => RpcError::new(ErrorCode::Internal, error.to_string()),
    }
}

/// A record was not acknowledged.
pub(crate) fn append_failure(error: &AppendError) -> RpcError {
    let code = match error {
        AppendError::TooLarge { .. } => ErrorCode::TooLarge,
        AppendError::Overloaded { .. } => ErrorCode::TooManyRequests,
        _ => ErrorCode::StoreUnavailable,
    };
    let text = match error {
        // It was handed to the disk, and what the disk kept of it is known only after a start.
        AppendError::DiskFull | AppendError::Failed(_) => {
            format!("not acknowledged, repeat it only under the same key: {error}")
        }
        _ => format!("nothing was stored: {error}"),
    };
    RpcError::new(code, text)
}

/// A control transaction was not committed.
pub(crate) fn control_failure(error: &ControlError) -> RpcError {
    match error {
        ControlError::NameTaken(_) => {
            let mut taken = RpcError::invalid("name", "is taken");
            taken.message = error.to_string();
            taken
        }
        ControlError::NotFound(_) => RpcError::new(ErrorCode::NotFound, error.to_string()),
        ControlError::NotAllowed(_) => {
            RpcError::new(ErrorCode::PermissionDenied, error.to_string())
        }
        ControlError::DiskFull | ControlError::ShuttingDown | ControlError::TakenOver => {
            RpcError::new(ErrorCode::StoreUnavailable, format!("nothing was stored: {error}"))
        }
        ControlError::Away(_) => {
            let text = format!("it may or may not have been done: {error}");
            RpcError::new(ErrorCode::StoreUnavailable, text)
        }
        ControlError::Database(_) | ControlError::Panicked => internal(error),
    }
}

/// A read has no answer.
pub(crate) fn read_failure(error: &ReadError) -> RpcError {
    match error {
        ReadError::ShuttingDown | ReadError::Stalled(_) | ReadError::Away(_) => {
            RpcError::new(ErrorCode::StoreUnavailable, error.to_string())
        }
        ReadError::Database(_) | ReadError::Undecodable(_) | ReadError::Panicked => internal(error),
    }
}

/// Our own fault: the log has the reason, the client does not.
fn internal(error: &impl std::error::Error) -> RpcError {
    tracing::error!(%error, "the store failed");
    ErrorCode::Internal.into()
}

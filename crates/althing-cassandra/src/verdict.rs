//! What an error of the driver says about what was asked: whether it was written, and whether it is
//! of use to ask again.

use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};

/// What is known of something that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The servers refused it: nothing was written, and a retry is of no use.
    Refused,
    /// It was never sent, or the servers do not work: nothing was written.
    NotWritten,
    /// The servers had to pass over too much that was removed, or could not read for another reason.
    Unreadable,
    /// Nobody knows. It may even be written later, until something that excludes it is.
    Unknown,
}

impl Verdict {
    /// What an error says.
    pub fn of(error: &ExecutionError) -> Self {
        match error {
            ExecutionError::EmptyPlan | ExecutionError::ConnectionPoolError(_) => Self::NotWritten,
            ExecutionError::BadQuery(_) => Self::Refused,
            ExecutionError::PrepareError(error) => Self::of_preparation(error),
            ExecutionError::LastAttemptError(attempt) => Self::of_attempt(attempt),
            _ => Self::Unknown,
        }
    }

    /// The statement itself was not sent yet.
    fn of_preparation(error: &PrepareError) -> Self {
        let PrepareError::AllAttemptsFailed { first_attempt } = error else {
            return Self::NotWritten;
        };
        match Self::of_attempt(first_attempt) {
            Self::Refused => Self::Refused,
            _ => Self::NotWritten,
        }
    }

    fn of_attempt(error: &RequestAttemptError) -> Self {
        match error {
            RequestAttemptError::UnableToAllocStreamId => Self::NotWritten,
            RequestAttemptError::SerializationError(_)
            | RequestAttemptError::CqlRequestSerialization(_) => Self::Refused,
            RequestAttemptError::DbError(said, _) => Self::of_server(said),
            _ => Self::Unknown,
        }
    }

    fn of_server(said: &DbError) -> Self {
        match said {
            // A statement that it has forgotten again after the driver prepared it anew.
            DbError::Unprepared { .. } | DbError::IsBootstrapping => Self::NotWritten,
            DbError::SyntaxError
            | DbError::Invalid
            | DbError::Unauthorized
            | DbError::ConfigError => Self::Refused,
            DbError::ReadFailure { .. } => Self::Unreadable,
            // Also overloaded: said before anything is done, and of too many hints for a node that
            // is away once a majority has agreed.
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(said: DbError) -> Verdict {
        let attempt = RequestAttemptError::DbError(said, String::new());
        Verdict::of(&ExecutionError::LastAttemptError(attempt))
    }

    #[test]
    fn a_statement_that_could_not_be_prepared_by_servers_that_are_away_was_not_sent() {
        let prepared = |first_attempt| {
            let failed = PrepareError::AllAttemptsFailed { first_attempt };
            Verdict::of(&ExecutionError::PrepareError(failed))
        };
        let said = |said| RequestAttemptError::DbError(said, String::new());
        assert_eq!(prepared(RequestAttemptError::UnableToAllocStreamId), Verdict::NotWritten);
        assert_eq!(prepared(said(DbError::ServerError)), Verdict::NotWritten);
        assert_eq!(prepared(said(DbError::SyntaxError)), Verdict::Refused);
    }

    #[test]
    fn only_what_was_surely_not_written_may_be_asked_again_as_it_is() {
        assert_eq!(Verdict::of(&ExecutionError::EmptyPlan), Verdict::NotWritten);
        assert_eq!(server(DbError::IsBootstrapping), Verdict::NotWritten);
        assert_eq!(server(DbError::Overloaded), Verdict::Unknown);
        assert_eq!(server(DbError::Invalid), Verdict::Refused);
        assert_eq!(server(DbError::ServerError), Verdict::Unknown);
        let late = std::time::Duration::from_secs(1);
        assert_eq!(Verdict::of(&ExecutionError::RequestTimeout(late)), Verdict::Unknown);
    }
}

//! An ask of a handler that may fail itself, with one `Result` instead of two.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::actor::Actor;
use crate::address::call::Call;
use crate::error::AskError;
use crate::mail::dispatch::Dispatch;

/// Why a handler that returns a `Result` brought no value: it was not reached, or it failed itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError<E> {
    /// There was no reply.
    Ask(AskError),
    /// The handler ran and returned this error.
    Reply(E),
}

impl<E> CallError<E> {
    /// Whether the message may have run: after the handler's own error it has.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Ask(error) => error.may_have_run(),
            Self::Reply(_) => true,
        }
    }
}

impl<E> From<AskError> for CallError<E> {
    fn from(error: AskError) -> Self {
        Self::Ask(error)
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(error) => error.fmt(f),
            Self::Reply(error) => error.fmt(f),
        }
    }
}

impl<E: Error> Error for CallError<E> {
    /// Past the error of ours or the handler's, whose text is shown already.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Ask(error) => error.source(),
            Self::Reply(error) => error.source(),
        }
    }
}

impl<'a, A, M, D, T, E> Call<'a, A, M, D>
where
    A: Actor,
    M: Send + 'static,
    D: Dispatch<A, M, Reply = Result<T, E>>,
    T: Send + 'static,
    E: Send + 'static,
{
    /// Asks a handler that returns a `Result`, and yields one `Result` instead of two.
    ///
    /// ```
    /// use althing::{CallError, Node, actor};
    ///
    /// struct Account(u32);
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct Overdrawn;
    ///
    /// #[actor(name = "example.account")]
    /// impl Account {
    ///     async fn withdraw(&mut self, amount: u32) -> Result<u32, Overdrawn> {
    ///         self.0 = self.0.checked_sub(amount).ok_or(Overdrawn)?;
    ///         Ok(self.0)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), CallError<Overdrawn>> {
    /// let account = Node::builder("bank").build().spawn(Account(10));
    /// assert_eq!(account.withdraw(7).flatten().await?, 3);
    /// let refused = account.withdraw(7).flatten().await;
    /// assert_eq!(refused, Err(CallError::Reply(Overdrawn)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn flatten(self) -> Flatten<'a, A, M, D> {
        Flatten { call: self }
    }
}

/// A call with one `Result` instead of two, from [`Call::flatten`].
///
/// # Cancel safety
/// That of the call.
#[must_use = "a call does nothing until it is awaited"]
pub struct Flatten<'a, A: Actor, M: Send + 'static, D: Dispatch<A, M>> {
    call: Call<'a, A, M, D>,
}

impl<A, M, D, T, E> Future for Flatten<'_, A, M, D>
where
    A: Actor,
    M: Send + 'static,
    D: Dispatch<A, M, Reply = Result<T, E>>,
    T: Send + 'static,
    E: Send + 'static,
{
    type Output = Result<T, CallError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.get_mut().call).poll(cx).map(|answer| match answer {
            Ok(reply) => reply.map_err(CallError::Reply),
            Err(error) => Err(CallError::Ask(error)),
        })
    }
}

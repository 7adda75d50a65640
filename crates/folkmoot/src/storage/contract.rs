//! What a store has to do, apart from how: traits, of which [`Store`](super::Store) is the first
//! implementation. Whoever uses a store names the trait and gets nothing else of it.
//!
//! An adapter is right when `tests/storage_contract` passes on it: that suite is written against
//! these traits only. Futures are `Send`; an append is under way when its function has returned,
//! whether or not its future is polled, so one caller's appends keep their order.

mod administration;
mod change_feed;
mod directory;
mod erasure;
mod files;
mod keeping;
mod room_log;
mod stream_log;
mod user_log;

pub use administration::Administration;
pub use change_feed::ChangeFeed;
pub use directory::Directory;
pub(crate) use erasure::Erasure;
pub use files::Files;
pub use keeping::Keeping;
pub use room_log::RoomLog;
pub use stream_log::StreamLog;
pub use user_log::UserLog;

/// Declares a trait of functions of a store, and that `Store` has them all: each is written down
/// once. `&self` and that futures are `Send` go without saying; what needs no waiting is `at_once`.
macro_rules! contract {
    (
        $(#[$about:meta])*
        $seen:vis trait $name:ident {
            $($(#[$doc:meta])* async fn $asked:ident($($argument:ident: $kind:ty),* $(,)?) -> $answer:ty;)*
            $(at_once { $($(#[$told:meta])* fn $said:ident() -> $word:ty;)* })?
        }
    ) => {
        $(#[$about])*
        $seen trait $name: Clone + Send + Sync + 'static {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// What the store says; which are told apart is written where it does this.
                fn $asked(
                    &self,
                    $($argument: $kind),*
                ) -> impl std::future::Future<Output = $answer> + Send;
            )*
            $($(
                $(#[$told])*
                fn $said(&self) -> $word;
            )*)?
        }

        impl $name for Store {
            $(
                async fn $asked(&self, $($argument: $kind),*) -> $answer {
                    Self::$asked(self, $($argument),*).await
                }
            )*
            $($(
                fn $said(&self) -> $word {
                    Self::$said(self)
                }
            )*)?
        }
    };
}
use contract;

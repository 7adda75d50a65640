//! What the streams of rooms and users share.

use std::future::Future;

use folkmoot_protocol::Channel;

use super::{RoomLog, UserLog};
use crate::storage::{Append, Offset, ReadError, Record, Store, WriteEpoch};

/// The streams of rooms and users alike, for who handles them without knowing which is which.
pub trait StreamLog: RoomLog + UserLog {
    /// Appends a record; it is under way when this returns, so one caller's appends keep their
    /// order.
    fn append(&self, epoch: WriteEpoch, record: &Record) -> Append;

    /// Under which those append who own no stream.
    fn write_epoch(&self) -> WriteEpoch;

    /// In which offsets count.
    fn stream_epoch(&self) -> &str;

    /// Waits until all that was appended to a stream is in the database or refused.
    fn settled(&self, stream: Channel) -> impl Future<Output = Result<(), ReadError>> + Send;

    /// Before the first event of a stream that is kept.
    fn oldest_event(
        &self,
        stream: Channel,
    ) -> impl Future<Output = Result<Offset, ReadError>> + Send;
}

impl StreamLog for Store {
    fn append(&self, epoch: WriteEpoch, record: &Record) -> Append {
        Self::append(self, epoch, record)
    }

    fn write_epoch(&self) -> WriteEpoch {
        Self::write_epoch(self)
    }

    fn stream_epoch(&self) -> &str {
        Self::stream_epoch(self)
    }

    async fn settled(&self, stream: Channel) -> Result<(), ReadError> {
        Self::settled(self, stream).await
    }

    async fn oldest_event(&self, stream: Channel) -> Result<Offset, ReadError> {
        Self::oldest_event(self, stream).await
    }
}

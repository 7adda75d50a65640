//! Pages of a channel's events, for the client protocol's `history` command.

use folkmoot_protocol::frame::{HistoryRequest, Publication};
use folkmoot_protocol::limits::REPLY_BYTES_MAX;
use folkmoot_protocol::rpc::RpcError;
use folkmoot_protocol::{Channel, ErrorCode};

use super::error::read_failure;
use crate::server::Server;
use crate::storage::Offset;
use crate::storage::contract::StreamLog;
use crate::stream::Since;

/// The events of `channel` that `request` asks for, of which the last is `last`.
pub(crate) async fn page(
    server: &Server,
    channel: Channel,
    request: &HistoryRequest,
    last: Offset,
    limit_max: u32,
) -> Result<Vec<Publication>, RpcError> {
    // A negative limit asks for all there is.
    let limit = u32::try_from(request.limit).unwrap_or(limit_max).min(limit_max);
    let since = request.since.as_ref();
    let since =
        since.map(|at| Since { offset: Offset::from_u64(at.offset), epoch: at.epoch.clone() });
    if since.as_ref().is_some_and(|since| since.is_elsewhere(server.epoch())) {
        return Err(ErrorCode::UnrecoverablePosition.into());
    }
    let since = since.map(|since| since.offset);
    let mut page = match (since, request.reverse) {
        (None, false) => events(server, channel, Begin::Oldest, limit).await?,
        (Some(since), false) => events(server, channel, Begin::After(since), limit).await?,
        (since, true) => {
            let (after, count) = backwards(since, last, limit);
            events(server, channel, Begin::After(after), count).await?
        }
    };
    page.retain(|publication| publication.offset <= last.as_u64());
    if request.reverse {
        page.reverse();
    }
    let len = len_within(REPLY_BYTES_MAX, page.iter().map(|publication| publication.data.len()));
    page.truncate(len);
    Ok(page)
}

/// How many of the first parts fit into a reply; one always does.
pub(crate) fn len_within(bytes_max: usize, parts: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fitting = parts.take_while(|part| {
        bytes += part;
        bytes <= bytes_max
    });
    fitting.count().max(1)
}

/// Where a page begins.
#[derive(Debug, Clone, Copy)]
enum Begin {
    /// With the oldest event kept.
    Oldest,
    After(Offset),
}

/// Where a page begins (after which offset) that goes back from just before `since`, or from the
/// end, and how many events it has at most.
fn backwards(since: Option<Offset>, last: Offset, limit: u32) -> (Offset, u32) {
    let end =
        since.map_or(last.as_u64(), |since| since.as_u64().saturating_sub(1).min(last.as_u64()));
    let after = end.saturating_sub(u64::from(limit));
    (Offset::from_u64(after), u32::try_from(end - after).unwrap_or(limit))
}

async fn events(
    server: &Server,
    channel: Channel,
    from: Begin,
    limit: u32,
) -> Result<Vec<Publication>, RpcError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let after = match from {
        Begin::After(offset) => offset,
        Begin::Oldest => {
            let oldest = server.streams().oldest_event(channel).await;
            let oldest = oldest.map_err(|error| read_failure(&error))?;
            Offset::from_u64(oldest.as_u64().saturating_sub(1))
        }
    };
    let found = crate::stream::events(server.streams(), channel, after, limit).await;
    let found = found.map_err(|error| read_failure(&error))?;
    found.ok_or_else(|| ErrorCode::UnrecoverablePosition.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_takes_what_fits_and_at_least_one() {
        assert_eq!(len_within(10, [4, 6, 1].into_iter()), 2);
        assert_eq!(len_within(10, [40].into_iter()), 1);
    }

    #[test]
    fn pages_go_backwards_from_a_position_and_from_the_end() {
        let last = Offset::from_u64(10);
        assert_eq!(backwards(None, last, 3), (Offset::from_u64(7), 3));
        assert_eq!(backwards(Some(Offset::from_u64(4)), last, 2), (Offset::from_u64(1), 2));
        assert_eq!(backwards(Some(Offset::from_u64(2)), last, 5), (Offset::from_u64(0), 1));
        assert_eq!(backwards(Some(Offset::from_u64(1)), last, 5), (Offset::from_u64(0), 0));
    }
}

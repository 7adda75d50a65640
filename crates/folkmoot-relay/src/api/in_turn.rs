//! Commands of a batch in their order. Publications that stand next to each other go out together:
//! those that go to the disk share its syncs.

use std::iter;
use std::sync::Arc;

use folkmoot_protocol::rpc::RpcError;

use super::caller::Caller;
use crate::channels::{Position, Post};
use crate::server::not_published;

/// Publications that are read before the first of them goes out.
const TOGETHER_LEN_MAX: usize = 512;
/// Bytes of publications that go to their channels' owners as one.
const TOGETHER_BYTES_MAX: usize = 8 << 20;

/// Takes the commands of a batch apart: neighbours that publish stay together, all others are alone.
pub(super) fn runs<T>(
    commands: Vec<T>,
    publishes: impl Fn(&T) -> bool,
) -> impl Iterator<Item = Vec<T>> {
    let mut commands = commands.into_iter().peekable();
    iter::from_fn(move || {
        let first = commands.next()?;
        let len_max = if publishes(&first) { TOGETHER_LEN_MAX } else { 1 };
        let mut run = vec![first];
        while run.len() < len_max
            && let Some(next) = commands.next_if(&publishes)
        {
            run.push(next);
        }
        Some(run)
    })
}

/// Publishes requests that were read, or could not be; what came of each comes in their order.
pub(super) async fn publish(
    caller: &Caller,
    asked: Vec<Result<(Arc<str>, Post), RpcError>>,
) -> Vec<Result<Position, RpcError>> {
    let mut outcomes = Vec::with_capacity(asked.len());
    let mut asked = asked.into_iter().peekable();
    while let Some(first) = asked.next() {
        let first = match first {
            Ok(first) => first,
            Err(refused) => {
                outcomes.push(Err(refused));
                continue;
            }
        };
        let (is_durable, mut bytes) = (first.1.is_durable(), first.1.payload.encoded_len());
        let mut joins = |(_, post): &(Arc<str>, Post)| {
            bytes += post.payload.encoded_len();
            post.is_durable() == is_durable && bytes <= TOGETHER_BYTES_MAX
        };
        let mut posts = vec![first];
        while let Some(Ok(next)) = asked.next_if(|next| next.as_ref().is_ok_and(&mut joins)) {
            posts.push(next);
        }
        let published = caller.server.hub.publish_all(posts).await;
        outcomes.extend(published.into_iter().map(|it| it.map_err(|it| not_published(&it))));
    }
    outcomes.iter().for_each(|outcome| caller.server.metrics.by_api.count(outcome));
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_publish_stay_together_and_all_others_are_alone() {
        let commands = "ppspsspppp".chars().collect();
        let runs = runs(commands, |command| *command == 'p').map(String::from_iter);
        assert_eq!(runs.collect::<Vec<_>>(), ["pp", "s", "p", "s", "s", "pppp"]);
        let many = vec!['p'; TOGETHER_LEN_MAX + 1];
        let lens = super::runs(many, |command| *command == 'p').map(|run| run.len());
        assert_eq!(lens.collect::<Vec<_>>(), [TOGETHER_LEN_MAX, 1]);
    }
}

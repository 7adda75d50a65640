//! Publishes rows of a backend, which are commands of the server API, in their order.
//!
//! Rows that go into durable channels are written together, each owner of channels once, so that a
//! sync of the disk is shared by many. In one channel the order is always that of the rows; a row
//! that cannot be published just now ends the batch.

use std::collections::HashMap;
use std::sync::Arc;

use folkmoot_protocol::rpc::RpcError;

use crate::api::publish::{Asked, asked};
use crate::channels::{Post, Posts};
use crate::durable::RowKey;
use crate::metrics::ConsumerMetrics;
use crate::server::{Server, not_published};

/// A row that is to be published.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) key: RowKey,
    pub(crate) method: &'a str,
    pub(crate) payload: &'a [u8],
}

/// Publishes rows; what came of each, up to the first that must be tried again. All after that one
/// must be tried again too: what of them is durable is known by its key.
pub(crate) async fn publish(
    server: &Arc<Server>,
    metrics: &ConsumerMetrics,
    rows: &[Row<'_>],
) -> Vec<Result<(), RpcError>> {
    let read = |row: &Row<'_>| {
        let mut asked = asked(server, row.method, row.payload, &row.key)?;
        if server.hub.nodes().is_some() {
            asked.name_by(&row.key);
        }
        Ok(asked)
    };
    publish_asked(server, metrics, rows.iter().map(read).collect()).await
}

/// The same for rows that are read already, or could not be.
pub(crate) async fn publish_asked(
    server: &Arc<Server>,
    metrics: &ConsumerMetrics,
    rows: Vec<ReadRow>,
) -> Vec<Result<(), RpcError>> {
    let outcomes = publish_all(server, rows).await;
    outcomes.iter().for_each(|outcome| metrics.rows.count(outcome));
    outcomes
}

/// A row that is read, or could not be.
type ReadRow = Result<Asked, RpcError>;

async fn publish_all(server: &Arc<Server>, rows: Vec<ReadRow>) -> Vec<Result<(), RpcError>> {
    let mut outcomes = Vec::with_capacity(rows.len());
    for group in groups(rows) {
        outcomes.extend(publish_group(server, group).await);
        if outcomes.last().is_some_and(is_temporary) {
            break;
        }
    }
    outcomes
}

/// Rows in their order, in parts in which each channel gets either what goes to the disk or what
/// does not: of a part, all that goes to the disk is published first.
fn groups(rows: Vec<ReadRow>) -> Vec<Vec<ReadRow>> {
    let posts = || rows.iter().flatten().flat_map(|asked| &asked.posts);
    let is_durable = posts().next().is_some_and(|(_, post)| post.is_durable());
    if posts().all(|(_, post)| post.is_durable() == is_durable) {
        return vec![rows];
    }
    let mut groups = vec![Vec::new()];
    let mut kinds: HashMap<Arc<str>, bool> = HashMap::new();
    for row in rows {
        let posts = || row.iter().flat_map(|asked| &asked.posts);
        let differs = |(name, post): &(Arc<str>, Post)| {
            kinds.get(name).is_some_and(|known| *known != post.is_durable())
        };
        if posts().any(differs) {
            groups.push(Vec::new());
            kinds.clear();
        }
        kinds.extend(posts().map(|(name, post)| (name.clone(), post.is_durable())));
        groups.last_mut().expect("there is one from the beginning").push(row);
    }
    groups
}

async fn publish_group(server: &Arc<Server>, rows: Vec<ReadRow>) -> Vec<Result<(), RpcError>> {
    let mut outcomes = Vec::with_capacity(rows.len());
    let mut in_memory: Vec<Posts> = Vec::with_capacity(rows.len());
    let (mut durable, mut durable_rows) = (Posts::new(), Vec::new());
    for (number, row) in rows.into_iter().enumerate() {
        let (posts, outcome) = match row {
            Ok(asked) => {
                // What is not refused is published, and the row is set aside for the rest.
                let outcome = asked.refusal().map_or(Ok(()), Err);
                (asked.posts, outcome)
            }
            Err(error) => (Posts::new(), Err(error)),
        };
        let (kept, fleeting): (Posts, Posts) =
            posts.into_iter().partition(|(_, post)| post.is_durable());
        durable_rows.extend(kept.iter().map(|_| number));
        durable.extend(kept);
        in_memory.push(fleeting);
        outcomes.push(outcome);
    }
    if !durable.is_empty() {
        let written = server.hub.publish_all(durable).await;
        for (row, written) in durable_rows.into_iter().zip(written) {
            if let Err(refused) = written {
                outcomes[row] = Err(not_published(&refused));
            }
        }
    }
    for (number, posts) in in_memory.into_iter().enumerate() {
        if !is_temporary(&outcomes[number]) && !posts.is_empty() {
            let published = server.hub.publish_all(posts).await;
            if let Some(refused) = published.into_iter().find_map(Result::err) {
                outcomes[number] = Err(not_published(&refused));
            }
        }
        if is_temporary(&outcomes[number]) {
            outcomes.truncate(number + 1);
            break;
        }
    }
    outcomes
}

fn is_temporary(outcome: &Result<(), RpcError>) -> bool {
    outcome.as_ref().is_err_and(|error| error.code.is_temporary())
}

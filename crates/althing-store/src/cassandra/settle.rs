//! Takes down that deliveries were taken. It needs no epoch: its condition is that the row is still
//! as it was when it was sent.

use std::collections::HashMap;

use futures_util::future::try_join_all;

use super::core::Core;
use super::due::{Announced, signed};
use super::session::{Failure, blob, number};
use crate::delivery::Settled;

/// Owners of whom something is settled at once.
const OWNERS_AT_ONCE: usize = 64;

impl Core {
    /// Those of one owner go one after the other: at once they would keep each other from being
    /// agreed upon.
    pub(super) async fn settle(&self, settled: &[Settled]) -> Result<(), Failure> {
        let mut owners: HashMap<_, Vec<_>> = HashMap::new();
        for settled in settled {
            owners.entry(&settled.mark.owner).or_default().push(settled);
        }
        let owners: Vec<_> = owners.into_values().collect();
        for owners in owners.chunks(OWNERS_AT_ONCE) {
            try_join_all(owners.iter().map(|settled| self.settle_all(settled))).await?;
        }
        Ok(())
    }

    async fn settle_all(&self, settled: &[&Settled]) -> Result<(), Failure> {
        for settled in settled {
            self.settle_one(settled).await?;
        }
        Ok(())
    }

    async fn settle_one(&self, Settled { mark, next }: &Settled) -> Result<(), Failure> {
        let all = &self.session.statements;
        let (id, at) = (&mark.owner, signed(mark.due));
        let posted = self.posted(id, &mark.name, false).await?;
        let Some(posted) = posted.filter(|posted| posted.at == at) else { return Ok(()) };
        let (part, mut row) = (self.session.part(id), self.session.owner(id));
        row.extend([blob(mark.name.as_bytes()), number(at), blob(&posted.entry)]);
        let Some(next) = next else {
            self.session.write_if(part, &all.delivery_taken, row).await?;
            self.withdraw(id, &[Announced { name: mark.name.clone(), at, entry: posted.entry }])
                .await;
            return Ok(());
        };
        let again = self.entry(&mark.name, signed(*next));
        self.write_entries(id, std::slice::from_ref(&again)).await?;
        let mut set = vec![number(again.at), blob(&again.entry)];
        set.extend(row);
        let is_moved = self.session.write_if(part, &all.delivery_again, set).await?;
        let before = Announced { name: mark.name.clone(), at, entry: posted.entry };
        self.withdraw(id, &[if is_moved { before } else { again }]).await;
        Ok(())
    }
}

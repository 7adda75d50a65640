//! What actors have left under names before others. Where so much of it was taken that the server does
//! not pass over what is gone at once, it is read in parts: letters are named by their turns.

use althing::ActorId;
use futures_util::future::try_join_all;

use super::core::Core;
use super::due::{READS_AT_ONCE, posted};
use super::journal::page;
use super::session::{Cells, Failure, blob};
use crate::delivery::Delivery;
use crate::post::{letters_of, turn_of};

impl Core {
    /// What actors have left under names before those.
    pub(super) async fn left_before(
        &self,
        names: &[(ActorId, String)],
        limit: usize,
    ) -> Result<Vec<Delivery>, Failure> {
        let mut left = Vec::new();
        for some in names.chunks(READS_AT_ONCE) {
            let read = some.iter().map(|(id, name)| self.left_by(id, name, limit - left.len()));
            left.extend(try_join_all(read).await?.into_iter().flatten());
            left.truncate(limit);
            if left.len() == limit {
                break;
            }
        }
        Ok(left)
    }

    async fn left_by(
        &self,
        id: &ActorId,
        before: &str,
        limit: usize,
    ) -> Result<Vec<Delivery>, Failure> {
        // Ends of parts that were too long, the next one last.
        let mut ends = vec![before.to_owned()];
        let (mut left, mut from) = (Vec::new(), String::new());
        while let Some(end) = ends.last().filter(|_| left.len() < limit) {
            match self.left_between(id, (&from, end), limit - left.len()).await {
                Ok(part) => {
                    left.extend(part);
                    from = ends.pop().unwrap_or_default();
                }
                Err(failure @ Failure::Unreadable(_)) => {
                    ends.push(middle(&from, end).ok_or(failure)?);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(left)
    }

    async fn left_between(
        &self,
        id: &ActorId,
        (from, before): (&str, &str),
        limit: usize,
    ) -> Result<Vec<Delivery>, Failure> {
        let mut values = self.session.owner(id);
        values.extend([blob(from.as_bytes()), blob(before.as_bytes()), page(limit)]);
        let rows = self.session.rows(&self.session.statements.delivery_left, values).await?;
        let left = |mut cells: Cells| {
            let name = cells.text();
            posted(id, name, cells).delivery
        };
        Ok(rows.into_iter().map(left).collect())
    }
}

/// A name in the middle of letters; `None` if they are all of one turn, or no letters.
fn middle(from: &str, before: &str) -> Option<String> {
    let (first, last) = (turn_of(from).unwrap_or(0), turn_of(before)?);
    let middle = first + last.saturating_sub(first) / 2;
    (middle > first).then(|| letters_of(middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_parted_between_turns_and_others_not_at_all() {
        let whole = ("", ">00000000000000000008.000003");
        let half = middle(whole.0, whole.1).expect("eight turns are parted");
        assert_eq!(half, ">00000000000000000004");
        assert_eq!(middle(&half, whole.1).as_deref(), Some(">00000000000000000006"));
        assert_eq!(middle(">00000000000000000007", whole.1), None);
        assert_eq!(middle("", "@reminder"), None);
    }
}

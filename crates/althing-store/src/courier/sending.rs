//! What is on its way together: one task asks all of them, and hands back in one piece whatever
//! was answered in one go, because a task and a message for each would cost more than the ask.

use std::pin::Pin;
use std::time::Duration;

use althing::{AskError, Node};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, ReadyChunks};

use super::agenda::Attempt;
use crate::delivery::Mark;

type Asked = Pin<Box<dyn Future<Output = (usize, Result<(), AskError>)> + Send>>;
type Late = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Attempts that were begun together.
pub(super) struct Sending {
    asked: ReadyChunks<FuturesUnordered<Asked>>,
    /// Those without an answer yet.
    marks: Vec<Option<Mark>>,
    late: Late,
}

pub(super) enum Outcome {
    Taken,
    Failed(AskError),
    Late,
}

/// What was answered, and what is still to be.
pub(super) struct Answered {
    pub(super) outcomes: Vec<(Mark, Outcome)>,
    pub(super) rest: Option<Sending>,
}

impl Sending {
    /// Sends all of them once it is polled; none may take longer than that to answer.
    pub(super) fn new(node: &Node, attempts: Vec<Attempt>, within: Duration) -> Self {
        let count = attempts.len().max(1);
        let (mut marks, asked) = (Vec::with_capacity(attempts.len()), FuturesUnordered::new());
        for (place, Attempt { mark, letter }) in attempts.into_iter().enumerate() {
            marks.push(Some(mark));
            let node = node.clone();
            let ask = async move { (place, node.ask_letter(letter).await.map(drop)) };
            asked.push(Box::pin(ask) as Asked);
        }
        let late = Box::pin(node.sleep(within));
        Self { asked: asked.ready_chunks(count), marks, late }
    }

    /// Waits until at least one was answered, or all are late.
    pub(super) async fn answered(mut self) -> Answered {
        let answered = match select(self.asked.next(), &mut self.late).await {
            Either::Left((answered, _)) => answered,
            Either::Right(_) => None,
        };
        let Some(answered) = answered else {
            let late = self.marks.into_iter().flatten().map(|mark| (mark, Outcome::Late));
            return Answered { outcomes: late.collect(), rest: None };
        };
        let outcomes = answered.into_iter().filter_map(|(place, answer)| {
            let outcome = match answer {
                // Its reply is for nobody.
                Ok(()) | Err(AskError::ReplyTooLong(..)) => Outcome::Taken,
                Err(why) => Outcome::Failed(why),
            };
            self.marks[place].take().map(|mark| (mark, outcome))
        });
        let outcomes = outcomes.collect();
        let is_done = self.marks.iter().all(Option::is_none);
        Answered { outcomes, rest: (!is_done).then_some(self) }
    }
}

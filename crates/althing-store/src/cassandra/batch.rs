//! The statements of turns that are written as one: all of the actor's partition, in one table, with
//! the fence on the head.
//!
//! All of a batch have the same time, and what is deleted wins over what is written at that time.
//! So nothing is both: only the last word on each delivery counts, and replies that are forgotten
//! at once are not written.

use std::collections::BTreeMap;

use althing::ActorId;

use super::due::Announced;
use super::head::Head;
use super::session::{Bound, Values, blob, number};
use super::statements::Statements;
use crate::delivery::{Delivery, Posting};
use crate::store::{Turn, with_key};

/// The last word on each delivery: `None` cancels it.
pub(super) type Postings<'a> = BTreeMap<&'a str, Option<&'a Delivery>>;

/// Kind and key.
pub(super) fn named(id: &ActorId) -> Values {
    let key = with_key(id).expect("looked at before the job was made");
    vec![blob(id.kind().as_str().as_bytes()), blob(key.as_bytes())]
}

pub(super) fn last_words<'a>(turns: &[&'a Turn]) -> Postings<'a> {
    let words = turns.iter().flat_map(|turn| &turn.postings).map(|posting| match posting {
        Posting::Put(delivery) => (&*delivery.name, Some(delivery)),
        Posting::Cancel(name) => (&**name, None),
    });
    words.collect()
}

/// Turns that follow on the head and lead to the next one.
pub(super) fn bound<'a>(
    all: &'a Statements,
    owner: &Values,
    (head, next): (&Head, &Head),
    turns: &[&Turn],
    announced: &[Announced],
) -> Vec<Bound<'a>> {
    let with_owner = |rest: Values| -> Values { owner.iter().cloned().chain(rest).collect() };
    let mut set = vec![
        number(next.epoch.0),
        number(next.version),
        number(next.last_event),
        next.written.as_deref().and_then(blob),
    ];
    let on =
        vec![number(head.epoch.0), number(head.version), head.opened.as_deref().and_then(blob)];
    let head_write = match turns.iter().rev().find_map(|turn| turn.snapshot.as_ref()) {
        None => &all.head_write,
        Some(state) => {
            set.extend([number(u64::from(state.schema)), blob(&state.bytes)]);
            set.push(number(state.includes));
            &all.head_write_state
        }
    };
    let mut bound = vec![(head_write, set.into_iter().chain(with_owner(on)).collect())];
    for event in turns.iter().flat_map(|turn| &turn.events) {
        let values =
            vec![number(event.number), number(u64::from(event.schema)), blob(&event.bytes)];
        bound.push((&all.event_write, with_owner(values)));
    }
    let forgotten = turns.iter().map(|turn| turn.forget_replies).max().unwrap_or(0);
    if forgotten > 0 {
        bound.push((&all.reply_forget, with_owner(vec![number(forgotten)])));
    }
    let replies = turns.iter().flat_map(|turn| &turn.replies);
    for reply in replies.filter(|reply| reply.number > forgotten) {
        let request = blob(reply.request.as_bytes());
        let values = vec![number(reply.number), request, number(reply.at.0), blob(&reply.bytes)];
        bound.push((&all.reply_write, with_owner(values)));
    }
    for (name, delivery) in last_words(turns) {
        let name = blob(name.as_bytes());
        let Some(delivery) = delivery else {
            bound.push((&all.delivery_cancel, with_owner(vec![name])));
            continue;
        };
        let entry = announced.iter().find(|it| it.name == delivery.name);
        let entry = &entry.expect("each was announced").entry;
        let mut values = vec![name, number(delivery.due.0), blob(entry)];
        values.push(delivery.cron.as_ref().and_then(|cron| blob(cron.as_bytes())));
        values.extend(named(&delivery.letter.to));
        values.extend([blob(delivery.letter.message.as_bytes()), blob(&delivery.letter.body)]);
        bound.push((&all.delivery_write, with_owner(values)));
    }
    bound
}

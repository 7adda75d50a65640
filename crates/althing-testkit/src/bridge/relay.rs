//! A topic on several nodes: each event crosses once for each node, whoever subscribes there.
//!
//! On the topic's own node an actor reads it as a stream and tells what it reads to an actor on the
//! other node, which owns the topic of that name there and publishes with the same numbers.

use std::sync::Arc;

use althing::{
    Actor, ActorError, ActorRef, Context, Epoch, Gap, Handler, Node, Published, Sequence, Topic,
    TopicOptions, Wire, actor,
};

use super::Bridge;

/// One event as it crosses.
#[derive(Wire)]
struct Crossed {
    sequence: u64,
    payload: Vec<u8>,
}

type Attach = Box<dyn FnOnce(&mut Context<Source>) + Send>;

/// Reads the topic on its own node.
struct Source {
    attach: Option<Attach>,
    sink: ActorRef<Sink>,
}

/// An event, encoded; `None` where some are gone.
struct Read(Option<Crossed>);

impl Actor for Source {
    const NAME: &'static str = "althing.testkit.relay-source";

    async fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), ActorError> {
        if let Some(attach) = self.attach.take() {
            attach(ctx);
        }
        Ok(())
    }
}

impl Handler<Read> for Source {
    type Reply = ();

    async fn handle(&mut self, Read(event): Read, ctx: &mut Context<Self>) {
        // A gap shows on the other side, too: its numbers are those of the topic.
        let Some(event) = event else { return };
        if self.sink.publish(event).tell().await.is_err() {
            // The other node is gone.
            ctx.stop();
        }
    }
}

type Publish = Box<dyn FnMut(Crossed) -> Result<(), ActorError> + Send>;

/// Publishes on the other node.
struct Sink {
    publish: Publish,
}

#[actor(name = "althing.testkit.relay-sink", wire)]
impl Sink {
    async fn publish(&mut self, event: Crossed, ctx: &mut Context<Self>) {
        if let Err(error) = (self.publish)(event) {
            ctx.fail(error);
        }
    }
}

impl Bridge {
    /// Has a topic be heard on another node, from its next event on: what is published here crosses
    /// as bytes, once, and comes to the subscribers of the topic returned, with the same numbers.
    /// It goes on until one of the two nodes ends.
    ///
    /// # Errors
    /// The other node's topic of that name has a publisher of a later epoch already.
    pub fn relay<T: Wire + Send + Sync + 'static>(
        &self,
        topic: &Topic<T>,
        to: &Node,
        epoch: Epoch,
    ) -> Result<Topic<T>, ActorError> {
        let there = to.topic::<T>(topic.name(), TopicOptions::default());
        let publisher = there.publisher(epoch)?;
        let publish: Publish = Box::new(move |event| {
            let payload = T::decode(&event.payload)?;
            let published = publisher.publish_at(Sequence(event.sequence), payload);
            published.map_err(|error| ActorError::new(error.to_string()))
        });
        let sink = to.spawn(Sink { publish });
        let from = topic.node();
        let Some(sink) = from.resolve::<Sink>(&sink.id()) else {
            return Err(ActorError::new("the two nodes are not on one bridge"));
        };
        let stream = topic.stream(topic.last());
        let attach = move |ctx: &mut Context<Source>| {
            ctx.attach(stream, |event: Result<Arc<Published<T>>, Gap>| {
                Read(event.ok().map(|event| crossed(&event)))
            });
        };
        from.spawn(Source { attach: Some(Box::new(attach)), sink });
        Ok(there)
    }
}

fn crossed<T: Wire + Send + Sync + 'static>(event: &Published<T>) -> Crossed {
    let mut payload = Vec::new();
    event.payload.encode(&mut payload);
    Crossed { sequence: event.sequence.0, payload }
}

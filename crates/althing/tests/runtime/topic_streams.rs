//! What a topic's streams promise: everything in order and once, and a gap where something is gone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{Charge, On, within};
use althing::{EventStream, Gap, Node, Published, Sequence, Topic, TopicOptions};
use futures_util::StreamExt;

fn node() -> Node {
    Node::builder("streams").build()
}

fn topic(node: &Node, replay: usize) -> Topic<u64> {
    node.topic("t", TopicOptions { replay })
}

async fn settled<T: Send + Sync + 'static>(topic: &Topic<T>) {
    while topic.pending() > 0 {
        tokio::task::yield_now().await;
    }
}

async fn read(stream: &mut EventStream<u64>, items: usize) -> Vec<Result<u64, (u64, u64)>> {
    let mut read = Vec::new();
    for _ in 0..items {
        let item = stream.next().await.expect("the node runs");
        read.push(item.map(|event| event.payload).map_err(|gap| (gap.after.0, gap.until.0)));
    }
    read
}

#[tokio::test]
async fn a_stream_gives_what_is_kept_and_then_what_comes() {
    let node = node();
    let topic = topic(&node, 8);
    (1..=3).for_each(|n| assert_eq!(topic.publish(n).unwrap(), Sequence(n)));
    let mut stream = topic.stream(Sequence(1));
    topic.publish(4).unwrap();
    assert_eq!(read(&mut stream, 3).await, [Ok(2), Ok(3), Ok(4)]);
    // A reader that waits is woken.
    let reader = tokio::spawn(async move { read(&mut stream, 1).await });
    tokio::task::yield_now().await;
    topic.publish(5).unwrap();
    assert_eq!(reader.await.unwrap(), [Ok(5)]);
}

#[tokio::test]
async fn a_stream_says_at_once_what_is_gone() {
    let node = node();
    let kept = topic(&node, 2);
    (1..=5).for_each(|n| assert_eq!(kept.publish(n).unwrap(), Sequence(n)));
    assert_eq!(read(&mut kept.stream(Sequence(1)), 3).await, [Err((1, 3)), Ok(4), Ok(5)]);

    let unkept = node.topic::<u64>("unkept", TopicOptions { replay: 0 });
    unkept.publish(1).unwrap();
    let mut stream = unkept.stream(Sequence(0));
    assert_eq!(read(&mut stream, 1).await, [Err((0, 1))]);
    unkept.publish(2).unwrap();
    assert_eq!(read(&mut stream, 1).await, [Ok(2)]);
}

#[tokio::test]
async fn a_position_from_before_the_topic_was_made_anew_is_a_gap() {
    let node = node();
    let topic = topic(&node, 2);
    topic.publish(1).unwrap();
    assert_eq!(read(&mut topic.stream(Sequence(70)), 2).await, [Err((70, 0)), Ok(1)]);
    assert_eq!(
        topic.replay_since(Sequence(70)).unwrap_err(),
        Gap { after: Sequence(70), until: Sequence(0) }
    );
}

#[tokio::test]
async fn a_reader_that_is_too_slow_gets_a_gap_and_goes_on_with_what_is_kept() {
    let node = node();
    let topic = topic(&node, 16);
    let mut stream = topic.stream(Sequence(0));
    for n in 1..=5_000 {
        topic.publish(n).unwrap();
    }
    settled(&topic).await;
    let items = read(&mut stream, 1_025).await;
    assert_eq!(items[0], Err((0, 3_976)));
    assert!(items[1..].iter().copied().eq((3_977..=5_000).map(Ok)));
}

#[tokio::test]
async fn what_a_slow_reader_missed_comes_from_the_ring_if_that_has_it() {
    let node = node();
    let topic = topic(&node, 5_000);
    let mut stream = topic.stream(Sequence(0));
    for n in 1..=5_000 {
        topic.publish(n).unwrap();
    }
    settled(&topic).await;
    assert!(read(&mut stream, 5_000).await.into_iter().eq((1..=5_000).map(Ok)));
}

#[tokio::test]
async fn a_stream_ends_with_the_node_and_dropping_it_unsubscribes() {
    let node = node();
    let topic = topic(&node, 4);
    let dropped = topic.stream(Sequence(0));
    let mut stream = topic.stream(Sequence(0));
    assert_eq!(topic.subscribers(), 2);
    drop(dropped);
    assert_eq!(topic.subscribers(), 1);
    topic.publish(1).unwrap();
    let reader = tokio::spawn(async move {
        let mut read = Vec::new();
        while let Some(item) = StreamExt::next(&mut stream).await {
            read.push(item.unwrap().payload);
        }
        read
    });
    tokio::task::yield_now().await;
    node.shutdown(Duration::from_secs(1)).await;
    assert_eq!(reader.await.unwrap(), [1]);
    assert_eq!(topic.subscribers(), 0);
    // One that begins after the end gives what is kept, and ends too.
    let mut late = topic.stream(Sequence(0));
    assert_eq!(read(&mut late, 1).await, [Ok(1)]);
    assert!(late.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn streams_that_begin_while_others_publish_miss_nothing_and_get_nothing_twice() {
    const LAST: u64 = if cfg!(miri) { 200 } else { 20_000 };
    let node = node();
    let topic = topic(&node, 30_000);
    let publishers = (0..2).map(|_| {
        let topic = topic.clone();
        tokio::spawn(async move {
            for _ in 0..LAST / 2 {
                topic.publish(0).unwrap();
                tokio::task::yield_now().await;
            }
        })
    });
    let publishers: Vec<_> = publishers.collect();
    let readers = (0..20).map(|_| {
        let topic = topic.clone();
        tokio::spawn(async move {
            let after = topic.last();
            let mut stream = topic.stream(after);
            for expected in after.0 + 1..=LAST {
                let event = stream.next().await.unwrap().expect("the ring keeps everything");
                assert_eq!(event.sequence.0, expected);
            }
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        reader.await.unwrap();
    }
    for publisher in publishers {
        publisher.await.unwrap();
    }
}

type BoxedStream =
    Pin<Box<dyn futures_util::Stream<Item = Result<Arc<Published<u64>>, Gap>> + Send>>;

#[tokio::test]
async fn a_stream_is_a_stream_to_others() {
    let node = node();
    let topic = topic(&node, 4);
    topic.publish(1).unwrap();
    let boxed: BoxedStream = Box::pin(topic.stream(Sequence(0)));
    let payloads: Vec<_> = boxed.take(1).map(|item| item.unwrap().payload).collect().await;
    assert_eq!(payloads, [1]);
}

/// Some were taken over to be read, and one waits still.
#[tokio::test]
async fn who_drops_a_stream_is_not_failed_by_an_event_whose_drop_panics() {
    let node = node();
    let topic = node.topic::<Charge>("t", TopicOptions { replay: 0 });
    let mut stream = topic.stream(Sequence(0));
    for _ in 0..2 {
        topic.publish(Charge).expect("nobody owns it");
    }
    settled(&topic).await;
    let read = stream.next().await.expect("the node runs").expect("nothing is gone");
    topic.publish(Charge).expect("nobody owns it");
    settled(&topic).await;
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(stream)));
    dropped.expect("the reader goes on");
    // What it has read is its own.
    catch_unwind(AssertUnwindSafe(|| drop(read))).expect_err("it was the last one");
}

/// What ran over in its buffer, the topic still keeps.
#[test]
fn a_reader_that_lags_sees_no_gap_as_far_as_the_topic_keeps_events() {
    within(On::OneThread, async {
        let topic = topic(&node(), 6_000);
        let mut stream = topic.stream(Sequence(0));
        for n in 0..5_000 {
            topic.publish(n).expect("nobody owns it");
        }
        let all: Vec<_> = (0..5_000).map(Ok).collect();
        assert_eq!(read(&mut stream, 5_000).await, all);
    });
}

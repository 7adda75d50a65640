//! Who may publish to a topic, and with which numbers.

use althing::{Epoch, Fenced, Node, PublishError, Sequence, Topic, TopicOptions};

fn node() -> Node {
    Node::builder("topics").build()
}

fn topic(node: &Node, replay: usize) -> Topic<u64> {
    node.topic("t", TopicOptions { replay })
}

#[tokio::test]
async fn a_higher_epoch_fences_the_earlier_publisher_which_gets_its_payload_back() {
    let topic = node().topic::<String>("t", TopicOptions::default());
    let first = topic.publisher(Epoch(3)).unwrap();
    first.publish("a".into()).unwrap();
    let second = topic.publisher(Epoch(5)).unwrap();
    let expected = Fenced { topic: "t".into(), epoch: Epoch(3), current: Epoch(5) };
    for refused in [
        first.publish("late".into()).unwrap_err(),
        first.publish_at(Sequence(9), "late".into()).unwrap_err(),
    ] {
        assert_eq!(refused.to_string(), "epoch 3 of topic t is fenced off by epoch 5");
        let PublishError::Fenced { fenced, payload } = refused else { panic!("{refused}") };
        assert_eq!((fenced, payload.as_str()), (expected.clone(), "late"));
    }
    // The end of a fenced publisher takes nothing from its successor.
    drop(first);
    assert!(matches!(topic.publish("x".into()), Err(PublishError::Owned { .. })));
    assert_eq!(second.publish("b".into()).unwrap(), Sequence(2));
    let epochs: Vec<_> = topic.kept().iter().map(|event| event.epoch).collect();
    assert_eq!(epochs, [Epoch(3), Epoch(5)]);
}

#[tokio::test]
async fn an_equal_or_lower_epoch_is_refused_also_after_its_owner_has_gone() {
    let node = node();
    let topic = topic(&node, 0);
    drop(topic.publisher(Epoch(2)).unwrap());
    for epoch in [Epoch(0), Epoch(1), Epoch(2)] {
        let refused = topic.publisher(epoch).unwrap_err();
        assert_eq!((refused.epoch, refused.current), (epoch, Epoch(2)));
    }
    topic.publisher(Epoch(2).next()).unwrap();
}

#[tokio::test]
async fn an_owned_topic_is_published_to_by_its_owner_only_and_freed_with_it() {
    let node = node();
    let topic = topic(&node, 4);
    assert_eq!(topic.publish(1).unwrap(), Sequence(1));
    let owner = topic.publisher(Epoch(1)).unwrap();
    owner.publish_at(Sequence(100), 2).unwrap();
    let refused = topic.publish(3).unwrap_err();
    assert!(matches!(refused, PublishError::Owned { epoch: Epoch(1), .. }), "{refused}");
    assert_eq!(refused.into_payload(), 3);
    drop(owner);
    assert_eq!(topic.publish(3).unwrap(), Sequence(101));
}

#[tokio::test]
async fn an_owners_number_must_be_above_the_last() {
    let node = node();
    let owner = topic(&node, 0).publisher(Epoch(1)).unwrap();
    owner.publish_at(Sequence(7), 0).unwrap();
    for number in [6, 7] {
        let refused = owner.publish_at(Sequence(number), number).unwrap_err();
        assert!(matches!(refused, PublishError::NotAbove { last: Sequence(7), .. }), "{refused}");
        assert_eq!(refused.into_payload(), number);
    }
    assert_eq!(owner.last(), Sequence(7));
}

#[tokio::test]
async fn after_the_last_number_that_there_is_a_topic_takes_no_more() {
    let node = node();
    let topic = topic(&node, 1);
    let owner = topic.publisher(Epoch(1)).unwrap();
    owner.publish_at(Sequence(u64::MAX), 1).unwrap();
    let refused = owner.publish(2).unwrap_err();
    assert!(matches!(refused, PublishError::NotAbove { payload: 2, .. }), "{refused}");
    drop(owner);
    let refused = topic.publish(3).unwrap_err();
    assert!(matches!(refused, PublishError::NotAbove { payload: 3, .. }), "{refused}");
    assert_eq!(topic.last(), Sequence(u64::MAX));
}

//! What waits in an outbox, and in which order it leaves.

use super::*;

#[tokio::test]
async fn messages_come_out_in_order_and_all_at_once() {
    let outbox = Outbox::new(1024);
    outbox.push(Bytes::from_static(b"a"));
    outbox.push(Bytes::from_static(b"b"));
    let both = vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
    assert_eq!(outbox.next().await, Next::Messages(both));
}

#[tokio::test]
async fn a_full_queue_closes_as_slow_and_holds_nothing() {
    let outbox = Outbox::new(100);
    for _ in 0..10 {
        outbox.push(Bytes::from_static(&[0; 30]));
    }
    assert_eq!(outbox.next().await, Next::Close(DisconnectCode::Slow.into()));
    assert_eq!(outbox.queue.lock().messages.capacity(), 0);
}

#[tokio::test]
async fn an_event_larger_than_the_queue_reaches_who_reads() {
    let outbox = Outbox::new(100);
    let (large, small) = (Bytes::from_static(&[0; 1_000]), Bytes::from_static(b"behind it"));
    for _ in 0..3 {
        outbox.push(large.clone());
        outbox.push(small.clone());
        assert_eq!(outbox.next().await, Next::Messages(vec![large.clone(), small.clone()]));
    }
    outbox.push(small);
    outbox.push(large);
    assert_eq!(outbox.next().await, Next::Close(DisconnectCode::Slow.into()));
}

#[tokio::test]
async fn what_was_queued_before_a_close_is_still_written() {
    let outbox = Outbox::new(1024);
    outbox.push(Bytes::from_static(b"last words"));
    outbox.close(DisconnectCode::Shutdown);
    outbox.close(DisconnectCode::Slow);
    outbox.push(Bytes::from_static(b"too late"));
    assert_eq!(outbox.next().await, Next::Messages(vec![Bytes::from_static(b"last words")]));
    assert_eq!(outbox.next().await, Next::Close(DisconnectCode::Shutdown.into()));
}

#[tokio::test]
async fn replies_wait_for_room_instead_of_ending_the_connection() {
    let outbox = std::sync::Arc::new(Outbox::new(100));
    let answering = tokio::spawn({
        let outbox = outbox.clone();
        async move {
            for _ in 0..3 {
                outbox.reply(Bytes::from_static(&[0; 90])).await;
            }
        }
    });
    for _ in 0..3 {
        let Next::Messages(taken) = outbox.next().await else { panic!("closed") };
        assert_eq!(taken.len(), 1);
        tokio::task::yield_now().await;
    }
    answering.await.unwrap();
    assert!(!outbox.is_congested());
    assert_eq!(outbox.takes(), 3);
}

#[tokio::test]
async fn a_reply_larger_than_the_queue_goes_alone_and_leaves_room_for_events() {
    let outbox = Outbox::new(100);
    outbox.reply(Bytes::from_static(&[0; 1000])).await;
    outbox.push(Bytes::from_static(b"event"));
    let mut second = Box::pin(outbox.reply(Bytes::from_static(b"reply")));
    assert!(futures_util::FutureExt::now_or_never(second.as_mut()).is_none());
    assert!(outbox.is_congested());
    assert!(matches!(outbox.next().await, Next::Messages(taken) if taken.len() == 2));
    second.await;
    assert!(matches!(outbox.next().await, Next::Messages(taken) if taken.len() == 1));
}

#[tokio::test]
async fn a_reply_that_waits_gives_up_when_the_connection_closes() {
    let outbox = Outbox::new(100);
    outbox.reply(Bytes::from_static(&[0; 90])).await;
    let mut second = Box::pin(outbox.reply(Bytes::from_static(&[0; 90])));
    assert!(futures_util::FutureExt::now_or_never(second.as_mut()).is_none());
    outbox.close(DisconnectCode::Shutdown);
    second.await;
    assert!(!outbox.is_congested());
}

#[tokio::test]
async fn a_waiting_write_half_is_woken() {
    let outbox = std::sync::Arc::new(Outbox::new(1024));
    let writer = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.next().await }
    });
    tokio::task::yield_now().await;
    outbox.push(Bytes::from_static(b"x"));
    assert_eq!(writer.await.unwrap(), Next::Messages(vec![Bytes::from_static(b"x")]));
}

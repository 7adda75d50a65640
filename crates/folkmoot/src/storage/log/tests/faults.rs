//! Faults while writing.

use crate::storage::ids::RoomId;
use crate::storage::progress::Stream;
use std::io::ErrorKind;

use super::super::disk::faulty::Fault;
use super::*;
use crate::storage::error::AppendError;

const FAIL: Fault = Fault::Fail { kind: ErrorKind::Other, kept: 0 };

/// Waits until appends are taken again.
pub(super) async fn reopened(queue: &Queue) {
    loop {
        let changed = queue.room.notified();
        if queue.ready().await.is_ok() {
            return;
        }
        changed.await;
    }
}

#[tokio::test]
async fn acknowledged_records_are_there_after_a_restart() {
    let directory = TestDirectory::new("plain");
    for start in [0, 300, 600] {
        let log = TestLog::open(&directory.0, 4_096);
        for number in start + 1..=start + 300 {
            assert_eq!(log.append(number).await.unwrap().lsn, Lsn(number));
        }
        log.close();
        assert_eq!(recover(&directory.0).unwrap(), (1..=start + 300).collect::<Vec<_>>());
    }
    let segments = std::fs::read_dir(&directory.0).unwrap().count();
    assert!(segments > 3, "300 records pass through several segments, found {segments}");
}

#[tokio::test]
async fn a_power_cut_at_any_byte_loses_nothing_acknowledged() {
    let mut cut = 0;
    loop {
        let directory = TestDirectory::new("power");
        let log = TestLog::open(&directory.0, 4_096);
        for number in 1..=5 {
            log.append(number).await.unwrap();
        }
        // The write reaches the cache, the sync does not come back, and neither does anything after
        // it.
        log.disk.plan_syncs([FAIL]);
        log.disk.plan_writes([Fault::Pass, FAIL]);
        let refused: Vec<_> = (6..=8).map(|number| log.append(number)).collect();
        let mut unacknowledged = 0;
        for append in refused {
            unacknowledged += usize::from(append.await.is_err());
        }
        let unsynced = log.disk.unsynced_len();
        let disk = log.disk.clone();
        log.close();
        for kept in [0..cut, cut..usize::MAX] {
            disk.cut_power(&kept);
            let found = recover(&directory.0).unwrap();
            let written: Vec<u64> = (1..=8).collect();
            assert!(found.len() >= 8 - unacknowledged, "lost an acknowledged record at {kept:?}");
            assert_eq!(found, written[..found.len()], "at {kept:?}");
        }
        cut += 1;
        if cut > unsynced {
            return;
        }
    }
}

#[tokio::test]
async fn a_failed_sync_moves_the_batch_to_a_fresh_segment() {
    let directory = TestDirectory::new("sync");
    let log = TestLog::open(&directory.0, 4_096);
    log.append(1).await.unwrap();
    log.disk.plan_syncs([FAIL]);
    assert_eq!(log.append(2).await.unwrap().lsn, Lsn(2));
    assert_eq!(log.append(3).await.unwrap().lsn, Lsn(3));
    let disk = log.disk.clone();
    log.close();
    // In the suspect segment the record may or may not be there; both must read the same.
    for kept in [0..usize::MAX, 0..0] {
        disk.cut_power(&kept);
        assert_eq!(recover(&directory.0).unwrap(), [1, 2, 3]);
    }
}

#[tokio::test]
async fn a_short_write_moves_the_batch_to_a_fresh_segment() {
    for kept in [1, 10, 30] {
        let directory = TestDirectory::new("short");
        let log = TestLog::open(&directory.0, 4_096);
        log.append(1).await.unwrap();
        log.disk.plan_writes([Fault::Fail { kind: ErrorKind::Other, kept }]);
        assert_eq!(log.append(2).await.unwrap().lsn, Lsn(2));
        log.close();
        assert_eq!(recover(&directory.0).unwrap(), [1, 2]);
    }
}

#[tokio::test]
async fn a_full_disk_refuses_until_there_is_room_and_leaves_no_gap() {
    let directory = TestDirectory::new("full");
    let log = TestLog::open(&directory.0, 4_096);
    let before = log.queue.epoch();
    log.append(1).await.unwrap();
    log.disk.set_broken(Some(ErrorKind::StorageFull));
    assert_eq!(log.append(2).await, Err(AppendError::DiskFull));
    assert_eq!(log.append(2).await, Err(AppendError::DiskFull));
    assert_eq!(log.queue.ready().await, Err(AppendError::DiskFull));

    log.disk.set_broken(None);
    reopened(&log.queue).await;
    let current = log.queue.epoch();
    assert_eq!(
        log.append_under(before, 3).await,
        Err(AppendError::StaleEpoch { given: before, current })
    );
    assert_eq!(log.append(2).await.unwrap().lsn, Lsn(2));
    log.close();
    assert_eq!(recover(&directory.0).unwrap(), [1, 2]);
}

#[tokio::test]
async fn a_failed_append_ends_the_epoch_of_its_own_stream_only() {
    let directory = TestDirectory::new("fence");
    let log = TestLog::open(&directory.0, 4_096);
    let before = log.queue.epoch();
    let stream = |number| Stream::Room(RoomId::from_u64(number));
    let append = |epoch, room, number| {
        log.queue.append(Some(epoch), record(number).encode(), [Some(stream(room)), None])
    };
    append(before, 1, 1).await.unwrap();
    append(before, 2, 2).await.unwrap();
    log.disk.set_broken(Some(ErrorKind::StorageFull));
    assert_eq!(append(before, 1, 3).await, Err(AppendError::DiskFull));
    assert_eq!(log.queue.admits(before, stream(2)), Err(AppendError::DiskFull));
    log.disk.set_broken(None);
    reopened(&log.queue).await;
    let current = log.queue.epoch();
    let stale = AppendError::StaleEpoch { given: before, current };
    assert_eq!(append(before, 1, 3).await, Err(stale.clone()));
    assert_eq!(log.queue.admits(before, stream(1)), Err(stale));
    assert_eq!(log.queue.admits(before, stream(2)), Ok(()));
    append(before, 2, 4).await.unwrap();
    append(current, 1, 5).await.unwrap();
    log.close();
    assert_eq!(recover(&directory.0).unwrap(), [1, 2, 4, 5]);
}

#[tokio::test]
async fn a_log_opens_on_a_full_disk_and_writes_once_there_is_room() {
    let directory = TestDirectory::new("opens-full");
    let disk = FaultyDisk::default();
    disk.set_broken(Some(ErrorKind::StorageFull));
    let log = TestLog::open_on(disk, &directory.0, 4_096);
    assert!(log.append(1).await.is_err());
    log.disk.set_broken(None);
    reopened(&log.queue).await;
    log.append(1).await.unwrap();
    log.close();
    assert_eq!(recover(&directory.0).unwrap(), [1]);
}

#[tokio::test]
async fn a_barrier_covers_appends_that_failed() {
    let directory = TestDirectory::new("barrier");
    let disk = FaultyDisk::default();
    let progress = Arc::new(Progress::new(Lsn(0)));
    let recovered = Segments::recover(&directory.0, Lsn(0)).unwrap();
    let limits = QueueLimits { queued_bytes_max: 1 << 20, backlog_bytes_max: 1 << 30 };
    let queue = Arc::new(Queue::new(Arc::clone(&progress), limits));
    let writer = LogWriter::start(LogWriterStart {
        disk: Arc::new(disk.clone()),
        segments: Arc::new(recovered.segments),
        queue: Arc::clone(&queue),
        progress: Arc::clone(&progress),
        segment_len: 4_096,
        probe_pause: Duration::from_millis(1),
        next_number: 1,
        last_lsn: Lsn(0),
    })
    .unwrap();
    let thread = std::thread::spawn(move || writer.run());
    disk.set_broken(Some(ErrorKind::StorageFull));
    let failed = queue.append(Some(queue.epoch()), record(1).encode(), [None, None]);
    let barrier = progress.barrier(&[]);
    assert_eq!(failed.await, Err(AppendError::DiskFull));
    // The mover finds nothing to read, and says that it has come as far as the log.
    progress.applied(Lsn(0));
    barrier.await.unwrap();
    queue.close();
    thread.join().unwrap();
}

#[tokio::test]
async fn limits_are_named_and_a_closed_log_refuses() {
    let directory = TestDirectory::new("limits");
    let log = TestLog::open(&directory.0, 4_096);
    let limit = super::super::segment::PAYLOAD_LEN_MAX;
    let oversized = log.queue.append(None, vec![1; limit + 1], [None, None]);
    assert_eq!(oversized.await, Err(AppendError::TooLarge { bytes: limit + 1, limit }));
    log.queue.close();
    assert_eq!(log.append(1).await, Err(AppendError::ShuttingDown));
    assert_eq!(log.queue.ready().await, Err(AppendError::ShuttingDown));
    log.close();
}

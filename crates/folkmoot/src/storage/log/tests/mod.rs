//! The log on a disk that fails: what was acknowledged is there, and nothing that was never
//! written.

mod faults;
mod histories;
mod reading;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::disk::faulty::FaultyDisk;
use super::queue::{Append, Queue, QueueLimits};
use super::segments::{Recovered, Segments};
use super::tail_reader::TailReader;
use super::writer::{LogWriter, LogWriterStart};
use crate::storage::error::OpenError;
use crate::storage::ids::{DeviceId, Lsn, UnixMillis, WriteEpoch};
use crate::storage::progress::Progress;
use crate::storage::record::Record;

/// A directory that goes away with its test.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("folkmoot-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A log without a mover behind it.
struct TestLog {
    disk: FaultyDisk,
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl TestLog {
    /// Opens the log of a directory, as a store does.
    fn open(directory: &Path, segment_len: u64) -> Self {
        Self::open_on(FaultyDisk::default(), directory, segment_len)
    }

    fn open_on(disk: FaultyDisk, directory: &Path, segment_len: u64) -> Self {
        let recovered = Segments::recover(directory, Lsn(0)).unwrap();
        let progress = Arc::new(Progress::new(recovered.last_lsn));
        let limits = QueueLimits { queued_bytes_max: 1 << 20, backlog_bytes_max: 1 << 30 };
        let queue = Arc::new(Queue::new(Arc::clone(&progress), limits));
        let writer = LogWriter::start(LogWriterStart {
            disk: Arc::new(disk.clone()),
            segments: Arc::new(recovered.segments),
            queue: Arc::clone(&queue),
            progress,
            segment_len,
            probe_pause: Duration::from_millis(1),
            next_number: recovered.next_number,
            last_lsn: recovered.last_lsn,
        })
        .unwrap();
        Self { disk, queue, thread: std::thread::spawn(move || writer.run()) }
    }

    fn append_under(&self, epoch: WriteEpoch, number: u64) -> Append {
        self.queue.append(Some(epoch), record(number).encode(), [None, None])
    }

    fn append(&self, number: u64) -> Append {
        self.append_under(self.queue.epoch(), number)
    }

    fn close(self) {
        self.queue.close();
        self.thread.join().unwrap();
    }
}

/// A record that can be told from others.
fn record(number: u64) -> Record {
    Record::DeviceSeen { device: DeviceId::from_u64(number), at: UnixMillis::from_u64(number) }
}

/// What a start finds in the log, as the numbers of its records.
fn recover(directory: &Path) -> Result<Vec<u64>, OpenError> {
    let Recovered { segments, last_lsn, .. } = Segments::recover(directory, Lsn(0))?;
    let mut reader = TailReader::new(Arc::new(segments), Lsn(0));
    let mut numbers = Vec::new();
    loop {
        let records = reader.read(last_lsn, 1_000).unwrap();
        if records.is_empty() {
            return Ok(numbers);
        }
        for (lsn, record) in records {
            let Record::DeviceSeen { device, .. } = record else {
                panic!("a record that was never written: {record:?}");
            };
            assert_eq!(lsn.0, numbers.len() as u64 + 1);
            numbers.push(device.as_u64());
        }
    }
}

//! The way from the owner of channels to a node with subscribers: news wait here for their turn, so
//! that a node that is slow holds up neither the owner nor the other nodes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use althing::{ActorRef, SendError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Bulletin, News};
use crate::nodes::{Nodes, Site, SiteCalls, node_of};
use crate::payload::Payload;

/// News that wait for one node. One that is further behind is asked where it is once it has read
/// them. In tests of this crate a node is soon that far behind.
const WAITING_LEN_MAX: usize = if cfg!(test) { 256 } else { 65_536 };
/// And their bytes: as much as two of the longest publications have. Each owner has a way to the node.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// News in one message.
const BULLETIN_LEN: usize = 1_024;
/// Bytes of one message, and the news that exceed them: a frame between nodes has to hold it, and
/// what is longer than that is lost.
const BULLETIN_BYTES: usize = 1 << 20;
/// How long a node may take to read what was told before its owner ends.
const LAST_WORD_TIMEOUT: Duration = Duration::from_secs(5);

/// The way to one node.
#[derive(Debug)]
pub(super) struct Road {
    pub(super) site: ActorRef<Site>,
    news: mpsc::UnboundedSender<Vec<Counted>>,
    waiting: Arc<Waiting>,
    driver: JoinHandle<()>,
}

/// How much waits for the node.
#[derive(Debug, Default)]
struct Waiting {
    len: AtomicUsize,
    bytes: AtomicUsize,
}

/// News with the bytes that they hold. Neighbours that share a payload hold it once.
#[derive(Debug)]
struct Counted {
    news: News,
    bytes: usize,
}

/// Counts the bytes of news in their order.
#[derive(Default)]
struct Tally {
    bytes: usize,
    last: Option<*const Payload>,
}

/// Too much waits for the node.
#[derive(Debug)]
pub(super) struct Behind;

impl Road {
    /// To a node, from one life of an owner.
    pub(super) fn open(nodes: Arc<Nodes>, site: ActorRef<Site>, (shard, life): (u32, u64)) -> Self {
        let (news, coming) = mpsc::unbounded_channel();
        let waiting = Arc::<Waiting>::default();
        let drive = Drive { nodes, site: site.clone(), shard, life, waiting: waiting.clone() };
        let driver = tokio::spawn(drive.run(coming));
        Self { site, news, waiting, driver }
    }

    pub(super) fn send(&self, news: Vec<News>) -> Result<(), Behind> {
        let news = counted(news);
        if !self.waiting.take(&news) {
            return Err(Behind);
        }
        self.news.send(news).map_err(|_| Behind)
    }

    /// Nothing more is sent; resolves when the node has read the last, or is gone.
    pub(super) async fn end(self) {
        let Self { news, driver, .. } = self;
        drop(news);
        // A panic of it is told already.
        let _ = driver.await;
    }
}

impl Waiting {
    /// Takes what one turn has, however much it is; `false`: too much was waiting before.
    fn take(&self, news: &[Counted]) -> bool {
        let len = self.len.fetch_add(news.len(), Ordering::Relaxed);
        let bytes = self.bytes.fetch_add(held(news), Ordering::Relaxed);
        len <= WAITING_LEN_MAX && bytes <= WAITING_BYTES_MAX
    }

    fn give(&self, len: usize, bytes: usize) {
        self.len.fetch_sub(len, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Tally {
    fn add(&mut self, news: &News) {
        self.bytes += news.encoded_len();
        if let Some(payload) = news.what.payload()
            && self.last != Some(Arc::as_ptr(payload))
        {
            self.bytes += payload.encoded_len();
            self.last = Some(Arc::as_ptr(payload));
        }
    }
}

fn counted(news: Vec<News>) -> Vec<Counted> {
    let mut tally = Tally::default();
    let count = |news: News| {
        let before = tally.bytes;
        tally.add(&news);
        Counted { news, bytes: tally.bytes - before }
    };
    news.into_iter().map(count).collect()
}

fn held(news: &[Counted]) -> usize {
    news.iter().map(|one| one.bytes).sum()
}

struct Drive {
    nodes: Arc<Nodes>,
    site: ActorRef<Site>,
    shard: u32,
    life: u64,
    waiting: Arc<Waiting>,
}

impl Drive {
    async fn run(self, mut coming: mpsc::UnboundedReceiver<Vec<Counted>>) {
        let mut waiting = VecDeque::new();
        while let Some(news) = coming.recv().await {
            waiting.extend(news);
            while !waiting.is_empty() {
                while waiting.len() < BULLETIN_LEN {
                    let Ok(more) = coming.try_recv() else { break };
                    waiting.extend(more);
                }
                let news = take_bulletin(&mut waiting);
                let (len, bytes) = (news.len(), held(&news));
                if !self.tell(news.into_iter().map(|one| one.news).collect()).await {
                    return;
                }
                self.waiting.give(len, bytes);
            }
        }
        if self.nodes.has(node_of(&self.site)) {
            // What was told before has been read when this is answered.
            let _ = self.site.last_word(self.shard).timeout(LAST_WORD_TIMEOUT).await;
        }
    }

    /// `false`: the node is gone.
    async fn tell(&self, news: Vec<News>) -> bool {
        let mut news = Bulletin(news);
        loop {
            match self.site.hear(self.shard, self.life, news).tell().await {
                Ok(()) => return true,
                Err(SendError::Timeout(message) | SendError::Full(message))
                    if self.nodes.has(node_of(&self.site)) =>
                {
                    news = message.news;
                }
                Err(_) => return false,
            }
        }
    }
}

/// The first of what waits, as far as it fits into a message. There, too, neighbours that share a
/// payload have it once.
fn take_bulletin(waiting: &mut VecDeque<Counted>) -> Vec<Counted> {
    let (mut news, mut tally) = (Vec::new(), Tally::default());
    while tally.bytes < BULLETIN_BYTES && news.len() < BULLETIN_LEN {
        let Some(next) = waiting.pop_front() else { break };
        tally.add(&next.news);
        news.push(next);
    }
    news
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use folkmoot_protocol::frame::ClientInfo;

    use super::super::{Heard, What};
    use super::*;

    fn published(payload: &Arc<Payload>) -> News {
        let heard = Heard { payload: payload.clone(), offset: 1, may_be_delta: false };
        News { channel: "c".into(), what: What::Published(heard) }
    }

    fn payload(len: usize) -> Arc<Payload> {
        Arc::new(Payload { data: Bytes::from(vec![b'7'; len]), ..Payload::default() })
    }

    /// How many are in each message.
    fn lengths(news: impl Iterator<Item = News>) -> Vec<usize> {
        let mut waiting = VecDeque::from(counted(news.collect()));
        let bulletins = std::iter::from_fn(|| Some(take_bulletin(&mut waiting).len()));
        bulletins.take_while(|len| *len > 0).collect()
    }

    #[test]
    fn what_waits_for_a_node_is_bounded_in_number_and_in_bytes() {
        for (len, most) in [(WAITING_BYTES_MAX / 2, 3), (1, WAITING_LEN_MAX + 2)] {
            let waiting = Waiting::default();
            let news = counted(vec![published(&payload(len))]);
            let mut taken = 0;
            while waiting.take(&news) {
                taken += 1;
                assert!(taken <= most, "{taken} of {len} bytes wait");
            }
            // The last one was refused, and counts all the same: nothing more is sent.
            waiting.give(taken + 1, (taken + 1) * held(&news));
            assert!(waiting.take(&news), "what was told waits no more");
        }
    }

    #[test]
    fn tags_and_who_comes_count_in_a_message_as_data_do() {
        let third = BULLETIN_BYTES / 3;
        let tagged = || {
            let tags = BTreeMap::from([("tag".to_owned(), "x".repeat(third))]);
            published(&Arc::new(Payload { tags, ..Payload::default() }))
        };
        let came = || {
            let info = ClientInfo { conn_info: vec![b'7'; third].into(), ..ClientInfo::default() };
            News { channel: "c".into(), what: What::Came(info) }
        };
        assert_eq!(lengths((0..3).flat_map(|_| [tagged(), came()])), [3, 3]);
    }

    #[test]
    fn a_message_has_a_bound_of_bytes_and_what_is_shared_counts_once() {
        let third = BULLETIN_BYTES / 3;
        assert_eq!(lengths((0..10).map(|_| published(&payload(third + 1)))), [3, 3, 3, 1]);
        let shared = payload(third);
        let all = (0..2_000).map(|_| published(&shared));
        assert_eq!(lengths(all), [BULLETIN_LEN, 2_000 - BULLETIN_LEN]);
        assert_eq!(lengths((0..2).map(|_| published(&payload(9 * third)))), [1, 1]);
    }
}

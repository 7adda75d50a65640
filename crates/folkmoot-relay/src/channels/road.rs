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

/// News that wait for one node. One that is further behind is asked where it is once it has read
/// them. In tests of this crate a node is soon that far behind.
const WAITING_LEN_MAX: usize = if cfg!(test) { 256 } else { 65_536 };
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
    news: mpsc::UnboundedSender<Vec<News>>,
    waiting: Arc<AtomicUsize>,
    driver: JoinHandle<()>,
}

/// Too much waits for the node.
#[derive(Debug)]
pub(super) struct Behind;

impl Road {
    /// To a node, from one life of an owner.
    pub(super) fn open(nodes: Arc<Nodes>, site: ActorRef<Site>, (shard, life): (u32, u64)) -> Self {
        let (news, coming) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let drive = Drive { nodes, site: site.clone(), shard, life, waiting: waiting.clone() };
        let driver = tokio::spawn(drive.run(coming));
        Self { site, news, waiting, driver }
    }

    pub(super) fn send(&self, news: Vec<News>) -> Result<(), Behind> {
        let len = news.len();
        // What one turn has is taken if nothing else waits, however much it is.
        if self.waiting.fetch_add(len, Ordering::Relaxed) > WAITING_LEN_MAX {
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

struct Drive {
    nodes: Arc<Nodes>,
    site: ActorRef<Site>,
    shard: u32,
    life: u64,
    waiting: Arc<AtomicUsize>,
}

impl Drive {
    async fn run(self, mut coming: mpsc::UnboundedReceiver<Vec<News>>) {
        let mut waiting = VecDeque::new();
        while let Some(news) = coming.recv().await {
            waiting.extend(news);
            while !waiting.is_empty() {
                while waiting.len() < BULLETIN_LEN {
                    let Ok(more) = coming.try_recv() else { break };
                    waiting.extend(more);
                }
                let news = take_bulletin(&mut waiting);
                let len = news.len();
                if !self.tell(news).await {
                    return;
                }
                self.waiting.fetch_sub(len, Ordering::Relaxed);
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

/// The first of what waits, as far as it fits into a message. Neighbours that share a payload have
/// it once.
fn take_bulletin(waiting: &mut VecDeque<News>) -> Vec<News> {
    let (mut news, mut bytes, mut last) = (Vec::new(), 0, None);
    while bytes < BULLETIN_BYTES && news.len() < BULLETIN_LEN {
        let Some(next) = waiting.pop_front() else { break };
        bytes += next.encoded_len();
        if let Some(payload) = next.what.payload()
            && last != Some(Arc::as_ptr(payload))
        {
            bytes += payload.encoded_len();
            last = Some(Arc::as_ptr(payload));
        }
        news.push(next);
    }
    news
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use std::collections::BTreeMap;

    use folkmoot_protocol::frame::ClientInfo;

    use super::super::{Heard, What};
    use super::*;
    use crate::payload::Payload;

    fn published(payload: &Arc<Payload>) -> News {
        let heard = Heard { payload: payload.clone(), offset: 1, may_be_delta: false };
        News { channel: "c".into(), what: What::Published(heard) }
    }

    fn payload(len: usize) -> Arc<Payload> {
        Arc::new(Payload { data: Bytes::from(vec![b'7'; len]), ..Payload::default() })
    }

    fn lengths(waiting: &mut VecDeque<News>) -> Vec<usize> {
        std::iter::from_fn(|| Some(take_bulletin(waiting).len()).filter(|len| *len > 0)).collect()
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
        let mut all: VecDeque<_> = (0..3).flat_map(|_| [tagged(), came()]).collect();
        assert_eq!(lengths(&mut all), [3, 3]);
    }

    #[test]
    fn a_message_has_a_bound_of_bytes_and_what_is_shared_counts_once() {
        let third = BULLETIN_BYTES / 3;
        let mut each: VecDeque<_> = (0..10).map(|_| published(&payload(third + 1))).collect();
        assert_eq!(lengths(&mut each), [3, 3, 3, 1]);
        let shared = payload(third);
        let mut all: VecDeque<_> = (0..2_000).map(|_| published(&shared)).collect();
        assert_eq!(lengths(&mut all), [BULLETIN_LEN, 2_000 - BULLETIN_LEN]);
        let mut long: VecDeque<_> = (0..2).map(|_| published(&payload(9 * third))).collect();
        assert_eq!(lengths(&mut long), [1, 1]);
    }
}

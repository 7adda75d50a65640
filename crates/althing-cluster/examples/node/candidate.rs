//! This process as a candidate for being the authority.

use std::io::{self, BufRead};
use std::net::SocketAddr;

use althing_cluster::{Authority, AuthorityConfig, RecordStore};

use crate::{Options, say};

/// Makes it one, and says when it leads.
pub(crate) fn start(options: &Options, listen: SocketAddr) -> io::Result<Authority> {
    let config = AuthorityConfig::new("example", store(options)?, options.tls());
    let authority = Authority::serve(config.listen(listen).lease(options.lease))?;
    say("-", &format!("candidate {}", authority.address()));
    let mut leading = authority.is_leading();
    tokio::spawn(async move {
        leading.mark_changed();
        while leading.changed().await.is_ok() {
            let leads = *leading.borrow_and_update();
            say("-", if leads { "leads" } else { "follows" });
        }
    });
    Ok(authority)
}

fn store(options: &Options) -> io::Result<RecordStore> {
    match &options.store {
        None => Ok(RecordStore::directory(options.data.join("authority"))),
        Some(url) => match url.strip_prefix("etcd://") {
            Some(hosts) => RecordStore::etcd(hosts.split(',')),
            None => RecordStore::postgres(url),
        },
    }
}

pub(crate) async fn wait_for_the_end_of_input() {
    let ended = tokio::task::spawn_blocking(|| {
        io::stdin().lock().lines().map_while(Result::ok).for_each(drop);
    });
    _ = ended.await;
}

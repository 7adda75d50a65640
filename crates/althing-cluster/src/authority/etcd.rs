//! The store in etcd (3.4 or later): keys for the record, its number and the lead below
//! `althing/<cluster>/`.
//!
//! The lead is a key with a lease of etcd's, so it goes by itself; its term is the revision that
//! made it. Each step is one transaction. It is spoken to by `gateway`, the JSON that every etcd
//! serves beside gRPC.

mod gateway;

use std::future::Future;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::timeout;

pub(crate) use self::gateway::EtcdError;
use self::gateway::{Gateway, bytes_of, number_of, text_of};
use super::storage::{Claimant, Lead, Op, Replaced, Storage, StorageError, opened, sealed};
use crate::record::Record;

/// Where etcd is, and who asks.
#[derive(Clone)]
pub(crate) struct Endpoints {
    /// Hosts with ports; one that does not answer makes way for the next.
    pub(crate) hosts: Vec<String>,
    pub(crate) credentials: Option<(String, String)>,
}

/// The cluster's keys.
pub(crate) struct Etcd {
    gateway: Gateway,
    cluster: String,
    patience: Duration,
    /// Of the lead that this process has, or had.
    lease: Mutex<Option<i64>>,
}

/// The key of the lead, as it was read.
struct Taken {
    leader: Claimant,
    term: u64,
    lease: i64,
}

impl Etcd {
    /// Connects when it is first asked for something.
    pub(crate) fn new(endpoints: Endpoints, cluster: &str, patience: Duration) -> Self {
        let gateway = Gateway::new(endpoints);
        Self { gateway, cluster: cluster.to_owned(), patience, lease: Mutex::default() }
    }

    fn key(&self, name: &str) -> String {
        text_of(format!("althing/{}/{name}", self.cluster).as_bytes())
    }

    /// Ends in time; a server that was silent is not asked again before the others were.
    async fn run<T>(
        &self,
        operation: impl Future<Output = Result<T, StorageError>> + Send,
    ) -> Result<T, StorageError> {
        let ended = match timeout(self.patience, operation).await {
            Ok(ended) => ended,
            Err(_) => Err(StorageError::Silent(self.patience)),
        };
        if ended.is_err() {
            self.gateway.turn_away();
        }
        ended
    }

    async fn claim_now(&self, me: &Claimant, lead_for: Duration) -> Result<Lead, StorageError> {
        let kept = *self.lease.lock();
        if let Some(lease) = kept {
            let kept =
                self.gateway.call("lease/keepalive", &json!({"ID": lease.to_string()})).await?;
            if number_of(&kept["result"]["TTL"])? <= 0 {
                *self.lease.lock() = None;
            }
        }
        if let Some(taken) = self.taken().await? {
            // It may be ours though we have not heard so.
            let is_new = taken.leader.id == me.id && self.lease.lock().is_none();
            if is_new {
                self.gateway
                    .call("lease/keepalive", &json!({"ID": taken.lease.to_string()}))
                    .await?;
                *self.lease.lock() = Some(taken.lease);
            }
            return Ok(taken.into_lead());
        }
        // Of a lead that has gone by, or that was never taken.
        let kept = *self.lease.lock();
        let lease = if let Some(lease) = kept { lease } else { self.grant(lead_for).await? };
        *self.lease.lock() = Some(lease);
        let key = self.key("lead");
        let value = text_of(format!("{:016x} {}", me.id, me.address).as_bytes());
        let put = json!({"requestPut": {"key": key, "value": value, "lease": lease.to_string()}});
        let is_free =
            json!({"key": key, "target": "CREATE", "result": "EQUAL", "createRevision": "0"});
        self.gateway.call("kv/txn", &json!({"compare": [is_free], "success": [put]})).await?;
        match self.taken().await? {
            Some(taken) => Ok(taken.into_lead()),
            None => Err(EtcdError::Unreadable("the key of the lead has gone at once").into()),
        }
    }

    async fn grant(&self, lead_for: Duration) -> Result<i64, StorageError> {
        // etcd counts whole seconds, and gives no less than its own elections take.
        let seconds = lead_for.as_secs() + u64::from(lead_for.subsec_nanos() > 0);
        let granted =
            self.gateway.call("lease/grant", &json!({"TTL": seconds.to_string()})).await?;
        Ok(number_of(&granted["ID"])?)
    }

    async fn taken(&self) -> Result<Option<Taken>, StorageError> {
        let read = self.gateway.call("kv/range", &json!({"key": self.key("lead")})).await?;
        let found = &read["kvs"][0];
        if found.is_null() {
            return Ok(None);
        }
        let value = String::from_utf8(bytes_of(&found["value"])?).ok();
        let parts = value.as_deref().and_then(|value| value.split_once(' '));
        let parts = parts.and_then(|(id, at)| Some((u64::from_str_radix(id, 16).ok()?, at)));
        let (id, at) = parts.ok_or(EtcdError::Unreadable("the key of the lead is no lead"))?;
        let leader = Claimant { id, address: at.to_owned() };
        let term = number_of(&found["create_revision"])?.cast_unsigned();
        Ok(Some(Taken { leader, term, lease: number_of(&found["lease"])? }))
    }

    async fn load_now(&self) -> Result<Record, StorageError> {
        let read = self.gateway.call("kv/range", &json!({"key": self.key("record")})).await?;
        match &read["kvs"][0] {
            Value::Null => Ok(Record::empty()),
            found => opened(&bytes_of(&found["value"])?),
        }
    }

    async fn replace_now(&self, expected: u64, record: &Record) -> Result<Replaced, StorageError> {
        let (number, key) = (self.key("writes"), self.key("record"));
        let is_expected = if expected == 0 {
            json!({"key": number, "target": "CREATE", "result": "EQUAL", "createRevision": "0"})
        } else {
            let value = text_of(expected.to_string().as_bytes());
            json!({"key": number, "target": "VALUE", "result": "EQUAL", "value": value})
        };
        let put =
            |key: &str, value: &[u8]| json!({"requestPut": {"key": key, "value": text_of(value)}});
        let puts = [put(&number, record.writes.to_string().as_bytes()), put(&key, &sealed(record))];
        let transaction = json!({"compare": [is_expected], "success": puts});
        let ended = self.gateway.call("kv/txn", &transaction).await?;
        Ok(if ended["succeeded"] == json!(true) { Replaced::Done } else { Replaced::Refused })
    }

    async fn resign_now(&self, me: &Claimant) -> Result<(), StorageError> {
        if let Some(taken) = self.taken().await?.filter(|taken| taken.leader.id == me.id) {
            // With its lease the key goes.
            self.gateway.call("lease/revoke", &json!({"ID": taken.lease.to_string()})).await?;
            *self.lease.lock() = None;
        }
        Ok(())
    }
}

impl Taken {
    fn into_lead(self) -> Lead {
        Lead { leader: self.leader, term: self.term }
    }
}

impl Storage for Etcd {
    fn claim<'a>(&'a self, me: &'a Claimant, lead_for: Duration) -> Op<'a, Lead> {
        Box::pin(self.run(self.claim_now(me, lead_for)))
    }

    fn resign<'a>(&'a self, me: &'a Claimant) -> Op<'a, ()> {
        Box::pin(self.run(self.resign_now(me)))
    }

    fn load(&self) -> Op<'_, Record> {
        Box::pin(self.run(self.load_now()))
    }

    fn replace<'a>(&'a self, expected: u64, record: &'a Record) -> Op<'a, Replaced> {
        Box::pin(self.run(self.replace_now(expected, record)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use althing_testkit::servers::EtcdServer;
    use serde_json::json;

    use super::{Endpoints, Etcd};
    use crate::authority::conformance;
    use crate::authority::storage::{Claimant, Replaced, Storage};
    use crate::record::Record;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn open(hosts: Vec<String>, cluster: &str, patience: Duration) -> Etcd {
        Etcd::new(Endpoints { hosts, credentials: None }, cluster, patience)
    }

    #[tokio::test]
    async fn etcd_keeps_every_promise() {
        let server = EtcdServer::start();
        conformance::run(|cluster| {
            Some(Arc::new(open(vec![server.host()], cluster, PATIENCE)) as Arc<dyn Storage>)
        })
        .await;
    }

    #[tokio::test]
    async fn a_server_that_hangs_is_an_error_and_one_that_comes_back_has_what_it_acknowledged() {
        let mut server = EtcdServer::start();
        let store = open(vec![server.host()], "one", Duration::from_millis(500));
        let record = Record { writes: 1, ..Record::empty() };
        assert_eq!(store.replace(0, &record).await.expect("it answers"), Replaced::Done);
        server.pause();
        let me = Claimant { id: 1, address: String::new() };
        let silent = store.claim(&me, PATIENCE).await.expect_err("it hangs");
        assert!(silent.to_string().contains("did not answer"), "{silent}");
        server.resume();
        server.start_again();
        let store = open(vec![server.host()], "one", PATIENCE);
        assert_eq!(store.load().await.expect("it is back"), record);
    }

    #[tokio::test]
    async fn a_host_that_does_not_answer_makes_way_for_the_next() {
        let server = EtcdServer::start();
        // Nobody listens at the port of a listener that is gone.
        let gone = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let nobody = gone.local_addr().expect("it is bound").to_string();
        drop(gone);
        let store = open(vec![nobody, server.host()], "one", PATIENCE);
        assert!(store.load().await.is_err(), "nobody is there");
        assert_eq!(store.load().await.expect("the other is"), Record::empty());
    }

    #[tokio::test]
    async fn an_etcd_that_asks_for_a_password_is_given_it() {
        let server = EtcdServer::start();
        let stranger = open(vec![server.host()], "one", PATIENCE);
        let set = async |path: &str, body| {
            stranger.gateway.call(path, &body).await.expect("nobody is asked yet");
        };
        set("auth/user/add", json!({"name": "root", "password": "secret"})).await;
        set("auth/role/add", json!({"name": "root"})).await;
        set("auth/user/grant", json!({"user": "root", "role": "root"})).await;
        set("auth/enable", json!({})).await;
        assert!(stranger.load().await.is_err(), "it is asked now");
        let known = |password: &str| {
            let credentials = Some(("root".to_owned(), password.to_owned()));
            Etcd::new(Endpoints { hosts: vec![server.host()], credentials }, "one", PATIENCE)
        };
        assert!(known("guessed").load().await.is_err(), "it is another one");
        let store = known("secret");
        let record = Record { writes: 1, ..Record::empty() };
        assert_eq!(store.replace(0, &record).await.expect("it answers"), Replaced::Done);
        let me = Claimant { id: 1, address: String::new() };
        assert_eq!(store.claim(&me, PATIENCE).await.expect("it answers").leader, me);
        store.resign(&me).await.expect("it answers");
    }
}

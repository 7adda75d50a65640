//! Carries out a plan: each fault as a task, from its time on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::clock::now;
use crate::cluster::Cluster;
use crate::links::{ETCD, End, Mode};
use crate::plan::{Fault, NODES, Planned};

/// What a slow link adds to each packet.
const SLOW_BY: Duration = Duration::from_millis(60);

/// Half of one round of a link that flaps.
const FLAP_EVERY: Duration = Duration::from_millis(150);

/// One round of a link that trickles: so long a few bytes pass at a time, so long none, so long
/// connections end, and so long all is well.
const TRICKLE: [(Mode, Duration); 4] = [
    (Mode::Trickling, Duration::from_millis(250)),
    (Mode::Stopped, Duration::from_millis(50)),
    (Mode::Cut, Duration::from_millis(50)),
    (Mode::Open, Duration::from_millis(100)),
];

/// How often it is looked whether a node that leaves has left.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How many faults of each kind were injected, and how long they lasted together.
pub(crate) type Injected = BTreeMap<&'static str, (u64, Duration)>;

/// Injects all faults of the plan; returns when the last one has ended.
pub(crate) async fn inject(cluster: &Arc<Cluster>, plan: Vec<Planned>) -> Injected {
    let began = Instant::now();
    let mut injected = Injected::new();
    let mut tasks = JoinSet::new();
    for planned in plan {
        sleep_until(began + planned.at).await;
        println!(
            "{:7.1} s  {:?} for {:.1?}",
            planned.at.as_secs_f64(),
            planned.fault,
            planned.lasts
        );
        let of_kind = injected.entry(planned.fault.kind()).or_default();
        *of_kind = (of_kind.0 + 1, of_kind.1 + planned.lasts);
        let cluster = cluster.clone();
        tasks.spawn(async move {
            let from = now();
            carry_out(&cluster, planned).await;
            cluster.write_down_fault(planned.fault.ends(), from);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no fault fails");
    }
    injected
}

async fn carry_out(cluster: &Arc<Cluster>, Planned { fault, lasts, .. }: Planned) {
    match fault {
        Fault::Kill(node) => {
            cluster.kill(node);
            sleep(lasts).await;
            cluster.let_begin(node);
        }
        Fault::Leave(node) => {
            cluster.have_leave(node);
            while !cluster.is_down(node) {
                sleep(LOOK_EVERY).await;
            }
            sleep(lasts).await;
            cluster.let_begin(node);
        }
        Fault::Stop(node) => {
            cluster.stop(node);
            sleep(lasts).await;
            cluster.go_on(node);
        }
        Fault::Isolate(node) => {
            let others = || (0..=ETCD).filter(|end| *end != node);
            others().for_each(|other| both(cluster, node, other, Mode::Stopped));
            sleep(lasts).await;
            others().for_each(|other| both(cluster, node, other, Mode::Open));
        }
        Fault::Cut(one, other) => during(cluster, one, other, Mode::Cut, lasts).await,
        Fault::Silence(one, other) => during(cluster, one, other, Mode::Stopped, lasts).await,
        Fault::Slow(one, other) => during(cluster, one, other, Mode::Slow(SLOW_BY), lasts).await,
        Fault::OneWay(from, to) => {
            cluster.links.set(from, to, Mode::Stopped);
            sleep(lasts).await;
            cluster.links.set(from, to, Mode::Open);
        }
        Fault::Flap(one, other) => {
            let until = Instant::now() + lasts;
            while Instant::now() < until {
                during(cluster, one, other, Mode::Cut, FLAP_EVERY).await;
                // So that each cut meets what is on its way, and what has arrived unacknowledged.
                during(cluster, one, other, Mode::Slow(SLOW_BY), FLAP_EVERY).await;
            }
        }
        Fault::Trickle(one, other) => {
            let until = Instant::now() + lasts;
            while Instant::now() < until {
                for (mode, time) in TRICKLE {
                    both(cluster, one, other, mode);
                    sleep(time).await;
                }
            }
        }
        Fault::EtcdKill => {
            let of_task = cluster.clone();
            let killed = tokio::task::spawn_blocking(move || of_task.etcd.lock().kill());
            killed.await.expect("it is ended");
            sleep(lasts).await;
            let of_task = cluster.clone();
            let begun = tokio::task::spawn_blocking(move || of_task.etcd.lock().start_again());
            begun.await.expect("it starts again");
        }
    }
}

fn both(cluster: &Cluster, one: End, other: End, mode: Mode) {
    debug_assert!(one < NODES || other < NODES, "etcd has no way to itself");
    cluster.links.set(one, other, mode);
    cluster.links.set(other, one, mode);
}

async fn during(cluster: &Cluster, one: End, other: End, mode: Mode, lasts: Duration) {
    both(cluster, one, other, mode);
    sleep(lasts).await;
    both(cluster, one, other, Mode::Open);
}

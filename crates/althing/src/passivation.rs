//! Unloads idle actors and forgets addresses nobody holds, in one pass over the directory now and then.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::actor::StopReason;
use crate::actor_ref::request_stop;
use crate::cell::AnyCell;
use crate::mailbox::Phase;
use crate::node::NodeShared;

/// Pause between passes. An idle time is met within one pass and a second.
const PASS_EVERY: Duration = Duration::from_secs(1);

/// Starts the passes; they end with the node.
pub(crate) fn start(node: &Arc<NodeShared>) {
    let weak = Arc::downgrade(node);
    node.env.spawn(async move {
        while let Some(node) = weak.upgrade() {
            let pause = node.env.sleep(PASS_EVERY);
            drop(node);
            pause.await;
            let Some(node) = weak.upgrade() else { return };
            let now_s = node.tick_coarse();
            node.directory.for_each(|cell| unload_if_idle(cell, now_s));
            node.directory.sweep_unused();
        }
    });
}

fn unload_if_idle(cell: &Arc<dyn AnyCell>, now_s: u32) {
    let header = cell.header();
    let Some(idle) = header.kind.options.passivate_after else { return };
    let last_s = header.last_active_s.load(Ordering::Relaxed);
    if Duration::from_secs(u64::from(now_s.saturating_sub(last_s))) < idle {
        return;
    }
    let inner = header.mailbox.lock();
    let is_idle = inner.active && matches!(inner.phase, Phase::Idle) && inner.is_empty();
    drop(inner);
    if is_idle {
        request_stop(cell, StopReason::Passivated);
    }
}

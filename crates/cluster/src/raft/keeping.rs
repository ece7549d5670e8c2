//! What the log keeps: entries that no snapshot of this member covers, and for a while those that slow
//! members lack.

use std::io;
use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::type_config::TypeConfigExt;
use tidemark_log::{EntryEnd, Lsn};

use super::node::Node;
use super::types::{Cfg, LogId, from_log_id};

/// Pause between two looks at what snapshots cover.
const PAUSE: Duration = Duration::from_millis(500);
/// Pauses without a request after which a transfer to this member is over.
const IDLE_PAUSES: u32 = 1200;
/// Leases without an acknowledgement after which a member is not waited for.
const SILENT_LEASES: u32 = 8;

/// Tells the library of new snapshots, and lets the log drop entries that they cover, until the consensus
/// ends.
pub(super) async fn keep_house<C: Cfg>(node: Node<C>) {
    let (mut known, mut last_covered) = (None, (Lsn::ZERO, EntryEnd::default()));
    let mut idle = Idle::default();
    loop {
        C::sleep(PAUSE).await;
        if node.raft().metrics().borrow_watched().running_state.is_err() {
            return;
        }
        let kept = async {
            note_snapshots(&node, &mut known).await?;
            release(&node, &mut last_covered).await?;
            idle.look(&node).await
        };
        if let Err(error) = kept.await {
            // It is tried again: nothing but space depends on it.
            tracing::warn!(%error, "entries that snapshots cover are not released");
        }
    }
}

/// How long no other member has sent files of a snapshot.
#[derive(Debug, Default)]
struct Idle {
    requests: u64,
    pauses: u32,
}

impl Idle {
    /// Removes what has arrived of a snapshot, if nothing more arrives: this member got on without it.
    async fn look<C: Cfg>(&mut self, node: &Node<C>) -> io::Result<()> {
        let requests = node.arrivals().requests();
        if requests != self.requests {
            *self = Self { requests, pauses: 0 };
        }
        self.pauses = self.pauses.saturating_add(1);
        if self.pauses == IDLE_PAUSES && node.arrivals().are_idle() {
            tracing::warn!("a snapshot of another member is not sent on: what has arrived is removed");
            node.arrivals().forget(&node.driver).await?;
        }
        Ok(())
    }
}

fn known_snapshot<C: Cfg>(node: &Node<C>) -> Option<LogId> {
    node.raft().metrics().borrow_watched().snapshot
}

/// Tells the library of the newest snapshot, if one was completed since the last call.
async fn note_snapshots<C: Cfg>(node: &Node<C>, known: &mut Option<u64>) -> io::Result<()> {
    let taken = node.driver.member().snapshots_taken();
    if *known == Some(taken) {
        return Ok(());
    }
    if node.apply().find().await.meta.last_log_id > known_snapshot(node) {
        return node.raft().trigger().snapshot().await.map_err(io::Error::other);
    }
    *known = Some(taken);
    Ok(())
}

/// Has the library purge entries that this member does not need, and no other for now.
/// `found` is the last entry that the snapshots cover up to a record.
async fn release<C: Cfg>(node: &Node<C>, found: &mut (Lsn, EntryEnd)) -> io::Result<()> {
    let (covered, begins) = (node.driver.member().covered(), node.driver.beginning());
    let begins = begins.map_or(EntryEnd::default(), |beginning| beginning.end);
    if covered <= begins.last {
        return Ok(());
    }
    let (known, limit) = (*found, node.settings.kept_bytes);
    let look = node.driver.inspect(move |member| {
        let end = match known {
            (lsn, end) if lsn == covered => Some(end),
            _ => member.entry_before(covered).map_err(io::Error::other)?,
        };
        Ok::<_, io::Error>((end, member.bytes_behind(begins.last)? > limit))
    });
    let (Some(end), is_too_much) = look.await?? else { return Ok(()) };
    *found = (covered, end);
    let mut index = end.id.index.min(from_log_id(known_snapshot(node)).index);
    if !is_too_much {
        index = index.min(node.transfers().unneeded()).min(needed_by_others(node));
    }
    if index > begins.id.index {
        // By the library's count, which begins at 0.
        node.raft().trigger().purge_log(index - 1).await.map_err(io::Error::other)?;
    }
    Ok(())
}

/// Returns the last entry that all members have which this leader hears of; at a follower all have all.
fn needed_by_others<C: Cfg>(node: &Node<C>) -> u64 {
    let Some(term) = node.reign.role.leading() else { return u64::MAX };
    let since = node.now().saturating_sub(node.settings.lease() * SILENT_LEASES);
    let metrics = node.raft().metrics();
    let metrics = metrics.borrow_watched();
    let others = metrics.replication.iter().flatten();
    let heard = others.filter(|(id, _)| **id != node.me().0 && node.is_heard(**id, term, since));
    heard.map(|(_, matching)| from_log_id(*matching).index).min().unwrap_or(u64::MAX)
}

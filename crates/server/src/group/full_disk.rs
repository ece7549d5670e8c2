//! A leader whose log cannot grow gives the lead away to a member whose log can.
//!
//! It refuses changes, while another member could accept them. It asks the others whether their own disks
//! are well: a lead that goes from one full disk to the next helps no client. If none is, it stays: reads go
//! on, and changes are accepted when there is space.

use super::joining::ask;
use super::node::GroupNode;
use crate::observe::operator_line::say;
use std::time::{Duration, Instant};
use tidemark_cluster::{Consensus as _, Member, NodeId, Role};
use tidemark_log::Health;

/// How long the log must refuse changes: a full disk may have space again after the next snapshot.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long handing the lead over may take.
const TRANSFER_PATIENCE: Duration = Duration::from_secs(2);
/// Pause behind an attempt for which there was no member, or that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Watches the log while this member leads.
#[derive(Debug, Default)]
pub(super) struct FullDisk {
    /// Since when the log of the leader refuses changes.
    since: Option<Instant>,
    /// When the lead may be given away next.
    next: Option<Instant>,
    /// That no member can take the lead has been said.
    is_said: bool,
}

impl FullDisk {
    /// Gives the lead away, if the log has refused changes for a while. Blocks meanwhile.
    pub(super) fn look(&mut self, node: &GroupNode, password: &str) {
        let Some(server) = node.leadership.server() else { return };
        let log = server.engine.log();
        // Clients that wait for the disk may be all that there are: nothing else looks then.
        log.look_for_stall();
        let problem = match log.health() {
            Health::Full(reason) => reason.to_string(),
            Health::Stalled(stall) => stall.to_string(),
            Health::Ok | Health::Failed(_) => return *self = FullDisk::default(),
        };
        if !matches!(node.group.role(), Role::Leading { .. }) {
            return *self = FullDisk::default();
        }
        let now = log.clock().now();
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) < PATIENCE || self.next.is_some_and(|next| now < next) {
            return;
        }
        drop(server);
        self.next = Some(now + RETRY_PAUSE);
        let Some(to) = successor(node, password) else {
            if !std::mem::replace(&mut self.is_said, true) {
                say(&format!(
                    "warning: this leader refuses changes: {problem}; it keeps the lead, because no other member says \
                     that it can write"
                ));
            }
            return;
        };
        say(&format!("warning: this leader refuses changes: {problem}; it gives the lead to member {to}"));
        match node.group.give_away(to, TRANSFER_PATIENCE) {
            Ok(()) => say(&format!("member {to} leads the cluster")),
            Err(error) => say(&format!("warning: member {to} does not lead: {error}")),
        }
    }
}

/// Returns the member with the most entries among those that have everything which was told, and say that
/// they can write.
fn successor(node: &GroupNode, password: &str) -> Option<NodeId> {
    let status = node.group.status();
    let has =
        |id: NodeId| status.matching.iter().find(|(other, _)| *other == id).map(|(_, entry)| entry.index);
    let is_candidate = |member: &Member| {
        member.id != node.me() && member.is_voter && has(member.id) >= Some(status.committed.index)
    };
    let mut candidates: Vec<_> = node.group.members().into_iter().filter(is_candidate).collect();
    candidates.sort_by_key(|member| std::cmp::Reverse(has(member.id)));
    let can_write = |member: &Member| {
        let said = ask(&member.client_address, password);
        said.is_ok_and(|said| said.can_lead && said.cluster == node.seat.cluster)
    };
    candidates.into_iter().find(can_write).map(|member| member.id)
}

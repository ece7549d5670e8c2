//! One member: the library over a driver of the log and a transport, on any runtime.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver;
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;
use openraft::{Raft, RaftMetrics, ServerState};
use tidemark_log::EntryId;

use super::apply::Apply;
use super::snapshots::{Arrivals, Transfers};
use super::staleness::Staleness;
use super::standing::Standing;
use super::types::{Cfg, from_log_id, from_membership};
use crate::acks::Acks;
use crate::driver::LogDriver;
use crate::ids::NodeId;
use crate::level::Level;
use crate::member::Members;
use crate::reign::Reign;
use crate::settings::Settings;
use crate::term::Term;

/// How long the end of the consensus may take. Its tasks end with the runtime at the latest, so a server's stop
/// does not hang on them.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// A running member. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Node<C: Cfg> {
    pub(super) raft: Raft<C, Apply>,
    pub(super) apply: Apply,
    pub(crate) driver: LogDriver,
    pub(crate) reign: Arc<Reign>,
    pub(crate) settings: Settings,
    pub(super) standing: Arc<Standing>,
    pub(crate) staleness: Arc<Staleness>,
    pub(super) acks: Arc<Acks>,
    /// Held during a round that confirms the lead: callers that wait for it share the next one.
    pub(super) round: Arc<tokio::sync::Mutex<()>>,
    /// The zero of this member's clock.
    pub(super) began: InstantOf<C>,
    pub(super) arrivals: Arrivals,
    pub(super) transfers: Transfers,
}

/// What a group looks like from one member.
#[derive(Clone, Debug)]
pub(crate) struct NodeStatus {
    pub(crate) term: Term,
    pub(crate) last: EntryId,
    pub(crate) applied: EntryId,
    /// The other members' last entry that is known to be there; only at the leader.
    pub(crate) matching: BTreeMap<u64, EntryId>,
    /// When a quorum acknowledged this leader last, as the age of that.
    pub(crate) quorum_age: Option<Duration>,
    /// The group's level, by the newest entry that names the members.
    pub(crate) level: Level,
    /// The member may have lost what it acknowledged, and does not vote.
    pub(crate) is_suspect: bool,
    /// An entry that is applied names this member.
    pub(crate) is_named: bool,
    /// The newest entry that names the members is applied.
    pub(crate) are_members_committed: bool,
    /// The members that need a snapshot and did not get it at the last attempt, and why; only at the leader.
    pub(crate) unsent_snapshots: Vec<(NodeId, String)>,
    /// Why this member does not take the snapshot that it needs.
    pub(crate) refused_snapshot: Option<String>,
    /// Why the consensus has ended.
    pub(crate) failure: Option<String>,
}

impl<C: Cfg> Node<C> {
    pub(super) fn raft(&self) -> &Raft<C, Apply> {
        &self.raft
    }

    pub(super) fn apply(&self) -> &Apply {
        &self.apply
    }

    /// The snapshots that this member sends.
    pub(super) fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    /// The snapshot of another member that arrives here.
    pub(super) fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// Returns whether member `id` has acknowledged the leader of `term` since then.
    pub(super) fn is_heard(&self, id: u64, term: Term, since: Duration) -> bool {
        self.acks.is_since(id, term.0, since)
    }

    /// See [`Group::accept_loss`](crate::Group::accept_loss).
    pub(crate) fn accept_loss(&self) {
        self.standing.accept_loss();
    }

    /// The name of this member.
    pub(crate) fn me(&self) -> NodeId {
        NodeId(*self.raft.node_id())
    }

    /// Returns the time since the member began.
    pub(crate) fn now(&self) -> Duration {
        C::now() - self.began
    }

    /// Makes the members the first of a new group. Called at one of them.
    ///
    /// # Errors
    /// The group has begun, or a member does not vote.
    pub(crate) async fn init(&self, members: Members) -> io::Result<()> {
        if members.list().iter().any(|member| !member.is_voter) {
            return Err(io::Error::other("the first members of a group all vote; a learner joins later"));
        }
        self.raft.initialize(members.nodes).await.map_err(|error| io::Error::other(error.to_string()))
    }

    /// Returns the members by the newest entry that names them; `None` before the first.
    pub(crate) fn members(&self) -> Option<Members> {
        let metrics = self.raft.metrics();
        let stored = metrics.borrow_watched().membership_config.clone();
        stored.log_id().is_some().then(|| from_membership(stored.membership()))
    }

    pub(crate) fn status(&self) -> NodeStatus {
        let leading = self.reign.role.leading();
        let since = leading.and_then(|term| self.quorum_since(term));
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let replication = metrics.replication.iter().flatten();
        let (applied, last) = (self.apply.applied(), self.driver.last().id);
        NodeStatus {
            term: Term(metrics.current_term),
            last,
            applied: from_log_id(applied.last),
            is_named: applied.names(self.me()),
            are_members_committed: *metrics.membership_config.log_id() <= applied.last,
            matching: replication.map(|(node, id)| (*node, from_log_id(*id))).collect(),
            level: from_membership(metrics.membership_config.membership()).level(),
            quorum_age: since.map(|since| self.now().saturating_sub(since)),
            is_suspect: self.standing.is_suspect(),
            unsent_snapshots: leading.map(|term| self.transfers.failures(term)).unwrap_or_default(),
            refused_snapshot: self.arrivals.refusal(last.index),
            failure: metrics.running_state.as_ref().err().map(ToString::to_string),
        }
    }

    /// Returns whether a quorum has acknowledged the leader of `term` after this call: what it has
    /// executed is then no older than what any leader had committed at the call. False if the term
    /// has ended, or no quorum answers within two leases.
    pub(crate) async fn confirm(&self, term: Term) -> bool {
        let asked = self.now();
        let _round = self.round.lock().await;
        let mut is_sent = false;
        loop {
            if self.reign.role.leading() != Some(term) {
                return false;
            }
            if self.quorum_since(term).is_some_and(|since| since >= asked) {
                return true;
            }
            if self.now() > asked + self.settings.lease() * 2 {
                return false;
            }
            if !is_sent {
                is_sent = self.raft.trigger().heartbeat().await.is_ok();
            }
            // A heartbeat may be lost: the next one is sent anyway.
            drop(C::timeout(self.settings.heartbeat, self.acks.changed()).await);
        }
    }

    /// Returns the time since which a quorum has promised to wait for the leader of `term`.
    fn quorum_since(&self, term: Term) -> Option<Duration> {
        let metrics = self.raft.metrics();
        let members = metrics.borrow_watched().membership_config.clone();
        let me = *self.raft.node_id();
        self.acks.quorum(me, term.0, members.membership().get_joint_config(), self.now())
    }

    pub(super) fn mirror_lease(&self, metrics: &RaftMetrics<C>) {
        let leading = self.reign.role.leading().filter(|_| !self.reign.hands_over());
        let Some(term) = leading.filter(|term| metrics.current_term == term.0) else { return };
        if metrics.state != ServerState::Leader {
            return;
        }
        let voters = metrics.membership_config.membership().get_joint_config();
        if let Some(sent) = self.acks.quorum(metrics.id, term.0, voters, self.now()) {
            self.reign.lease.extend(term, sent, self.settings.lease());
        }
    }

    /// Ends the consensus. The driver stays open. Returns whether its tasks have ended.
    pub(crate) async fn shutdown(&self) -> bool {
        let has_ended = C::timeout(SHUTDOWN_PATIENCE, self.raft.shutdown()).await.is_ok();
        self.reign.abdicate();
        has_ended
    }
}

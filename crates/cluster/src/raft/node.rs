//! One member: the library over a driver of the log and a transport, on any runtime.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardReason};
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;
use openraft::{Raft, RaftMetrics, ServerState};
use tidemark_log::{EntryId, EntryRecords, Lsn};
use tokio::sync::{mpsc, oneshot};

use super::apply::{Applied, Apply};
use super::config::config;
use super::keeping::keep_house;
use super::network::{AckClock, Clients, serve_appends, serve_control};
use super::snapshots::{self, Arrivals, Transfers};
use super::staleness::Staleness;
use super::storage::{Seen, Storage};
use super::suspect::{Heal, Standing};
use super::types::{
    Batch, Cfg, LogId, StoredMembership, from_log_id, from_membership, to_log_id, to_membership,
};
use crate::acks::Acks;
use crate::driver::LogDriver;
use crate::ids::NodeId;
use crate::member::Members;
use crate::net::{Lane, Transport};
use crate::pump::{Proposal, Propose, pump};
use crate::reign::Reign;
use crate::role::{RoleCell, TermListener};
use crate::settings::Settings;
use crate::snapshot_files::{ReceiverLimits, SnapshotReceiver};
use crate::start::find_committed;
use crate::term::Term;

/// Pause before a refused batch is proposed again.
const REFUSED_PAUSE: Duration = Duration::from_millis(2);
/// Part of the lease that a start waits for beyond it: clocks of machines differ in speed.
const START_DIVISOR: u32 = 4;
/// Time behind the end of a silent leader's lease, so that the other members see the end too.
const HINT_MARGIN: Duration = Duration::from_millis(1);

/// A snapshot of any size is received as long as this much of the disk stays free.
const RECEIVER_LIMITS: ReceiverLimits = ReceiverLimits { bytes_max: u64::MAX, reserve_bytes: 128 << 20 };

/// What a member is made of.
pub(crate) struct NodeParts {
    pub(crate) me: NodeId,
    pub(crate) settings: Settings,
    pub(crate) driver: LogDriver,
    pub(crate) listener: Arc<dyn TermListener>,
    /// `Some` if the member may have lost entries that it had acknowledged.
    pub(crate) heal: Option<Heal>,
    #[cfg(test)]
    pub(crate) faults: crate::faults::Faults,
}

/// A running member. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Node<C: Cfg> {
    raft: Raft<C, Apply>,
    pub(super) apply: Apply,
    pub(crate) driver: LogDriver,
    pub(crate) reign: Arc<Reign>,
    pub(crate) settings: Settings,
    pub(super) standing: Arc<Standing>,
    pub(crate) staleness: Arc<Staleness>,
    acks: Arc<Acks>,
    /// Held during a round that confirms the lead: callers that wait for it share the next one.
    round: Arc<tokio::sync::Mutex<()>>,
    /// The zero of this member's clock.
    began: InstantOf<C>,
    arrivals: Arrivals,
    transfers: Transfers,
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
    /// The member may have lost what it acknowledged, and does not vote.
    pub(crate) is_suspect: bool,
    /// Why the consensus has ended.
    pub(crate) failure: Option<String>,
}

impl<C: Cfg> Node<C> {
    /// Starts a member. If it may have taken part before, this waits a lease first: it has
    /// forgotten which leader it had promised to wait for.
    ///
    /// # Errors
    /// The settings are invalid, or the log cannot be read.
    pub(crate) async fn start<T: Transport>(parts: NodeParts, transport: T) -> io::Result<Self> {
        let NodeParts { me, settings, driver, listener, heal, .. } = parts;
        settings.check().map_err(io::Error::other)?;
        let beginning = driver.beginning();
        let begins = beginning.as_ref().map_or(Lsn::ZERO, |beginning| beginning.end.last);
        driver.commit(begins);
        let found = find_committed(driver.member(), beginning, driver.committed().max(begins))?;
        let receiver = SnapshotReceiver::open(driver.storage().clone(), RECEIVER_LIMITS)?;
        let arrivals = Arrivals::new(receiver);
        let ballot = driver.ballot();
        let role = RoleCell::new(me, ballot);
        let reign = Reign::new(
            driver.clone(),
            role,
            listener,
            #[cfg(test)]
            parts.faults,
        );
        if ballot.is_some() || driver.last().id.index > 0 {
            let lease = settings.lease();
            C::sleep(lease + lease / START_DIVISOR).await;
        }
        let began = C::now();
        let seen = Arc::new(Seen::default());
        let applied = Arc::new(Mutex::new(applied(found.last.id, found.members)?));
        let storage = Storage::new(
            driver.clone(),
            reign.clone(),
            seen.clone(),
            applied.clone(),
            settings.request_bytes,
        );
        let apply = Apply::new(driver.clone(), reign.clone(), arrivals.clone(), applied);
        #[cfg(test)]
        let restore_leader = parts.faults.restore_leader;
        #[cfg(not(test))]
        let restore_leader = false;
        let acks = Arc::new(Acks::default());
        let (transfers, clock) = (Transfers::default(), AckClock { began, acks: acks.clone() });
        let clients = Clients {
            transport: transport.clone(),
            clock,
            driver: driver.clone(),
            transfers: transfers.clone(),
        };
        let config = config(&settings, heal.is_none(), restore_leader).map_err(io::Error::other)?;
        let raft = Raft::<C, Apply>::new(me.0, Arc::new(config), clients, storage, apply.clone())
            .await
            .map_err(|error| io::Error::other(error.to_string()))?;
        let (standing, round) = (Arc::new(Standing::new(heal.is_some())), Arc::default());
        let staleness = Arc::default();
        let node = Self {
            raft,
            apply,
            driver,
            reign,
            settings,
            standing,
            staleness,
            acks,
            round,
            began,
            arrivals,
            transfers,
        };
        let proposer = Proposer::<C> { raft: node.raft.clone(), driver: node.driver.clone(), seen };
        drop(C::spawn(pump(proposer, node.driver.clone(), node.reign.clone(), node.settings.backlog_bytes)));
        drop(C::spawn(follow_metrics(node.clone())));
        drop(C::spawn(keep_house(node.clone())));
        if let Some(heal) = heal {
            let began_in = ballot.map_or(0, |ballot| ballot.term);
            drop(C::spawn(node.clone().regain_vote(transport, began_in, heal)));
        }
        Ok(node)
    }

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

    /// The name of this member.
    pub(super) fn me(&self) -> NodeId {
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
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let replication = metrics.replication.iter().flatten();
        NodeStatus {
            term: Term(metrics.current_term),
            last: self.driver.last().id,
            applied: from_log_id(self.apply.applied().last),
            matching: replication.map(|(node, id)| (*node, from_log_id(*id))).collect(),
            quorum_age: metrics.last_quorum_acked.map(|acked| {
                let acked: InstantOf<C> = *acked;
                if acked < C::now() { C::now() - acked } else { Duration::ZERO }
            }),
            is_suspect: self.standing.is_suspect(),
            failure: metrics.running_state.as_ref().err().map(ToString::to_string),
        }
    }

    /// Serves one connection of member `from`.
    pub(crate) async fn serve(
        &self,
        from: NodeId,
        lane: Lane,
        requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) {
        match lane {
            Lane::Log | Lane::Heartbeat => {
                let node = self.clone();
                let heard = move || node.reign.role.note_heard(node.now());
                serve_appends(self.raft.clone(), requests, answers, heard).await;
                if lane == Lane::Heartbeat {
                    let node = self.clone();
                    drop(C::spawn(async move { node.stand_if_silent(from).await }));
                }
            }
            Lane::Control => serve_control(self, requests, answers).await,
            Lane::Snapshot => {
                let (driver, arrivals) = (self.driver.clone(), self.arrivals.clone());
                snapshots::serve(self.raft.clone(), driver, arrivals, requests, answers).await;
            }
            // A server takes its messages before they come here; the connection closes.
            Lane::Message => {}
        }
    }

    /// Stands for election at the end of the lease of `from`, whose connection for heartbeats has
    /// closed, if it is the leader and stays silent: probably its kernel has closed it because the
    /// process died. Saves the random time that members wait otherwise.
    async fn stand_if_silent(&self, from: NodeId) {
        let followed = self.reign.role.followed().filter(|(leader, _)| *leader == from);
        let Some((_, heard)) = followed.filter(|_| !self.standing.is_suspect()) else { return };
        let ends = heard + self.settings.lease() + HINT_MARGIN;
        C::sleep(ends.saturating_sub(self.now())).await;
        // A later message, over a new connection, extended the lease; or there is another leader.
        if self.reign.role.followed() == Some((from, heard)) {
            // It fails when the consensus has ended, and is refused while a lease is valid.
            drop(self.raft.trigger().elect(true).await);
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

    fn mirror_lease(&self, metrics: &RaftMetrics<C>) {
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

    /// Ends the consensus. The driver stays open.
    pub(crate) async fn shutdown(&self) {
        drop(self.raft.shutdown().await);
        self.reign.abdicate();
    }
}

fn applied(last: EntryId, members: Vec<(EntryId, Members)>) -> io::Result<Applied> {
    let stored = members.into_iter().map(|(id, members)| {
        let invalid = || io::Error::other(format!("entry {id} has invalid members"));
        Ok(StoredMembership::new(to_log_id(id), to_membership(members).ok_or_else(invalid)?))
    });
    Ok(Applied { last: to_log_id(last), members: stored.collect::<io::Result<_>>()? })
}

/// Follows the library's metrics until the consensus ends: mirrors the lease, and notifies the
/// listener of members. Then the term that is led ends.
async fn follow_metrics<C: Cfg>(node: Node<C>) {
    let (mut metrics, mut known) = (node.raft.metrics(), None);
    loop {
        {
            let metrics = metrics.borrow_watched();
            if metrics.running_state.is_err() {
                break;
            }
            let members = &metrics.membership_config;
            if *members.log_id() != known {
                known = *members.log_id();
                node.reign.note_members(&from_membership(members.membership()));
            }
            node.mirror_lease(&metrics);
        }
        node.reign.note_progress();
        // The role may change without the library: when the LEADER record is written here.
        if let Ok(Err(_)) = C::timeout(node.settings.heartbeat, metrics.changed()).await {
            break;
        }
    }
    node.reign.abdicate();
}

/// Proposes to the library.
struct Proposer<C: Cfg> {
    raft: Raft<C, Apply>,
    driver: LogDriver,
    seen: Arc<Seen>,
}

impl<C: Cfg> Propose for Proposer<C> {
    async fn propose(&self, term: Term, records: EntryRecords) -> Proposal {
        self.seen.clear();
        let last = records.last_lsn();
        let (refused, mut refusal) = oneshot::channel();
        let driver = self.driver.clone();
        let responder = C::responder(
            // What waits for the batch is released here: `apply` comes later.
            Box::new(move |_: LogId| driver.commit(last)),
            Box::new(move |result| {
                if let Err(error) = result {
                    let _ = refused.send(proposal_of(&error));
                }
            }),
        );
        let leader = *openraft::LogId::new_term_index(term.0, 0).committed_leader_id();
        let batch = Batch { records, is_taken: true };
        if self.raft.write(batch).with_leader(leader).responder(responder).await.is_err() {
            return Proposal::Closed;
        }
        loop {
            if self.seen.is(last) {
                return Proposal::InLog;
            }
            tokio::select! {
                biased;
                result = &mut refusal => return match result {
                    Ok(proposal) => proposal,
                    // Dropped without a refusal: applied already, or the consensus has ended.
                    Err(_) if self.seen.is(last) => Proposal::InLog,
                    Err(_) => Proposal::Lost,
                },
                () = self.seen.changed() => {}
            }
        }
    }

    async fn pause(&self) {
        C::sleep(REFUSED_PAUSE).await;
    }
}

fn proposal_of<C: Cfg>(error: &ClientWriteError<C>) -> Proposal {
    match error {
        ClientWriteError::ForwardToLeader(forward)
            if matches!(forward.reason, ForwardReason::LeaseExpired | ForwardReason::LeadershipTransfer) =>
        {
            Proposal::Refused
        }
        _ => Proposal::Lost,
    }
}

//! Starts a member: the library over a driver of the log and a transport, and the tasks beside it.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::Raft;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ClientWriteError, ForwardReason};
use openraft::type_config::TypeConfigExt;
use tidemark_log::{EntryId, EntryRecords, Lsn};
use tokio::sync::oneshot;

use super::apply::{Applied, Apply, note_level};
use super::config::config;
use super::keeping::keep_house;
use super::network::{AckClock, Clients};
use super::node::Node;
use super::snapshots::{Arrivals, Transfers};
use super::standing::{Heal, Standing};
use super::storage::{Seen, Storage};
use super::types::{Batch, Cfg, LogId, StoredMembership, from_membership, to_log_id, to_membership};
use crate::acks::Acks;
use crate::driver::LogDriver;
use crate::ids::NodeId;
use crate::member::Members;
use crate::net::Transport;
use crate::pump::{Proposal, Propose, pump};
use crate::reign::Reign;
use crate::role::{RoleCell, TermListener};
use crate::settings::Settings;
use crate::snapshot_files::{ReceiverLimits, SenderSettings, SnapshotReceiver};
use crate::start::find_committed;
use crate::term::Term;

/// Pause before a refused batch is proposed again.
const REFUSED_PAUSE: Duration = Duration::from_millis(2);
/// Part of the lease that a start waits for beyond it: clocks of machines differ in speed.
const START_DIVISOR: u32 = 4;
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
    /// How snapshots are sent to other members.
    pub(crate) sender: SenderSettings,
    #[cfg(test)]
    pub(crate) faults: crate::faults::Faults,
}

impl<C: Cfg> Node<C> {
    /// Starts a member. If it may have taken part before, this waits a lease first: it has
    /// forgotten which leader it had promised to wait for.
    ///
    /// # Errors
    /// The settings are invalid, or the log cannot be read.
    pub(crate) async fn start<T: Transport>(parts: NodeParts, transport: T) -> io::Result<Self> {
        let NodeParts { me, settings, driver, listener, heal, sender, .. } = parts;
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
        let applied = applied(found.last.id, found.members)?;
        if let Some(newest) = applied.members.last() {
            note_level(&reign, settings.level, newest)?;
        }
        let applied = Arc::new(Mutex::new(applied));
        let storage = Storage::new(
            driver.clone(),
            reign.clone(),
            seen.clone(),
            applied.clone(),
            settings.request_bytes,
        );
        let apply = Apply::new(driver.clone(), reign.clone(), arrivals.clone(), applied, settings.level);
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
            sender,
            reign: reign.clone(),
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

//! The types that the library is generic over, and their conversions from and to ours.
//!
//! Indices of the library begin at 0, those of the log at 1: index 0 of the log is before the first
//! entry.

use std::collections::BTreeMap;
use std::fmt;

use openraft::entry::RaftEntry;
use openraft::raft::ClientWriteResult;
use openraft::raft::responder::Responder;
use openraft::type_config::alias::{LogIdOf, WriteResponderOf};
use openraft::vote::{RaftLeaderId, RaftVote};
use openraft::{EntryPayload, OptionalSend, RaftTypeConfig};
use tidemark_log::{EntryId, EntryRecords};

use crate::entry::Entry;
use crate::member::{Members, Place};
use crate::snapshot_files::{OnTokio, Waiting};
use crate::term::Ballot;

pub(crate) type LeaderId = openraft::impls::leader_id_std::LeaderId<u64, u64>;
pub(crate) type TermId = <LeaderId as RaftLeaderId>::Committed;
pub(crate) type LogId = openraft::LogId<TermId>;
pub(crate) type Vote = openraft::Vote<LeaderId>;
pub(crate) type Payload = EntryPayload<Batch, u64, Place>;
pub(crate) type Membership = openraft::Membership<u64, Place>;
pub(crate) type StoredMembership = openraft::StoredMembership<TermId, u64, Place>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<TermId, u64, Place>;

/// The records of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) records: EntryRecords,
    /// They were taken from this log's appenders, and are in its buffer already.
    pub(crate) is_taken: bool,
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.records.first_lsn(), self.records.last_lsn())
    }
}

/// An entry of the library, with the records that it has in the log. One that the library has just
/// made has none yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogEntry {
    pub(crate) log_id: LogId,
    pub(crate) payload: Payload,
    pub(crate) records: Option<EntryRecords>,
}

impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.log_id, self.payload)
    }
}

impl RaftEntry for LogEntry {
    type CommittedLeaderId = TermId;
    type Payload = Payload;

    fn new(log_id: LogId, payload: Payload) -> Self {
        Self { log_id, payload, records: None }
    }

    fn log_id_parts(&self) -> (&TermId, u64) {
        (self.log_id.committed_leader_id(), self.log_id.index)
    }

    fn set_log_id(&mut self, new: LogId) {
        self.log_id = new;
    }

    fn get_membership(&self) -> Option<Membership> {
        match &self.payload {
            EntryPayload::Membership(membership) => Some(membership.clone()),
            EntryPayload::Blank | EntryPayload::Normal(_) => None,
        }
    }
}

impl LogEntry {
    /// Makes the library's form of an entry of the log.
    pub(crate) fn of_log(id: EntryId, entry: Entry) -> Option<Self> {
        let log_id = to_log_id(id)?;
        let (payload, records) = match entry {
            Entry::Leader(records) => (EntryPayload::Blank, records),
            Entry::Batch(records) => {
                (EntryPayload::Normal(Batch { records: records.clone(), is_taken: false }), records)
            }
            Entry::Members(members, records) => (EntryPayload::Membership(to_membership(*members)?), records),
        };
        Some(Self { log_id, payload, records: Some(records) })
    }

    /// Makes the log's form of an entry that has records.
    pub(crate) fn into_log(self) -> Option<(EntryId, Entry)> {
        let records = self.records?;
        let entry = match self.payload {
            EntryPayload::Blank => Entry::Leader(records),
            EntryPayload::Normal(_) => Entry::Batch(records),
            EntryPayload::Membership(membership) => {
                Entry::Members(Box::new(from_membership(&membership)), records)
            }
        };
        Some((from_log_id(Some(self.log_id)), entry))
    }
}

/// Returns the library's form of a place in the log; `None` before the first entry.
pub(crate) fn to_log_id(id: EntryId) -> Option<LogId> {
    Some(LogId::new_term_index(id.term, id.index.checked_sub(1)?))
}

pub(crate) fn from_log_id(id: Option<LogId>) -> EntryId {
    id.map_or(EntryId::default(), |id| EntryId {
        // The library gives out indices one by one: it never reaches the last one.
        index: id.index.saturating_add(1),
        term: **id.committed_leader_id(),
    })
}

pub(crate) fn to_vote(ballot: Ballot) -> Vote {
    Vote::from_leader_id(LeaderId { term: ballot.term, voted_for: ballot.node }, ballot.is_elected)
}

pub(crate) fn from_vote(vote: &Vote) -> Ballot {
    let id = vote.leader_id();
    Ballot { term: id.term, node: id.voted_for, is_elected: vote.is_committed() }
}

/// Returns `None` for a list that no quorum can be made of.
pub(crate) fn to_membership(members: Members) -> Option<Membership> {
    Membership::new(members.voters, members.nodes).ok()
}

pub(crate) fn from_membership(membership: &Membership) -> Members {
    let nodes: BTreeMap<u64, Place> =
        membership.nodes().map(|(id, addresses)| (*id, addresses.clone())).collect();
    Members { voters: membership.get_joint_config().clone(), nodes }
}

type Call<T> = Option<Box<dyn FnOnce(T) + Send>>;

/// Two closures that the library calls, so that a commit needs no task of its own.
pub(crate) struct CallResponder<C: RaftTypeConfig, T> {
    commit: Call<LogIdOf<C>>,
    complete: Call<T>,
}

impl<C: RaftTypeConfig, T: OptionalSend + 'static> Responder<C, T> for CallResponder<C, T> {
    fn on_commit(&mut self, id: LogIdOf<C>) {
        if let Some(commit) = self.commit.take() {
            commit(id);
        }
    }

    fn on_complete(mut self, result: T) {
        if let Some(complete) = self.complete.take() {
            complete(result);
        }
    }
}

/// What all configurations have in common: everything but the runtime.
pub(crate) trait Cfg:
    RaftTypeConfig<
        D = Batch,
        R = (),
        NodeId = u64,
        Node = Place,
        Term = u64,
        LeaderId = LeaderId,
        Vote = Vote,
        Payload = Payload,
        Entry = LogEntry,
    >
{
    /// Makes a responder.
    fn responder(
        commit: Box<dyn FnOnce(LogId) + Send>,
        complete: Box<dyn FnOnce(ClientWriteResult<Self>) + Send>,
    ) -> WriteResponderOf<Self>;

    /// Runs work that may wait for the disk; `None` if the runtime ends. Passes a panic on.
    fn run_blocking<R: Send + 'static>(
        work: impl FnOnce() -> R + Send + 'static,
    ) -> impl Future<Output = Option<R>> + Send;
}

macro_rules! config {
    ($(#[$doc:meta])* $name:ident, $runtime:ty, $run_blocking:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, Eq, PartialEq, Ord, PartialOrd)]
        pub(crate) struct $name;

        impl RaftTypeConfig for $name {
            type D = Batch;
            type R = ();
            type NodeId = u64;
            type Node = Place;
            type Term = u64;
            type LeaderId = LeaderId;
            type Vote = Vote;
            type Payload = Payload;
            type Entry = LogEntry;
            type AsyncRuntime = $runtime;
            type Responder<T>
                = CallResponder<Self, T>
            where
                T: OptionalSend + 'static;
            type Batch<T>
                = openraft::impls::InlineBatch<T>
            where
                T: OptionalSend + 'static;
            type ErrorSource = openraft::impls::BoxedErrorSource;
        }

        impl Cfg for $name {
            fn responder(
                commit: Box<dyn FnOnce(LogId) + Send>,
                complete: Box<dyn FnOnce(ClientWriteResult<Self>) + Send>,
            ) -> WriteResponderOf<Self> {
                CallResponder { commit: Some(commit), complete: Some(complete) }
            }

            fn run_blocking<R: Send + 'static>(
                work: impl FnOnce() -> R + Send + 'static,
            ) -> impl Future<Output = Option<R>> + Send {
                $run_blocking(work)
            }
        }
    };
}

config!(
    /// Threads, sockets and the system's clock.
    Real,
    openraft_rt_tokio::TokioRuntime,
    OnTokio::run_blocking
);
#[cfg(test)]
config!(
    /// One thread, a seed, virtual time, and a clock for each member.
    Simulated,
    crate::skewed_runtime::SkewedRuntime,
    crate::skewed_runtime::run_blocking
);

//! The library's state machine: what is committed goes to the log's watermark, and terms begin.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine, Snapshot};
use openraft::{EntryPayload, OptionalSend};
use tidemark_log::{EntryEnd, EntryId, Member as LogMember};

use super::snapshots::{self, Arrivals, SnapshotHandle, find_snapshot};
use super::types::{
    Cfg, LogId, SnapshotMeta, StoredMembership, TermId, from_log_id, from_membership, to_log_id,
};
use crate::driver::LogDriver;
use crate::ids::NodeId;
use crate::level::Level;
use crate::member::Place;
use crate::reign::Reign;
use crate::term::Term;

/// What is applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    pub(crate) last: Option<LogId>,
    /// The members by the entries that name them, oldest first: behind the beginning of the log, and the
    /// newest before it.
    pub(crate) members: Vec<StoredMembership>,
}

impl Applied {
    /// Returns the members as of the entry `id`.
    pub(crate) fn members_at(&self, id: EntryId) -> StoredMembership {
        let is_at = |members: &&StoredMembership| from_log_id(*members.log_id()).index <= id.index;
        self.members.iter().rfind(is_at).cloned().unwrap_or_default()
    }

    /// Returns whether one of the entries names the member `node`.
    pub(crate) fn names(&self, node: NodeId) -> bool {
        self.members.iter().any(|members| members.membership().nodes().any(|(id, _)| *id == node.0))
    }

    /// Forgets members that are not those of the entry `id` or a later one.
    pub(crate) fn forget_before(&mut self, id: EntryId) {
        let is_at = |members: &StoredMembership| from_log_id(*members.log_id()).index <= id.index;
        let newest = self.members.iter().rposition(is_at).unwrap_or(0);
        self.members.drain(..newest);
    }
}

/// The library's form of a snapshot.
pub(crate) type Referred = Snapshot<TermId, u64, Place, SnapshotHandle>;

/// Applies committed entries. Clones share their state.
#[derive(Clone)]
pub(crate) struct Apply {
    driver: LogDriver,
    reign: Arc<Reign>,
    arrivals: Arrivals,
    applied: Arc<Mutex<Applied>>,
    /// The highest level of records that this build knows.
    level: Level,
}

impl Apply {
    pub(crate) fn new(
        driver: LogDriver,
        reign: Arc<Reign>,
        arrivals: Arrivals,
        applied: Arc<Mutex<Applied>>,
        level: Level,
    ) -> Self {
        Self { driver, reign, arrivals, applied, level }
    }

    /// Returns the newest snapshot of the server; if there is none that can be found, one without files
    /// that says where the log begins.
    pub(crate) async fn find(&self) -> Referred {
        let (applied, begins) = (self.applied(), self.driver.beginning());
        let begins = begins.map_or(EntryEnd::default(), |beginning| beginning.end);
        let last = from_log_id(applied.last);
        let storage = Arc::clone(self.driver.storage());
        let look = move |member: &LogMember| find_snapshot(member, &storage, begins.id.index, last.index);
        let found = self.driver.inspect(look).await.flatten();
        // An error of the library's storage would end the consensus.
        let found = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "no snapshot is found");
            None
        });
        let (lsn, end) = found.map_or((None, begins), |(lsn, end)| (Some(lsn), end));
        let meta =
            SnapshotMeta { last_log_id: to_log_id(end.id), last_membership: applied.members_at(end.id) };
        Snapshot { meta, snapshot: SnapshotHandle { lsn, last: end.last } }
    }

    /// Returns the index of the last applied entry; 0 before the first.
    pub(crate) fn last_index(&self) -> u64 {
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        from_log_id(applied.last).index
    }

    /// Returns what is applied.
    pub(crate) fn applied(&self) -> Applied {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<C: Cfg> RaftStateMachine<C> for Apply {
    type SnapshotData = SnapshotHandle;
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        let applied = self.applied();
        Ok((applied.last, applied.members_at(from_log_id(applied.last))))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<C>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let records = entry.records.as_ref();
            let lsn = records.ok_or_else(|| io::Error::other("a committed entry has no records"))?.last_lsn();
            {
                let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
                applied.last = Some(entry.log_id);
                if let EntryPayload::Membership(membership) = &entry.payload {
                    let stored = StoredMembership::new(Some(entry.log_id), membership.clone());
                    note_level(&self.reign, self.level, &stored)?;
                    applied.members.push(stored);
                }
            }
            self.driver.commit(lsn);
            if matches!(entry.payload, EntryPayload::Blank) {
                self.reign.begin(Term(**entry.log_id.committed_leader_id()), lsn);
            }
            if let Some(responder) = responder {
                responder.send(());
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        handle: SnapshotHandle,
    ) -> Result<(), io::Error> {
        let id = from_log_id(meta.last_log_id);
        note_level(&self.reign, self.level, &meta.last_membership)?;
        let is_there = self.driver.last().id.index >= id.index;
        if is_there {
            // Entries that differed were cut before: only what is committed is new.
            self.arrivals.forget(&self.driver).await?;
            self.driver.commit(handle.last);
        } else {
            let reign = self.reign.clone();
            let run = move |install: &mut dyn FnMut()| reign.install(install);
            let (driver, arrivals) = (self.driver.clone(), self.arrivals.clone());
            snapshots::install::<C>(driver, arrivals, (meta, handle.last), run).await?;
        }
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        applied.last = meta.last_log_id;
        if !is_there {
            applied.members.clear();
        }
        applied.members.push(meta.last_membership.clone());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Referred>, io::Error> {
        let found = self.find().await;
        if found.snapshot.lsn.is_none() && found.meta.last_log_id.is_some() {
            // The log of a group that began alone: nothing was sent before.
            self.reign.want_snapshot();
        }
        Ok(found.meta.last_log_id.is_some().then_some(found))
    }
}

impl<C: Cfg> RaftSnapshotBuilder<C> for Apply {
    type SnapshotData = SnapshotHandle;

    async fn build_snapshot(&mut self) -> Result<Referred, io::Error> {
        Ok(self.find().await)
    }
}

/// Notes the level of a list of members that is committed.
///
/// # Errors
/// This build knows less: it could not apply what follows.
pub(super) fn note_level(reign: &Reign, known: Level, members: &StoredMembership) -> io::Result<()> {
    let level = from_membership(members.membership()).level();
    if level > known {
        let error = format!(
            "the cluster writes records of level {level}, and this build knows them up to level {known}: start this \
             member with the build that the others run"
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, error));
    }
    reign.note_level(level);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::types::to_membership;
    use crate::{Member, Members};

    fn id(index: u64) -> EntryId {
        EntryId { index, term: 1 }
    }

    /// The members from an entry on, one for each index of it.
    fn members(index: u64) -> StoredMembership {
        let member = |id| Member {
            id: NodeId(id),
            peer_address: String::new(),
            client_address: String::new(),
            directory: None,
            is_voter: true,
        };
        let members = Members::new((1..=index).map(member).collect()).expect("is valid");
        StoredMembership::new(to_log_id(id(index)), to_membership(members).expect("is valid"))
    }

    #[test]
    fn members_are_those_of_the_newest_entry_before() {
        let mut applied = Applied { last: to_log_id(id(20)), members: [1, 5, 9].map(members).to_vec() };
        let at = |applied: &Applied, index| from_log_id(*applied.members_at(id(index)).log_id()).index;
        assert_eq!([0, 1, 4, 5, 8, 9, 20].map(|index| at(&applied, index)), [0, 1, 1, 5, 5, 9, 9]);
        applied.forget_before(id(4));
        assert_eq!(at(&applied, 4), 1);
        applied.forget_before(id(6));
        assert_eq!([5, 6, 9].map(|index| at(&applied, index)), [5, 5, 9]);
        assert_eq!(applied.members.len(), 2);
    }

    #[test]
    fn all_members_that_a_log_has_named_are_known() {
        let applied = Applied { last: to_log_id(id(20)), members: [5, 3].map(members).to_vec() };
        assert!(applied.names(NodeId(5)) && applied.names(NodeId(3)) && !applied.names(NodeId(6)));
        assert!(!Applied::default().names(NodeId(1)));
    }
}

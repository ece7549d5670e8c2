//! The library's state machine: what is committed goes to the log's watermark, and terms begin.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine, Snapshot};
use openraft::{EntryPayload, OptionalSend};

use super::types::{Cfg, LogId, SnapshotMeta, StoredMembership, TermId};
use crate::driver::LogDriver;
use crate::member::Place;
use crate::reign::Reign;
use crate::term::Term;

/// What is applied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Applied {
    pub(crate) last: Option<LogId>,
    pub(crate) members: StoredMembership,
}

/// A snapshot of the server, by reference. There is none yet: members need all entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotHandle;

/// Applies committed entries. Clones share their state.
#[derive(Clone)]
pub(crate) struct Apply {
    driver: LogDriver,
    reign: Arc<Reign>,
    applied: Arc<Mutex<Applied>>,
}

impl Apply {
    pub(crate) fn new(driver: LogDriver, reign: Arc<Reign>, applied: Applied) -> Self {
        Self { driver, reign, applied: Arc::new(Mutex::new(applied)) }
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
        Ok((applied.last, applied.members))
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
                    applied.members = StoredMembership::new(Some(entry.log_id), membership.clone());
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

    async fn install_snapshot(&mut self, _: &SnapshotMeta, _: SnapshotHandle) -> Result<(), io::Error> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<Snapshot<TermId, u64, Place, SnapshotHandle>>, io::Error> {
        Ok(None)
    }
}

impl<C: Cfg> RaftSnapshotBuilder<C> for Apply {
    type SnapshotData = SnapshotHandle;

    async fn build_snapshot(&mut self) -> Result<Snapshot<TermId, u64, Place, SnapshotHandle>, io::Error> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

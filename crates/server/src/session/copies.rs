//! Copies of a client's newest change on the members of a group, which `WAIT` and `WAITAOF` count.

use crate::group::Group;
use crate::shared::Shared;
use tidemark_engine::Reply;
use tidemark_log::{Durability, Lsn};

/// Copies that a client waits for.
#[derive(Debug)]
pub(crate) struct Copies {
    /// The client's newest change; `ZERO` if it has made none.
    lsn: Lsn,
    /// Number of other members that are to have it.
    wanted: usize,
    /// Copies must be synced, and so must this member's if it is `true`; `None` if written ones count.
    synced: Option<bool>,
    /// Index of an entry that is not before the change; `None` until the change is committed.
    entry: Option<u64>,
    /// This member was asked to sync its log.
    is_sync_requested: bool,
}

impl Copies {
    /// Copies that are written, for `WAIT`.
    pub(crate) fn written(newest: Option<Lsn>, wanted: usize) -> Copies {
        Copies {
            lsn: newest.unwrap_or(Lsn::ZERO),
            wanted,
            synced: None,
            // Every member has nothing.
            entry: newest.is_none().then_some(0),
            is_sync_requested: false,
        }
    }

    /// Copies that are synced, for `WAITAOF`.
    pub(crate) fn synced(newest: Option<Lsn>, is_local_wanted: bool, wanted: usize) -> Copies {
        Copies { synced: Some(is_local_wanted), ..Copies::written(newest, wanted) }
    }

    /// Looks for the copies, and has them made. Returns whether all are there.
    pub(crate) fn are_there(&mut self, shared: &Shared) -> bool {
        let Some(group) = &shared.group else { return false };
        if self.may_sync(shared) {
            self.is_sync_requested = true;
            group.consensus().request_sync();
        }
        if self.entry.is_none() && self.lsn <= shared.engine.log().committed() {
            // The entry with the change may be an earlier one: members that have this one have both.
            self.entry = Some(group.consensus().status().last);
        }
        self.is_local_there(shared) && self.count(group, shared) >= self.wanted
    }

    /// Whether [`are_there`](Self::are_there) has something to do, or returns true.
    pub(crate) fn are_due(&self, shared: &Shared) -> bool {
        let Some(group) = &shared.group else { return false };
        let is_committed = self.entry.is_none() && self.lsn <= shared.engine.log().committed();
        is_committed
            || self.may_sync(shared)
            || (self.is_local_there(shared) && self.count(group, shared) >= self.wanted)
    }

    /// Writes how many copies there are.
    pub(crate) fn write(&self, reply: &mut Reply, shared: &Shared) {
        let others = shared.group.as_ref().map_or(0, |group| self.count(group, shared));
        if self.synced.is_some() {
            reply.array(2);
            reply.count(usize::from(self.lsn <= shared.engine.log().durable()));
        }
        reply.count(others);
    }

    /// Whether this member is to be asked for a sync now: a change can be synced once it is written.
    fn may_sync(&self, shared: &Shared) -> bool {
        let log = shared.engine.log();
        self.synced == Some(true)
            && !self.is_sync_requested
            && self.lsn > log.durable()
            && self.lsn <= log.written()
    }

    fn is_local_there(&self, shared: &Shared) -> bool {
        self.synced != Some(true) || self.lsn <= shared.engine.log().durable()
    }

    /// Number of other members that are known to have the change as durable as it must be: with
    /// `always` a member syncs before it acknowledges, in another mode nothing is known of its disk.
    fn count(&self, group: &Group, shared: &Shared) -> usize {
        let is_known = self.synced.is_none() || shared.settings.current().durability == Durability::Always;
        let Some(entry) = self.entry.filter(|_| is_known) else { return 0 };
        let matching = group.consensus().status().matching;
        matching.iter().filter(|(id, last)| *id != group.me() && *last >= entry).count()
    }
}

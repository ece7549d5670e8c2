//! Members of a group without a group: a test says which entries a member gets, and what is committed.

use crate::support;
use std::sync::Arc;
use std::time::Duration;
use tidemark_engine::{Engine, Follower, record};
use tidemark_log::{Durability, EntryEnd, EntryId, EntryRecords, Log, Lsn, Member, MemoryStorage, Options};

/// A member: its log, and its memory.
pub(crate) struct GroupMember {
    pub(crate) engine: Arc<Engine>,
    pub(crate) member: Member,
}

impl GroupMember {
    /// A member with an empty log, which follows.
    pub(crate) fn new() -> Self {
        Self::on(MemoryStorage::new())
    }

    /// A member on a storage; its memory is empty.
    pub(crate) fn on(storage: MemoryStorage) -> Self {
        let member = Self::of_first_level(storage);
        // All members are of this build.
        member.engine.raise_level(record::level::NEWEST);
        member
    }

    /// A member of a group that writes no newer records than the first builds know.
    pub(crate) fn of_first_level(storage: MemoryStorage) -> Self {
        let options = Options {
            durability: Durability::Always,
            segment_bytes: 1 << 20,
            seed: Some(3),
            ..Options::default()
        };
        let (log, member, _) = Log::open_member(Arc::new(storage), options).expect("the log opens");
        let engine = Arc::new(support::engine_with_log(Arc::new(log)));
        Self { engine, member }
    }

    /// Begins a term that this member leads: with a record of no change, as the group would commit it.
    pub(crate) fn lead(&self, now_us: u64) {
        let newest = self.member.last_entry().id;
        let lsn = self.member.next_term_lsn().expect("LSNs are left");
        let nothing = EntryRecords::of_record(lsn, now_us, record::kind::GROUP + 15, b"the leader");
        let id = EntryId { index: newest.index + 1, term: newest.term + 1 };
        self.member.append(id, &nothing).expect("is appended");
        self.commit(lsn);
        self.engine.lead(now_us);
        self.member.lead();
    }

    /// Ends the lead.
    pub(crate) fn step_down(&self) {
        self.member.pause();
        assert_eq!(self.member.discard(), None, "what was executed is written");
        self.engine.follow(self.engine.applied()).expect("memory is not ahead of the log");
    }

    /// Writes what commands have appended as an entry. Returns it if there is something.
    pub(crate) fn write(&self) -> Option<EntryEnd> {
        let records = self.member.take(Duration::ZERO)?;
        let newest = self.member.last_entry().id;
        let id = EntryId { index: newest.index + 1, term: newest.term };
        self.member.write_taken(id, &records).expect("is written");
        Some(EntryEnd { id, last: records.last_lsn() })
    }

    /// Copies the entries that this member lacks from another. Returns the last record.
    pub(crate) fn receive(&self, from: &Self) -> Lsn {
        let lacking = from.member.entries(self.member.last_entry().id.index + 1, usize::MAX).expect("reads");
        for (id, records) in lacking {
            self.member.append(id, &records).expect("is appended");
        }
        self.member.last_entry().last
    }

    /// Commits everything up to a record, and applies it if this member follows.
    pub(crate) fn commit(&self, lsn: Lsn) {
        self.member.commit(lsn);
        if !self.engine.is_following() {
            return;
        }
        let mut follower = Follower::of(&self.engine).expect("the log has what memory lacks");
        while follower.apply_next(&self.engine, || true).expect("what is committed is applied") > Some(0) {}
        assert_eq!(self.engine.applied(), self.engine.log().committed(), "all of it is applied");
    }
}

/// Writes what the leader has executed, and makes the others have it. Returns the last record.
pub(crate) fn replicate(leader: &GroupMember, others: &[&GroupMember]) -> Lsn {
    leader.write();
    let last = leader.member.last_entry().last;
    for other in others {
        assert_eq!(other.receive(leader), last);
    }
    leader.commit(last);
    others.iter().for_each(|other| other.commit(last));
    last
}

//! What an entry of a group says. Each entry is records of the log; the kind of its first record
//! tells what it is:
//!
//! ```text
//! leader   one record of kind LEADER: term u64 │ node u64      the first entry of a term
//! members  one record of kind MEMBERS: see `member`            the members from here on
//! batch    records of all other kinds                          what appenders appended
//! ```
//!
//! A batch may have records of kind SYNC, without a payload: members sync before they acknowledge it, in every
//! mode. A sync makes everything before it durable too, so a committed one says that a quorum has all of that
//! on disk.

use tidemark_log::{EntryRecords, Lsn};

use crate::codec::{Reader, Writer};
use crate::ids::NodeId;
use crate::member::Members;
use crate::term::Term;

/// The kinds of records that a group writes. They are given out from the top, those of the engine
/// from the bottom; 0 is the log's own.
pub mod kind {
    /// The first record of a term: its leader.
    pub const LEADER: u8 = 255;
    /// The members from here on.
    pub const MEMBERS: u8 = 254;
    /// What is before is to be synced by a quorum. Builds that do not know it take it for a record without
    /// meaning, and acknowledge it as their mode says.
    pub const SYNC: u8 = 253;
}

/// An entry of a group's log. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A term begins. Synced before it is acknowledged, in every durability mode.
    Leader(EntryRecords),
    /// Records that the leader's appenders have appended.
    Batch(EntryRecords),
    /// The members from here on. Synced like `Leader`.
    Members(Box<Members>, EntryRecords),
}

/// Why records are no entry of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records {first} to {last} are no entry of a group: {what}")]
pub struct InvalidGroupEntry {
    /// The first record.
    pub first: Lsn,
    /// The last record.
    pub last: Lsn,
    /// What is wrong.
    pub what: &'static str,
}

/// The group's own record in an entry.
enum Own {
    None,
    Leader,
    Members(Box<Members>),
}

fn read_own(records: &EntryRecords) -> Result<Own, &'static str> {
    let own = records.iter().find(|record| record.kind >= kind::MEMBERS);
    let Some(record) = own else { return Ok(Own::None) };
    if records.first_lsn() != records.last_lsn() {
        return Err("a record of the group's own is not alone");
    }
    if record.kind == kind::MEMBERS {
        let members = Members::decode(record.payload).ok_or("the members cannot be read")?;
        return Ok(Own::Members(Box::new(members)));
    }
    let mut reader = Reader(record.payload);
    let node = reader.u64().and_then(|_term| reader.u64());
    node.and_then(|node| reader.end(node)).map(|_| Own::Leader).ok_or("the leader cannot be read")
}

impl Entry {
    /// Makes the first entry of a term.
    pub(crate) fn leader(lsn: Lsn, time_us: u64, term: Term, node: NodeId) -> Self {
        let mut payload = Writer::default();
        payload.u64(term.0).u64(node.0);
        Self::Leader(EntryRecords::of_record(lsn, time_us, kind::LEADER, &payload.0))
    }

    /// Makes an entry that names the members.
    pub(crate) fn members(lsn: Lsn, time_us: u64, members: Members) -> Self {
        let mut payload = Writer::default();
        members.encode(&mut payload);
        let records = EntryRecords::of_record(lsn, time_us, kind::MEMBERS, &payload.0);
        Self::Members(Box::new(members), records)
    }

    /// Finds out what the records of an entry are. O(records).
    ///
    /// # Errors
    /// A record of the group's own kinds is not alone, or cannot be read.
    pub fn of_records(records: EntryRecords) -> Result<Self, InvalidGroupEntry> {
        match read_own(&records) {
            Ok(Own::None) => Ok(Self::Batch(records)),
            Ok(Own::Leader) => Ok(Self::Leader(records)),
            Ok(Own::Members(members)) => Ok(Self::Members(members, records)),
            Err(what) => {
                Err(InvalidGroupEntry { first: records.first_lsn(), last: records.last_lsn(), what })
            }
        }
    }

    /// The entry's records.
    pub fn records(&self) -> &EntryRecords {
        match self {
            Self::Leader(records) | Self::Batch(records) | Self::Members(_, records) => records,
        }
    }

    /// Returns whether the entry is synced before it is acknowledged, whatever the durability mode. O(records).
    pub(crate) fn is_synced(&self) -> bool {
        match self {
            Self::Leader(_) | Self::Members(..) => true,
            Self::Batch(records) => records.iter().any(|record| record.kind == kind::SYNC),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::Member;

    fn batch(kinds: &[u8]) -> EntryRecords {
        let frames = kinds
            .iter()
            .zip(7..)
            .flat_map(|(kind, lsn)| EntryRecords::of_record(Lsn(lsn), 1, *kind, b"payload").bytes().to_vec());
        EntryRecords::parse(frames.collect::<Vec<_>>().into()).expect("is whole")
    }

    #[test]
    fn an_entry_is_known_by_its_records() {
        let member = Member {
            id: NodeId(1),
            peer_address: "a:1".to_owned(),
            client_address: "a:2".to_owned(),
            directory: None,
            is_voter: true,
        };
        let members = Members::new(vec![member]).expect("is valid");
        for entry in [
            Entry::leader(Lsn(1 << 32), 5, Term(3), NodeId(2)),
            Entry::members(Lsn(9), 5, members),
            Entry::Batch(batch(&[1, 2, 3])),
        ] {
            assert_eq!(Entry::of_records(entry.records().clone()), Ok(entry));
        }
    }

    #[test]
    fn batches_are_synced_in_every_mode_if_one_of_their_records_asks_for_it() {
        for (kinds, is_synced) in [(&[1, 2][..], false), (&[1, kind::SYNC, 2], true), (&[kind::SYNC], true)] {
            let entry = Entry::of_records(batch(kinds)).expect("it is a batch");
            assert!(matches!(entry, Entry::Batch(_)));
            assert_eq!(entry.is_synced(), is_synced, "{kinds:?}");
        }
    }

    #[test]
    fn records_of_the_group_are_alone_and_readable() {
        let refused = |kinds: &[u8]| Entry::of_records(batch(kinds)).expect_err("is refused").what;
        assert!(refused(&[kind::LEADER, 1]).contains("not alone"));
        assert!(refused(&[1, kind::MEMBERS]).contains("not alone"));
        assert!(refused(&[kind::MEMBERS]).contains("members cannot"));
        assert!(refused(&[kind::LEADER]).contains("leader cannot"));
    }
}

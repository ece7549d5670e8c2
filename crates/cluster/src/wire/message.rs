//! Requests of members to each other, and the answers, as bytes.
//!
//! ```text
//! ballot    term u64 │ node u64 │ elected u8
//! place     index u64 │ term u64                                   index 0: before the first entry
//! append    1 │ ballot │ previous place │ committed place │ number u32 │ (place │ length u32 │ records)*
//! vote      2 │ ballot │ last place │ forced u8
//! pre-vote  3 │ as vote
//! transfer  4 │ ballot │ to u64 │ last place
//! install   5 │ ballot │ last place                                on the lane of snapshots
//! last      6
//! ```
//!
//! Answers have no kind of their own: they come in the order of the requests of a connection.

use tidemark_log::{EntryId, EntryRecords};

use crate::codec::{Reader, Writer};
use crate::entry::Entry;
use crate::term::Ballot;

/// Limit on the entries of one request.
pub const ENTRIES_MAX: usize = 1 << 16;

const APPEND: u8 = 1;
const VOTE: u8 = 2;
const PRE_VOTE: u8 = 3;
const TRANSFER: u8 = 4;
pub(crate) const INSTALL: u8 = 5;
const LAST: u8 = 6;

/// Bytes of an append request beyond its entries, and of an entry beyond its records.
const HEAD_BYTES: usize = 64;
const ENTRY_HEAD_BYTES: usize = 20;

/// A request for a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteQuestion {
    /// What the candidate has voted: for itself.
    pub ballot: Ballot,
    /// The candidate's last entry.
    pub last: EntryId,
    /// The leader itself wants the candidate elected: its lease does not count.
    pub is_transfer: bool,
}

/// A request of one member to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Entries of the leader; none in a heartbeat.
    Append {
        /// The leader.
        ballot: Ballot,
        /// The entry before the first of these.
        previous: EntryId,
        /// What is committed.
        committed: EntryId,
        /// The entries.
        entries: Vec<(EntryId, Entry)>,
    },
    /// Asks for a vote.
    Vote(VoteQuestion),
    /// Asks whether a vote would be given. Changes nothing.
    PreVote(VoteQuestion),
    /// The leader hands over.
    Transfer {
        /// The leader.
        from: Ballot,
        /// The member that is to lead.
        to: u64,
        /// The leader's last entry.
        last: EntryId,
    },
    /// A snapshot of which all files were sent takes the place of the log.
    Install {
        /// The leader.
        ballot: Ballot,
        /// The last entry that the snapshot has.
        last: EntryId,
    },
    /// Asks a leader for its last entry.
    Last,
}

/// Answer to [`Request::Append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendAnswer {
    /// The log equals the leader's up to this entry.
    Matching(EntryId),
    /// The previous entry is not there, or differs.
    Conflict(EntryId),
    /// The leader is deposed: the newer ballot.
    Deposed(Ballot),
}

/// Answer to [`Request::Last`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastAnswer {
    /// The member does not lead.
    NotLeader,
    /// The member was elected for `term`, and its log ends with `last`.
    Leader {
        /// The term.
        term: u64,
        /// The last entry, whether it is written or not.
        last: EntryId,
        /// No other member can lead yet.
        has_lease: bool,
    },
}

/// Answer to a request for a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoteAnswer {
    /// The newest ballot of the member.
    pub ballot: Ballot,
    /// Its last entry.
    pub last: EntryId,
    /// Whether the vote is given.
    pub is_granted: bool,
}

impl Request {
    /// Returns the request as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut into;
        match self {
            Self::Append { ballot, previous, committed, entries } => {
                let records =
                    entries.iter().map(|(_, entry)| entry.records().bytes().len() + ENTRY_HEAD_BYTES);
                into = Writer::with_capacity(HEAD_BYTES + records.sum::<usize>());
                into.u8(APPEND);
                put_ballot(&mut into, *ballot);
                put_place(&mut into, *previous);
                put_place(&mut into, *committed);
                into.u32(entries.len() as u32);
                for (id, entry) in entries {
                    put_place(&mut into, *id);
                    into.bytes(entry.records().bytes());
                }
            }
            Self::Vote(question) | Self::PreVote(question) => {
                into = Writer::default();
                into.u8(if matches!(self, Self::Vote(_)) { VOTE } else { PRE_VOTE });
                put_ballot(&mut into, question.ballot);
                put_place(&mut into, question.last);
                into.u8(question.is_transfer.into());
            }
            Self::Transfer { from, to, last } => {
                into = Writer::default();
                into.u8(TRANSFER);
                put_ballot(&mut into, *from);
                into.u64(*to);
                put_place(&mut into, *last);
            }
            Self::Install { ballot, last } => {
                into = Writer::default();
                into.u8(INSTALL);
                put_ballot(&mut into, *ballot);
                put_place(&mut into, *last);
            }
            Self::Last => {
                into = Writer::default();
                into.u8(LAST);
            }
        }
        into.0
    }

    /// Reads a request; `None` for bytes that are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let request = match from.u8()? {
            APPEND => {
                let (ballot, previous, committed) =
                    (ballot(&mut from)?, place(&mut from)?, place(&mut from)?);
                let count = from.u32().map(|count| count as usize).filter(|count| *count <= ENTRIES_MAX)?;
                let mut entries = Vec::with_capacity(count.min(from.0.len() / ENTRY_HEAD_BYTES));
                for _ in 0..count {
                    let id = place(&mut from)?;
                    let records = EntryRecords::parse(from.bytes()?.into()).ok()?;
                    entries.push((id, Entry::of_records(records).ok()?));
                }
                Self::Append { ballot, previous, committed, entries }
            }
            kind @ (VOTE | PRE_VOTE) => {
                let question = VoteQuestion {
                    ballot: ballot(&mut from)?,
                    last: place(&mut from)?,
                    is_transfer: from.flag()?,
                };
                if kind == VOTE { Self::Vote(question) } else { Self::PreVote(question) }
            }
            TRANSFER => Self::Transfer { from: ballot(&mut from)?, to: from.u64()?, last: place(&mut from)? },
            INSTALL => Self::Install { ballot: ballot(&mut from)?, last: place(&mut from)? },
            LAST => Self::Last,
            _ => return None,
        };
        from.end(request)
    }
}

impl AppendAnswer {
    /// Returns the answer as bytes.
    pub fn encode(self) -> Vec<u8> {
        let mut into = Writer::default();
        match self {
            Self::Matching(id) => put_place(into.u8(0), id),
            Self::Conflict(id) => put_place(into.u8(1), id),
            Self::Deposed(ballot) => put_ballot(into.u8(2), ballot),
        }
        into.0
    }

    /// Reads an answer; `None` for bytes that are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let answer = match from.u8()? {
            0 => Self::Matching(place(&mut from)?),
            1 => Self::Conflict(place(&mut from)?),
            2 => Self::Deposed(ballot(&mut from)?),
            _ => return None,
        };
        from.end(answer)
    }
}

impl LastAnswer {
    /// Returns the answer as bytes.
    pub fn encode(self) -> Vec<u8> {
        let mut into = Writer::default();
        match self {
            Self::NotLeader => drop(into.u8(0)),
            Self::Leader { term, last, has_lease } => {
                put_place(into.u8(1 + u8::from(has_lease)).u64(term), last);
            }
        }
        into.0
    }

    /// Reads an answer; `None` for bytes that are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let answer = match from.u8()? {
            0 => Self::NotLeader,
            kind @ (1 | 2) => {
                Self::Leader { term: from.u64()?, last: place(&mut from)?, has_lease: kind == 2 }
            }
            _ => return None,
        };
        from.end(answer)
    }
}

impl VoteAnswer {
    /// Returns the answer as bytes.
    pub fn encode(self) -> Vec<u8> {
        let mut into = Writer::default();
        put_ballot(&mut into, self.ballot);
        put_place(&mut into, self.last);
        into.u8(self.is_granted.into());
        into.0
    }

    /// Reads an answer; `None` for bytes that are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let answer = Self { ballot: ballot(&mut from)?, last: place(&mut from)?, is_granted: from.flag()? };
        from.end(answer)
    }
}

/// Returns a ballot as the bytes that a [`VoteStore`](crate::VoteStore) keeps.
pub(crate) fn encode_ballot(ballot: Ballot) -> Vec<u8> {
    let mut into = Writer::default();
    put_ballot(&mut into, ballot);
    into.0
}

/// Reads a ballot; `None` for bytes that are none.
pub(crate) fn decode_ballot(bytes: &[u8]) -> Option<Ballot> {
    let mut from = Reader(bytes);
    let read = ballot(&mut from)?;
    from.end(read)
}

fn put_ballot(into: &mut Writer, ballot: Ballot) {
    into.u64(ballot.term).u64(ballot.node).u8(ballot.is_elected.into());
}

fn ballot(from: &mut Reader<'_>) -> Option<Ballot> {
    Some(Ballot { term: from.u64()?, node: from.u64()?, is_elected: from.flag()? })
}

fn put_place(into: &mut Writer, id: EntryId) {
    into.u64(id.index).u64(id.term);
}

fn place(from: &mut Reader<'_>) -> Option<EntryId> {
    Some(EntryId { index: from.u64()?, term: from.u64()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;
    use crate::term::Term;
    use proptest::prelude::*;
    use tidemark_log::Lsn;

    fn id() -> impl Strategy<Value = EntryId> {
        (any::<u64>(), any::<u64>()).prop_map(|(index, term)| EntryId { index, term })
    }

    fn some_ballot() -> impl Strategy<Value = Ballot> {
        (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(term, node, is_elected)| Ballot {
            term,
            node,
            is_elected,
        })
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let record = |lsn, kind, payload: Vec<u8>| EntryRecords::of_record(Lsn(lsn), 7, kind, &payload);
        prop_oneof![
            (1..u64::MAX).prop_map(|lsn| Entry::leader(Lsn(lsn), 3, Term(2), NodeId(1))),
            (1..u64::MAX, 1..200_u8, prop::collection::vec(any::<u8>(), 0..50))
                .prop_map(move |(lsn, kind, payload)| Entry::Batch(record(lsn, kind, payload))),
        ]
    }

    fn request() -> impl Strategy<Value = Request> {
        let question = || {
            (some_ballot(), id(), any::<bool>()).prop_map(|(ballot, last, is_transfer)| VoteQuestion {
                ballot,
                last,
                is_transfer,
            })
        };
        prop_oneof![
            (some_ballot(), id(), id(), prop::collection::vec((id(), entry()), 0..4)).prop_map(
                |(ballot, previous, committed, entries)| Request::Append {
                    ballot,
                    previous,
                    committed,
                    entries
                }
            ),
            question().prop_map(Request::Vote),
            question().prop_map(Request::PreVote),
            (some_ballot(), any::<u64>(), id()).prop_map(|(from, to, last)| Request::Transfer {
                from,
                to,
                last
            }),
            Just(Request::Last),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn requests_are_read_back_and_damaged_ones_do_not_panic(
            request in request(), at: prop::sample::Index, value: u8, keep: prop::sample::Index
        ) {
            let bytes = request.encode();
            prop_assert_eq!(Request::decode(&bytes), Some(request));
            prop_assert_eq!(Request::decode(&bytes[..keep.index(bytes.len())]), None, "cut");
            let mut damaged = bytes.clone();
            damaged[at.index(bytes.len())] = value;
            let _ = Request::decode(&damaged);
            damaged.push(0);
            prop_assert_eq!(Request::decode(&[&bytes[..], &[0]].concat()), None, "more follows");
        }

        #[test]
        fn answers_are_read_back(ballot in some_ballot(), last in id(), is_granted: bool) {
            let vote = VoteAnswer { ballot, last, is_granted };
            prop_assert_eq!(VoteAnswer::decode(&vote.encode()), Some(vote));
            for answer in [AppendAnswer::Matching(last), AppendAnswer::Conflict(last), AppendAnswer::Deposed(ballot)] {
                prop_assert_eq!(AppendAnswer::decode(&answer.encode()), Some(answer));
            }
            let leader = |has_lease| LastAnswer::Leader { term: ballot.term, last, has_lease };
            for answer in [LastAnswer::NotLeader, leader(false), leader(true)] {
                prop_assert_eq!(LastAnswer::decode(&answer.encode()), Some(answer));
            }
            prop_assert_eq!(decode_ballot(&encode_ballot(ballot)), Some(ballot));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (Request::decode(&bytes), AppendAnswer::decode(&bytes), VoteAnswer::decode(&bytes));
            let _ = LastAnswer::decode(&bytes);
            for kind in 1..6 {
                let _ = Request::decode(&[&[kind], &bytes[..]].concat());
            }
        }
    }

    #[test]
    fn a_number_of_entries_costs_no_memory_before_they_are_there() {
        let empty = Request::Append {
            ballot: Ballot::default(),
            previous: EntryId::default(),
            committed: EntryId::default(),
            entries: Vec::new(),
        };
        let mut bytes = empty.encode();
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(&(ENTRIES_MAX as u32).to_le_bytes());
        assert_eq!(Request::decode(&bytes), None);
        bytes[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Request::decode(&bytes), None);
    }
}

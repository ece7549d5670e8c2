//! What must never change during a run: committed entries, leaders of terms, acknowledged records.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;
use tidemark_log::{EntryEnd, EntryId, EntryRecords, Log, Lsn, Member};

use super::lock::lock;
use crate::entry::kind;
use crate::raft::Simulated;
use crate::skewed_runtime::{EVEN, SkewedInstant, at_speed};

/// An entry as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: EntryId,
    /// Its last record.
    pub(super) last: Lsn,
    /// Of all that its records have.
    digest: u64,
    /// The LSNs of clients' records.
    of_clients: Vec<u64>,
}

/// Operations by their LSNs.
pub(super) type Operations = BTreeMap<u64, u64>;

impl Seen {
    fn new(id: EntryId, records: &EntryRecords) -> Self {
        let (mut hasher, mut of_clients) = (DefaultHasher::new(), Vec::new());
        for record in records.iter() {
            (record.lsn.0, record.kind, record.payload, record.time_us).hash(&mut hasher);
            if ![kind::LEADER, kind::MEMBERS].contains(&record.kind) {
                of_clients.push(record.lsn.0);
            }
        }
        Self { id, last: records.last_lsn(), digest: hasher.finish(), of_clients }
    }

    fn end(&self) -> EntryEnd {
        EntryEnd { id: self.id, last: self.last }
    }
}

/// The entries of a log that were read. An entry of one place and term is not read again: if another
/// had taken its place, so would others behind it.
#[derive(Debug, Default)]
pub(super) struct SeenLog {
    entries: VecDeque<Seen>,
    /// Index of the last one that was compared as committed.
    compared: u64,
}

impl SeenLog {
    /// Reads what is new in a log. Returns the position of the first entry that was not there before.
    fn refresh(&mut self, member: &Member) -> usize {
        let first = member.first_entry();
        while self.entries.pop_front_if(|entry| entry.id.index < first).is_some() {}
        let is_gone = |entry: &mut Seen| member.entry(entry.id.index).expect("reads") != Some(entry.end());
        while self.entries.pop_back_if(is_gone).is_some() {}
        let known = self.entries.len();
        let mut index = self.entries.back().map_or(first, |entry| entry.id.index + 1);
        self.compared = self.compared.min(index - 1);
        loop {
            let read = member.entries(index, 1 << 20).expect("reads");
            let Some((last, _)) = read.last() else { return known };
            index = last.index + 1;
            self.entries.extend(read.iter().map(|(id, records)| Seen::new(*id, records)));
        }
    }
}

/// What an entry of one place and term is, on each member: its predecessor, its last record, and its
/// digest.
type Known = (Option<EntryId>, Lsn, u64);

#[derive(Debug, Default)]
pub(super) struct History {
    /// Of everything that is noted, with its time: two runs of one seed have the same.
    digest: Mutex<DefaultHasher>,
    /// Whether each event is printed.
    prints: bool,
    /// The operation that was told each LSN.
    told: Mutex<BTreeMap<u64, u64>>,
    committed: Mutex<BTreeMap<u64, (EntryId, Lsn, u64)>>,
    /// Committed operations by their LSNs.
    operations: Mutex<Operations>,
    /// The digest of all memory that ends with a record.
    digests: Mutex<BTreeMap<u64, u128>>,
    /// Entries by index and term.
    entries: Mutex<BTreeMap<(u64, u64), Known>>,
    leaders: Mutex<BTreeMap<u64, (u64, u64)>>,
    violations: Mutex<BTreeSet<String>>,
}

impl History {
    pub(super) fn new(prints: bool) -> Self {
        Self { prints, ..Self::default() }
    }

    /// Notes an event.
    pub(super) fn note(&self, event: fmt::Arguments<'_>) {
        let now_us = at_speed(EVEN, Simulated::now) - Self::zero();
        let line = format!("{:>9} us  {event}", now_us.as_micros());
        line.hash(&mut *lock(&self.digest));
        if self.prints {
            println!("{line}");
        }
    }

    /// The zero of virtual time.
    fn zero() -> InstantOf<Simulated> {
        SkewedInstant::BEGAN
    }

    pub(super) fn digest(&self) -> u64 {
        lock(&self.digest).finish()
    }

    /// Notes that a client was told that `operation` has this LSN, committed or not.
    pub(super) fn note_told(&self, operation: u64, lsn: u64) {
        let told = *lock(&self.told).entry(lsn).or_insert(operation);
        if told != operation {
            self.fail(format!("LSN {lsn} is that of operation {told:x} and of {operation:x}"));
        }
    }

    /// Notes what memory is at a record: the same on each member.
    pub(super) fn note_digest(&self, node: u64, lsn: Lsn, digest: u128) {
        let expected = *lock(&self.digests).entry(lsn.0).or_insert(digest);
        if expected != digest {
            self.fail(format!("member {node}: memory at {lsn} differs from that of another member"));
        }
    }

    pub(super) fn fail(&self, what: String) {
        self.note(format_args!("violation: {what}"));
        lock(&self.violations).insert(what);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        lock(&self.violations).iter().cloned().collect()
    }

    pub(super) fn terms(&self) -> usize {
        lock(&self.leaders).len()
    }

    pub(super) fn last_committed(&self) -> u64 {
        lock(&self.committed).keys().last().copied().unwrap_or(0)
    }

    /// Notes that the process `incarnation` of `node` begins to lead.
    pub(super) fn note_leader(&self, term: u64, node: u64, incarnation: u64) {
        self.note(format_args!("term {term} begins at {node}"));
        let leader = (node, incarnation);
        let known = *lock(&self.leaders).entry(term).or_insert(leader);
        if known != leader {
            self.fail(format!("term {term} is led by {known:?} and by {leader:?}"));
        }
    }

    /// Returns the committed operations by their LSNs.
    pub(super) fn operations(&self) -> Operations {
        lock(&self.operations).clone()
    }

    /// Compares what is new in the log of a member with all other logs, and with what is committed. An
    /// entry of one place and term has the same content and the same one before it wherever it is: so logs
    /// that have it are equal up to it.
    pub(super) fn note_log(&self, node: u64, log: &Log, member: &Member, seen: &mut SeenLog) {
        let new = seen.refresh(member);
        for position in new..seen.entries.len() {
            let entry = &seen.entries[position];
            let before = position.checked_sub(1).map(|before| seen.entries[before].id);
            self.match_entry(node, entry, before);
        }
        let committed = log.committed();
        let skip = seen.entries.partition_point(|entry| entry.id.index <= seen.compared);
        for entry in seen.entries.iter().skip(skip).take_while(|entry| entry.last <= committed) {
            seen.compared = entry.id.index;
            if !self.match_committed(node, entry) {
                return;
            }
        }
    }

    fn match_entry(&self, node: u64, entry: &Seen, before: Option<EntryId>) {
        let mut known = lock(&self.entries);
        let expected =
            known.entry((entry.id.index, entry.id.term)).or_insert((before, entry.last, entry.digest));
        expected.0 = expected.0.or(before);
        let is_same_before = before.is_none() || before == expected.0;
        if !is_same_before || (entry.last, entry.digest) != (expected.1, expected.2) {
            self.fail(format!(
                "member {node} and another one agree on {}, and differ: {entry:?} behind {before:?}, and {expected:?}",
                entry.id
            ));
        }
    }

    fn match_committed(&self, node: u64, entry: &Seen) -> bool {
        let mut committed = lock(&self.committed);
        let new = (entry.id, entry.last, entry.digest);
        let next = committed.last_key_value().map_or(1, |(index, _)| index + 1);
        if entry.id.index > next {
            self.fail(format!("entries from {next} to {} were released before they were compared", entry.id));
        }
        let expected = *committed.entry(entry.id.index).or_insert_with(|| {
            self.note(format_args!("committed {} up to {}", entry.id, entry.last));
            let told = lock(&self.told);
            let told = entry.of_clients.iter().map(|lsn| (*lsn, told.get(lsn).copied()));
            for (lsn, operation) in told {
                match operation {
                    Some(operation) => drop(lock(&self.operations).insert(lsn, operation)),
                    None => self.fail(format!("record {lsn} is committed, and no client has made it")),
                }
            }
            new
        });
        if expected != new {
            self.fail(format!("member {node} has committed {entry:?}; it was {expected:?}"));
        }
        expected == new
    }
}

//! What must never change during a run: committed entries, leaders of terms, acknowledged records.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::InstantOf;
use tidemark_log::{EntryId, Log, Member};

use super::lock::lock;
use crate::raft::Simulated;
use crate::skewed_runtime::{EVEN, SkewedInstant, at_speed};

/// An entry as it is compared: its place, its last record, and its content.
pub(super) type Seen = (EntryId, u64, u64);

/// Reads all entries of a log.
pub(super) fn entries(member: &Member) -> Vec<Seen> {
    let (mut seen, mut index) = (Vec::new(), member.first_entry());
    loop {
        let read = member.entries(index, 1 << 20).expect("reads");
        let Some((last, _)) = read.last() else { return seen };
        index = last.index + 1;
        for (id, records) in read {
            let mut hasher = DefaultHasher::new();
            for record in records.iter() {
                (record.lsn.0, record.kind, record.payload, record.time_us).hash(&mut hasher);
            }
            seen.push((id, records.last_lsn().0, hasher.finish()));
        }
    }
}

/// Returns the payloads of all records of kind 1, with their LSNs, in LSN order.
pub(super) fn operations(member: &Member) -> Vec<(u64, u64)> {
    let (mut found, mut index) = (Vec::new(), member.first_entry());
    loop {
        let read = member.entries(index, 1 << 20).expect("reads");
        let Some((last, _)) = read.last() else { return found };
        index = last.index + 1;
        for record in read.iter().flat_map(|(_, records)| records.iter()).filter(|record| record.kind == 1) {
            let operation = record.payload.first_chunk().expect("eight bytes");
            found.push((u64::from_le_bytes(*operation), record.lsn.0));
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct History {
    /// Of everything that is noted, with its time: two runs of one seed have the same.
    digest: Mutex<DefaultHasher>,
    /// Whether each event is printed.
    prints: bool,
    /// The operation that was told each LSN.
    told: Mutex<BTreeMap<u64, u64>>,
    committed: Mutex<BTreeMap<u64, Seen>>,
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

    /// Compares what a member has committed with what is known to be.
    pub(super) fn note_committed(&self, node: u64, log: &Log, entries: &[Seen]) {
        let committed = log.committed().0;
        let mut known = lock(&self.committed);
        for seen in entries.iter().take_while(|(_, last, _)| *last <= committed) {
            if !known.contains_key(&seen.0.index) {
                self.note(format_args!("committed {seen:?}"));
            }
            let expected = *known.entry(seen.0.index).or_insert(*seen);
            if expected != *seen {
                self.fail(format!("member {node} has committed {seen:?}; it was {expected:?}"));
                return;
            }
        }
    }

    /// Two logs that have an entry of one place and term have the same entries up to it.
    pub(super) fn match_logs(&self, logs: &[(u64, Vec<Seen>)]) {
        for (position, (one, first)) in logs.iter().enumerate() {
            for (other, second) in &logs[position + 1..] {
                let common = first.len().min(second.len());
                let same_term = (0..common).rev().find(|at| first[*at].0 == second[*at].0);
                let Some(at) = same_term else { continue };
                if let Some(differs) = (0..=at).find(|at| first[*at] != second[*at]) {
                    self.fail(format!(
                        "members {one} and {other} agree on {}, and differ: {:?} and {:?}",
                        first[at].0, first[differs], second[differs]
                    ));
                }
            }
        }
    }
}

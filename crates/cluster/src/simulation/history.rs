//! What must never change during a run: committed entries, leaders of terms, acknowledged records.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidemark_log::{EntryId, Log, Member};

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
    committed: Mutex<BTreeMap<u64, Seen>>,
    leaders: Mutex<BTreeMap<u64, (u64, u64)>>,
    violations: Mutex<BTreeSet<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl History {
    pub(super) fn fail(&self, what: String) {
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

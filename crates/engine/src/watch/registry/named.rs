//! Named subscriptions, whose positions are in the log, for clients that store nothing.
//!
//! A name stands for a query, for the base of the subscription's numbers, and for a position:
//! emissions up to there are acknowledged. Every change of them is a record, so a name is the same
//! after a restart and on every machine that has the log. A position that moves in a transaction is
//! part of that transaction's record: it moves together with the result of processing the emission,
//! or not at all.
//!
//! # Locks
//!
//! After shards and the registry, before a query's own lock. Names are changed, and their records
//! appended, with the names locked; a snapshot's cut locks them too.

use crate::error::CommandError;
use crate::persist::record;
use crate::watch::guarantee::Guarantee;
use crate::watch::watched_read::SharedQuery;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_log::{Log, Lsn};

/// Longest name. Bytes.
const NAME_BYTES: usize = 256;
/// A named subscription.
#[derive(Debug, Clone)]
pub struct Named {
    /// The query.
    pub query: SharedQuery,
    /// Number in the query after which the subscription's own numbers begin.
    pub base: u64,
    /// LSN up to which emissions are acknowledged; at first, that of the first answer.
    pub position: Lsn,
    /// Whether the first answer is acknowledged. If not, it is delivered again.
    pub has_begun: bool,
    /// Delivery guarantee.
    pub guarantee: Guarantee,
}

impl Named {
    /// Returns whether everything up to `lsn` is acknowledged.
    fn is_done(&self, lsn: Lsn) -> bool {
        lsn < self.position || (lsn == self.position && self.has_begun)
    }
}

/// An acknowledgement of emissions up to an LSN.
#[derive(Debug, Clone, Copy)]
pub struct Acknowledgement<'a> {
    /// Name of the subscription.
    pub name: &'a [u8],
    /// LSN of the last acknowledged emission.
    pub lsn: Lsn,
}

/// Result of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// This record moved the position.
    Moved(Lsn),
    /// The position was already there or further; here it is.
    Before(Lsn),
    /// The log ends here, before the acknowledged LSN, or may have lost that record.
    Beyond(Lsn),
    /// There is no such name.
    Unknown,
}

/// All named subscriptions, and their limit.
pub(crate) struct Names {
    by_name: Mutex<ByName>,
    pub(in crate::watch) max: AtomicUsize,
}

pub(crate) type LockedNames<'a> = MutexGuard<'a, ByName>;

#[derive(Default)]
pub(crate) struct ByName {
    names: BTreeMap<Box<[u8]>, Named>,
    /// Last record that changed a name, or the later cut of a snapshot.
    last: Lsn,
}

impl ByName {
    /// Records the LSN of a change of names. The names have been locked since before the change.
    ///
    /// # Panics
    /// The record is not after that of the last change, or not after the cut of a snapshot without
    /// the change.
    pub(in crate::watch) fn note_logged(&mut self, lsn: Lsn) {
        let last = self.last;
        assert!(
            lsn > last,
            "a name is changed by record {lsn}, and names or a snapshot of them are of record {last}"
        );
        self.last = lsn;
    }

    /// Records the cut of a snapshot, which contains every change of names so far and none to come.
    ///
    /// # Panics
    /// A change so far is after the cut.
    pub(crate) fn note_cut(&mut self, cut: Lsn) {
        let last = self.last;
        assert!(
            last <= cut,
            "a snapshot is cut behind record {cut}, and has the name that record {last} changed"
        );
        self.last = cut;
    }
}

impl Deref for ByName {
    type Target = BTreeMap<Box<[u8]>, Named>;

    fn deref(&self) -> &Self::Target {
        &self.names
    }
}

impl DerefMut for ByName {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.names
    }
}

impl Default for Names {
    fn default() -> Self {
        Self { by_name: Mutex::default(), max: AtomicUsize::new(10_000) }
    }
}

impl Names {
    pub(crate) fn lock(&self) -> LockedNames<'_> {
        self.by_name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a named subscription to the query is at this LSN.
    pub(in crate::watch) fn is_position(&self, query: Lsn, lsn: Lsn) -> bool {
        self.lock().values().any(|named| named.query.id == query && named.position == lsn)
    }

    pub(in crate::watch) fn admit(&self, present: usize) -> Result<(), CommandError> {
        let max = self.max.load(Ordering::Relaxed);
        if present < max {
            return Ok(());
        }
        Err(CommandError::Text(
            format!("ERR there are {present} named subscriptions, as many as watch-max-names allows").into(),
        ))
    }
}

/// Checks a name: at most 256 printable ASCII characters without spaces. A letter comes first, to
/// distinguish names from the ids that the server assigns.
pub fn check_name(name: &[u8]) -> Result<(), CommandError> {
    let is_word = name.iter().all(|byte| (b'!'..=b'~').contains(byte));
    let begins_well = name.first().is_some_and(u8::is_ascii_alphabetic);
    if begins_well && is_word && name.len() <= NAME_BYTES {
        return Ok(());
    }
    Err(CommandError::text(
        "ERR the name of a subscription begins with a letter and has at most 256 letters, digits and signs, without spaces",
    ))
}

/// Returns what an acknowledgement would do now, with memory at record `head`.
pub(in crate::watch) fn look(
    names: &BTreeMap<Box<[u8]>, Named>,
    acknowledgement: Acknowledgement<'_>,
    (log, head): (&Log, Lsn),
) -> Acknowledged {
    match names.get(acknowledgement.name) {
        None => Acknowledged::Unknown,
        Some(named) if named.is_done(acknowledgement.lsn) => Acknowledged::Before(named.position),
        // A record lost in a crash cannot be acknowledged: no subscription could resume after it.
        Some(named)
            if acknowledgement.lsn > head
                || log.is_lost(acknowledgement.lsn)
                || named.query.may_be_lost(acknowledgement.lsn, log) =>
        {
            Acknowledged::Beyond(head)
        }
        Some(_) => Acknowledged::Moved(acknowledgement.lsn),
    }
}

pub(crate) fn encode(name: &[u8], named: &Named, into: &mut Vec<u8>) {
    record::put_bytes(into, name);
    record::put_varint(into, named.query.id.0);
    record::put_varint(into, named.base);
    record::put_varint(into, named.position.0);
    into.push(named.guarantee.encoded());
    into.push(u8::from(named.has_begun));
}

pub(in crate::watch) fn insert(names: &mut BTreeMap<Box<[u8]>, Named>, name: &[u8], named: Named) {
    named.query.lock().more.get_or_insert_default().names += 1;
    names.insert(name.into(), named);
}

pub(in crate::watch) fn remove(names: &mut BTreeMap<Box<[u8]>, Named>, name: &[u8], now_us: u64) -> bool {
    let Some(named) = names.remove(name) else { return false };
    let mut state = named.query.lock();
    let more = state.more.as_mut().expect("a query with a name keeps how many it has");
    more.names = more.names.checked_sub(1).expect("the name that ends is one of the query's");
    state.listeners.begin_anew(now_us);
    true
}

/// Moves a position forward, never back. Returns whether the name exists.
pub(in crate::watch) fn set(names: &mut BTreeMap<Box<[u8]>, Named>, done: Acknowledgement<'_>) -> bool {
    let Some(named) = names.get_mut(done.name) else { return false };
    named.position = named.position.max(done.lsn);
    named.has_begun = true;
    true
}

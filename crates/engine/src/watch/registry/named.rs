//! Named subscriptions: those whose positions the log keeps, for clients that keep nothing.
//!
//! A name stands for a query, for where the subscription's numbers begin, and for a position: the emissions up to there are
//! done with. Whatever changes one of them is a record, so a name is where it was after a restart and on every machine that
//! has the log. A position that moves in a transaction moves in that transaction's record: together with what the emission
//! was processed to, or not at all.
//!
//! # Locks
//!
//! Behind shards and the registry, before a query's own. Names are changed, and their records appended, with the names
//! locked; a snapshot's cut locks them as well.

use crate::error::CommandError;
use crate::persist::record;
use crate::watch::guarantee::Guarantee;
use crate::watch::watched_read::SharedQuery;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidemark_log::{Log, Lsn};

/// The longest name. Bytes.
const NAME_BYTES: usize = 256;
/// What a name stands for.
#[derive(Debug, Clone)]
pub struct Named {
    /// What is watched.
    pub query: SharedQuery,
    /// The subscription's own numbers begin behind this number of the query's.
    pub base: u64,
    /// The emissions up to this LSN are done with, or it is that of the first answer.
    pub position: Lsn,
    /// Whether the first answer is done with. If not, it is to be given again.
    pub has_begun: bool,
    /// Who moves the position, and when.
    pub guarantee: Guarantee,
}

impl Named {
    /// Whether everything up to an LSN is done with.
    fn is_done(&self, lsn: Lsn) -> bool {
        lsn < self.position || (lsn == self.position && self.has_begun)
    }
}

/// That emissions up to an LSN are done with.
#[derive(Debug, Clone, Copy)]
pub struct Acknowledgement<'a> {
    /// The subscription's name.
    pub name: &'a [u8],
    /// Up to here.
    pub lsn: Lsn,
}

/// What came of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// The position has moved, by this record.
    Moved(Lsn),
    /// It was there, or further, before.
    Before(Lsn),
    /// The log ends here, before what is acknowledged, or does not have it any more.
    Beyond(Lsn),
    /// There is no such name.
    Unknown,
}

/// All names.
pub(crate) struct Names {
    by_name: Mutex<ByName>,
    pub(in crate::watch) max: AtomicUsize,
}

pub(crate) type LockedNames<'a> = MutexGuard<'a, ByName>;

/// Named subscriptions by their names.
#[derive(Default)]
pub(crate) struct ByName {
    names: BTreeMap<Box<[u8]>, Named>,
    /// The last record that changed one of them, or a later one up to which a snapshot is cut.
    last: Lsn,
}

impl ByName {
    /// Notes the record of a change of names, which are locked since before the change.
    ///
    /// # Panics
    /// The record is not behind that of the change before, or not behind the cut of a snapshot
    /// without the change.
    pub(in crate::watch) fn note_logged(&mut self, lsn: Lsn) {
        let last = self.last;
        assert!(
            lsn > last,
            "a name is changed by record {lsn}, and names or a snapshot of them are of record {last}"
        );
        self.last = lsn;
    }

    /// Notes that a snapshot is cut up to a record: it has every change of names so far, and none
    /// to come.
    ///
    /// # Panics
    /// A change so far is behind that record.
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

    /// Whether a named subscription to a query is at this LSN.
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

/// Refuses what cannot be a name: it must be told from what the server calls subscriptions, and be one word of a list.
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

/// What comes of acknowledging, if nothing else happens before.
pub(in crate::watch) fn look(
    names: &BTreeMap<Box<[u8]>, Named>,
    acknowledgement: Acknowledgement<'_>,
    log: &Log,
) -> Acknowledged {
    let head = log.appended();
    match names.get(acknowledgement.name) {
        None => Acknowledged::Unknown,
        Some(named) if named.is_done(acknowledgement.lsn) => Acknowledged::Before(named.position),
        // What a crash has taken back was never done with: nobody could go on behind it.
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

/// Moves a position, never back; whether there is such a name.
pub(in crate::watch) fn set(names: &mut BTreeMap<Box<[u8]>, Named>, done: Acknowledgement<'_>) -> bool {
    let Some(named) = names.get_mut(done.name) else { return false };
    named.position = named.position.max(done.lsn);
    named.has_begun = true;
    true
}

//! The counters of a database that have moved since their last commit, by due time. Counters at
//! rest are not listed and cost nothing. A counter with units in doubt that are given back after a
//! time stays listed until then.
//!
//! A counter is listed at most once, at the time in its own [`Listing`]. A listed counter may turn
//! out to be at rest; a counter with something to commit is always listed. Counters are identified
//! by hash, as in the list of deadlines.

use super::due::DueKeys;
use super::{Entry, Table};
use crate::value::{Counter, Listing, TypedValue};

/// Due time of a counter that has not been checked yet. Milliseconds since 1970.
const SOON_MS: u64 = 1;

/// How long a due counter stays listed, in case its commit fails. Milliseconds.
const RETRY_MS: u64 = 1000;

/// Counters by due time, each with the hash of its key.
#[derive(Default)]
pub(super) struct Uncommitted(DueKeys);

/// Amount of uncommitted changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exposure {
    /// Counters that have moved since their last commit.
    pub counters: u64,
    /// Units that a crash could lose: those of relaxed counters. Exact counters lose none.
    pub units: u64,
    /// Units that exact counters have reserved and not used.
    pub reserved: u64,
    /// Time of the oldest uncommitted change, in milliseconds since 1970.
    pub since_ms: Option<u64>,
}

impl Exposure {
    /// Adds another database's amounts.
    pub(crate) fn add(&mut self, other: Self) {
        self.counters += other.counters;
        self.units = self.units.saturating_add(other.units);
        self.reserved = self.reserved.saturating_add(other.reserved);
        self.since_ms = [self.since_ms, other.since_ms].into_iter().flatten().min();
    }
}

impl Uncommitted {
    pub(super) fn next_due(&self) -> Option<u64> {
        self.0.next()
    }

    /// Moves a counter in the list from its place `before` (0: none) to `due_ms`.
    pub(super) fn list(&mut self, hash: u64, before: u64, due_ms: u64) {
        if before != 0 {
            self.0.remove(before, hash);
        }
        self.0.insert(due_ms, hash);
    }

    /// Removes a counter that leaves its key from the list.
    pub(super) fn forget(&mut self, hash: u64, counter: &Counter) {
        if let Some(listing) = counter.listing() {
            self.0.remove(listing.due_ms, hash);
        }
    }

    /// Lists a newly placed counter at the time in its listing. One with units in doubt to give
    /// back is due soon.
    pub(super) fn adopt(&mut self, hash: u64, counter: &mut Counter) {
        let settles = counter.settles();
        let Some(listing) = counter.listing_mut() else { return };
        if settles && listing.due_ms == 0 {
            listing.due_ms = SOON_MS;
        }
        if listing.due_ms != 0 {
            self.0.insert(listing.due_ms, hash);
        }
    }

    /// Removes a counter without uncommitted changes from the list, unless it has units in doubt to
    /// give back.
    pub(super) fn end(&mut self, hash: u64, counter: &mut Counter) {
        if let Some(listing) = counter.listing() {
            self.0.remove(listing.due_ms, hash);
        }
        counter.end_listing();
        self.adopt(hash, counter);
    }

    /// Returns the next key to commit now. Removes counters at rest from the list, and relists
    /// postponed ones. A returned counter stays listed for a second, or until it is committed.
    pub(super) fn pop_due(&mut self, table: &mut Table<Entry>, now_ms: u64) -> Option<Box<[u8]>> {
        while let Some((due_ms, hash)) = self.0.first_due(now_ms) {
            self.0.remove(due_ms, hash);
            let found = table.find(hash, |entry| is_listed(entry, due_ms));
            let Some(key) = found.map(|entry| Box::<[u8]>::from(entry.key())) else { continue };
            let counter = table.get_mut(hash, &key).and_then(counter_mut).expect("a counter was found there");
            let (is_ripe, max_age_ms) = (counter.is_ripe(), counter.terms().max_age_ms);
            let (is_committed, settle_at) = (counter.is_committed(), counter.settle_at(now_ms));
            let listing = counter.listing_mut().expect("a counter was found by its listing");
            let commit_at = match is_committed {
                true => None,
                false if is_ripe => Some(now_ms),
                false => Some(listing.since_ms.saturating_add(max_age_ms)),
            };
            let Some(at) = [commit_at, settle_at].into_iter().flatten().min() else {
                counter.end_listing();
                continue;
            };
            let is_due = at <= now_ms;
            listing.due_ms = if is_due { now_ms.saturating_add(RETRY_MS) } else { at };
            self.0.insert(listing.due_ms, hash);
            if is_due {
                return Some(key);
            }
        }
        None
    }

    /// The keys of all counters with uncommitted changes or reservations. O(listed).
    pub(super) fn keys(&self, table: &Table<Entry>) -> Vec<Box<[u8]>> {
        let uncommitted = self.listed(table).filter(|(_, counter, _)| !counter.is_committed());
        uncommitted.map(|(entry, ..)| entry.key().into()).collect()
    }

    /// Sums up what is uncommitted. O(listed).
    pub(super) fn exposure(&self, table: &Table<Entry>) -> Exposure {
        let mut sum = Exposure::default();
        for (_, counter, listing) in self.listed(table) {
            if counter.open() == 0 {
                continue;
            }
            let units = counter.open().unsigned_abs();
            let is_exact = matches!(counter.terms().promise, tidemark_counter::Promise::Exact { .. });
            sum.add(Exposure {
                counters: 1,
                units: if is_exact { 0 } else { units },
                reserved: if is_exact { units } else { 0 },
                since_ms: (!is_exact).then_some(listing.since_ms),
            });
        }
        sum
    }

    fn listed<'t>(
        &'t self,
        table: &'t Table<Entry>,
    ) -> impl Iterator<Item = (&'t Entry, &'t Counter, &'t Listing)> + 't {
        self.0.iter().filter_map(|(due_ms, hash)| {
            let entry = table.find(hash, |entry| is_listed(entry, due_ms))?;
            let counter = counter(entry)?;
            Some((entry, counter, counter.listing()?))
        })
    }
}

/// Whether an entry is a counter that is listed at this time.
fn is_listed(entry: &Entry, due_ms: u64) -> bool {
    counter(entry).and_then(Counter::listing).is_some_and(|listing| listing.due_ms == due_ms)
}

fn counter(entry: &Entry) -> Option<&Counter> {
    entry.object().and_then(Counter::from_object)
}

fn counter_mut(entry: &mut Entry) -> Option<&mut Counter> {
    entry.object_mut().and_then(Counter::from_object_mut)
}

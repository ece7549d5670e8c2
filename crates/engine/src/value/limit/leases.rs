//! Leases of a concurrency limit, which assigns their IDs.

use crate::persist::record::{Cursor, put_varint};
use std::collections::VecDeque;
use std::time::Duration;
use tidemark_counter::limiter::{Concurrency, Lease, Limiter, MAX_LIMIT, Time};

/// Largest ID. IDs from the clock are far below it.
const LAST_NAME: u64 = i64::MAX as u64;

/// Leases: their IDs, units and ends.
///
/// An ID is the microsecond of the grant, counted from 1970, or the previous ID plus one if that is
/// not greater. A key that is deleted automatically stays until the clock has passed its last ID
/// (`fresh_names_ms`). So no ID is assigned twice, unless a client deletes the key or changes its
/// algorithm, and the clock is set back or a burst has run ahead of it. Until 2255, IDs fit the
/// integers of languages with only floating-point numbers.
///
/// Equivalent to [`Concurrency`], but faster for many leases: the units held are known, so a grant
/// costs only the leases that have ended since, and a refusal those that must end first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leases {
    /// Last assigned ID; 0: none.
    last_id: u64,
    /// In order of their ends, including those that have ended since the last grant.
    held: VecDeque<Lease>,
    /// Units of all of these.
    units: u128,
}

impl Leases {
    /// Returns the last assigned ID; 0: none.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Iterates over all recorded leases in order of their ends.
    pub fn noted(&self) -> impl ExactSizeIterator<Item = &Lease> + Clone {
        self.held.range(..)
    }

    /// Iterates over the leases that have not ended, in order of their ends.
    pub fn live(&self, now: Time) -> impl ExactSizeIterator<Item = &Lease> + Clone {
        self.held.range(self.ended(now)..)
    }

    /// Returns the units of all recorded leases.
    pub fn units(&self) -> u64 {
        u64::try_from(self.units).unwrap_or(u64::MAX)
    }

    /// Returns when the clock gives only unused IDs. Milliseconds since 1970.
    pub(super) fn fresh_names_ms(&self) -> u64 {
        (self.last_id + 1).div_ceil(1000)
    }

    /// Removes all leases, but keeps the last ID.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.units = 0;
    }

    /// Extends a lease to `term` from now; never shortens it. Returns the lease; `None` if there is
    /// none or it has ended.
    pub(super) fn renew(&mut self, term: Duration, now: Time, id: u64) -> Option<Lease> {
        let index = self.held.iter().position(|lease| lease.id == id && lease.is_live(now))?;
        let before = self.held[index];
        let after = Lease { end_ns: end_ns(now, term).max(before.end_ns), ..before };
        if after != before {
            self.held.remove(index);
            self.insert(after);
        }
        Some(after)
    }

    /// Releases the leases with these IDs, which must be sorted. Returns how many had not ended.
    pub(super) fn release(&mut self, now: Time, ids: &[u64]) -> usize {
        assert!(ids.is_sorted(), "the names of leases are searched: {ids:?}");
        self.forget_ended(now);
        let before = self.held.len();
        let mut released = 0_u128;
        self.held.retain(|lease| {
            let is_held = ids.binary_search(&lease.id).is_err();
            released += if is_held { 0 } else { u128::from(lease.units) };
            is_held
        });
        self.units -= released;
        before - self.held.len()
    }

    /// Returns how many leases have ended; they are the first ones.
    fn ended(&self, now: Time) -> usize {
        self.held.partition_point(|lease| !lease.is_live(now))
    }

    /// Returns the units of the leases that have not ended.
    fn live_units(&self, now: Time) -> u128 {
        self.units - units_of(self.held.range(..self.ended(now)))
    }

    fn forget_ended(&mut self, now: Time) {
        self.units = self.live_units(now);
        self.held.drain(..self.ended(now));
    }

    /// Inserts a lease after all that end at the same time or earlier.
    fn insert(&mut self, lease: Lease) {
        let index = self.held.partition_point(|other| other.end_ns <= lease.end_ns);
        self.held.insert(index, lease);
    }

    /// Appends the snapshot form.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        put_varint(into, self.last_id);
        put_varint(into, self.held.len() as u64);
        for lease in &self.held {
            [lease.id, lease.units, lease.end_ns].into_iter().for_each(|number| put_varint(into, number));
        }
    }

    /// Parses the snapshot form; `None` if it is invalid.
    pub(super) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let last_id = bytes.varint().filter(|id| *id <= LAST_NAME)?;
        let count = bytes.varint()?;
        let held: VecDeque<Lease> = (0..count)
            .map(|_| {
                let lease = Lease { id: bytes.varint()?, units: bytes.varint()?, end_ns: bytes.varint()? };
                let is_sound = (1..=last_id).contains(&lease.id) && (1..=MAX_LIMIT).contains(&lease.units);
                is_sound.then_some(lease)
            })
            .collect::<Option<_>>()?;
        let units = units_of(held.iter());
        held.iter().is_sorted_by_key(|lease| lease.end_ns).then_some(Self { last_id, held, units })
    }
}

fn units_of<'a>(leases: impl Iterator<Item = &'a Lease>) -> u128 {
    leases.map(|lease| u128::from(lease.units)).sum()
}

/// Returns the end of a lease that starts now.
fn end_ns(now: Time, term: Duration) -> u64 {
    now.as_nanos().saturating_add(u64::try_from(term.as_nanos()).unwrap_or(u64::MAX))
}

/// A concurrency limit as a limiter: each grant is a lease.
pub(super) struct ByLeases(pub(super) Concurrency);

impl ByLeases {
    fn has_room(&self, count: usize, used: u128, amount: u64) -> bool {
        used + u128::from(amount) <= u128::from(self.0.limit()) && count < self.0.leases_max()
    }
}

impl Limiter for ByLeases {
    type State = Leases;

    fn fresh(&self) -> Leases {
        Leases::default()
    }

    fn limit(&self) -> u64 {
        self.0.limit()
    }

    fn remaining(&self, state: &Leases, now: Time) -> u64 {
        if state.live(now).len() >= self.0.leases_max() {
            return 0;
        }
        let used = u64::try_from(state.live_units(now)).unwrap_or(u64::MAX);
        self.0.limit().saturating_sub(used)
    }

    fn wait(&self, state: &Leases, now: Time, amount: u64) -> Option<Duration> {
        if amount > self.0.limit() || state.last_id == LAST_NAME {
            return None;
        }
        let live = state.live(now);
        let (mut count, mut used, mut wait) = (live.len(), state.live_units(now), Duration::ZERO);
        for lease in live {
            if self.has_room(count, used, amount) {
                break;
            }
            count -= 1;
            used -= u128::from(lease.units);
            wait = lease.left(now);
        }
        assert!(
            self.has_room(count, used, amount),
            "no room for {amount} units beside {count} leases of {used}"
        );
        Some(wait)
    }

    fn grant(&self, state: &mut Leases, now: Time, amount: u64) {
        state.forget_ended(now);
        let (count, used) = (state.held.len(), state.units);
        assert!(
            self.has_room(count, used, amount),
            "no room for {amount} units beside {count} leases of {used}"
        );
        state.last_id = (now.as_nanos() / 1000).max(state.last_id + 1);
        state.units += u128::from(amount);
        state.insert(Lease { id: state.last_id, units: amount, end_ns: end_ns(now, self.0.term()) });
    }

    /// Does nothing: a lease is released by its ID.
    fn refund(&self, _: &mut Leases, _: Time, _: u64) {}

    fn idle_at(&self, state: &Leases) -> Time {
        state.held.back().map_or(Time::ZERO, Lease::end)
    }
}

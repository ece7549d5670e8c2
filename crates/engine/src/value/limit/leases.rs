//! Leases of a concurrency limit, whose names the limit itself gives.

use crate::persist::record::{Cursor, put_varint};
use std::collections::VecDeque;
use std::time::Duration;
use tidemark_counter::limiter::{Concurrency, Lease, Limiter, MAX_LIMIT, Time};

/// The last name that there can be. What time gives is far below it.
const LAST_NAME: u64 = i64::MAX as u64;

/// Who holds how much until when.
///
/// A lease is named by the microsecond of its grant, counted from 1970, or by the next number if that is not greater than the name before;
/// a key that goes by itself stays until time gives names that were not given (`fresh_names_ms`). So none is given twice,
/// unless somebody has deleted the key, or made it a limiter of another kind, and the clock is set back behind a name or a burst has run
/// ahead of the clock. Until 2255 names fit the integers of
/// languages that have only floating-point numbers.
///
/// It does what [`Concurrency`] does with its leases, in less time where there are many: what is held is known, and so a grant costs what
/// has ended meanwhile, and a refusal what has to end first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leases {
    /// The name that was given last; 0: none was.
    last_id: u64,
    /// In the order of their ends, those that have ended since the last grant among them.
    held: VecDeque<Lease>,
    /// What all of these hold.
    units: u128,
}

impl Leases {
    /// The name that was given last; 0: none was.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Every lease that is noted, in the order of their ends.
    pub fn noted(&self) -> impl ExactSizeIterator<Item = &Lease> + Clone {
        self.held.range(..)
    }

    /// Those that have not ended, in the order of their ends.
    pub fn live(&self, now: Time) -> impl ExactSizeIterator<Item = &Lease> + Clone {
        self.held.range(self.ended(now)..)
    }

    /// What all that are noted hold together. Units.
    pub fn units(&self) -> u64 {
        u64::try_from(self.units).unwrap_or(u64::MAX)
    }

    /// From when on time gives only names that were not given. Milliseconds since 1970.
    pub(super) fn fresh_names_ms(&self) -> u64 {
        (self.last_id + 1).div_ceil(1000)
    }

    /// Forgets all, but not which names were given.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.units = 0;
    }

    /// Has a lease last for a term from now on, if it lasts no longer anyway: what has become of it, `None` if there is none or it
    /// has ended.
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

    /// Gives back what is held under names, which are in order, and says how many of them had not ended.
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

    /// How many of the first have ended.
    fn ended(&self, now: Time) -> usize {
        self.held.partition_point(|lease| !lease.is_live(now))
    }

    /// What those hold that have not ended. Units.
    fn live_units(&self, now: Time) -> u128 {
        self.units - units_of(self.held.range(..self.ended(now)))
    }

    fn forget_ended(&mut self, now: Time) {
        self.units = self.live_units(now);
        self.held.drain(..self.ended(now));
    }

    /// Behind all that end as early or earlier.
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

    /// Reads the snapshot form; `None` if the bytes are not one.
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

/// When a lease ends that begins now.
fn end_ns(now: Time, term: Duration) -> u64 {
    now.as_nanos().saturating_add(u64::try_from(term.as_nanos()).unwrap_or(u64::MAX))
}

/// A concurrency limit as one of the limiters: each grant is a lease of its own.
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

    /// Nothing: a lease is given back by its name.
    fn refund(&self, _: &mut Leases, _: Time, _: u64) {}

    fn idle_at(&self, state: &Leases) -> Time {
        state.held.back().map_or(Time::ZERO, Lease::end)
    }
}

//! The clock of a simulation, which drives its tickers.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use super::ticking::Ticking;
use crate::identity::subject::Id;
use crate::sync::unpoisoned;

/// A clock that moves only when it is advanced, and its tickers.
#[derive(Default)]
pub(crate) struct SimulatedClock {
    schedule: Mutex<Schedule>,
}

#[derive(Default)]
struct Schedule {
    nanos: u64,
    /// By the time at which they are due next; the older one first if equal.
    entries: BTreeMap<(u64, Id), Entry>,
    /// When each ticker is due.
    due: HashMap<Id, u64>,
}

struct Entry {
    ticker: Weak<dyn Ticking>,
    interval_nanos: u64,
}

impl SimulatedClock {
    pub(crate) fn nanos(&self) -> u64 {
        self.lock().nanos
    }

    /// Advances the clock, and sends the ticks that are due by then, in the order in which they are
    /// due.
    pub(crate) fn advance(&self, time: Duration) {
        let mut schedule = self.lock();
        schedule.nanos = schedule.nanos.saturating_add(nanos_of(time));
        drop(schedule);
        while let Some((due, entry)) = self.take_due() {
            self.serve(due, entry);
        }
    }

    /// Schedules the ticker at each interval from now on.
    pub(super) fn add(&self, ticker: &Arc<dyn Ticking>, interval: Duration) {
        let mut schedule = self.lock();
        let entry = Entry { ticker: Arc::downgrade(ticker), interval_nanos: nanos_of(interval) };
        let due = schedule.nanos.checked_add(entry.interval_nanos);
        schedule.plan(due, ticker.id(), entry);
    }

    /// Unschedules the ticker.
    pub(super) fn remove(&self, id: Id) {
        let mut schedule = self.lock();
        if let Some(due) = schedule.due.remove(&id) {
            let entry = schedule.entries.remove(&(due, id));
            assert!(entry.is_some(), "ticker {id:?} is due at {due} ns, and not in the schedule");
        }
    }

    fn take_due(&self) -> Option<(u64, Entry)> {
        let mut schedule = self.lock();
        let now = schedule.nanos;
        let first = schedule.entries.first_entry().filter(|first| first.key().0 <= now)?;
        let ((due, id), entry) = first.remove_entry();
        schedule.due.remove(&id);
        Some((due, entry))
    }

    /// Sends the tick that was due, and schedules the next. Without the lock: this may drop the
    /// last reference to the ticker.
    fn serve(&self, due: u64, entry: Entry) {
        let Some(ticker) = entry.ticker.upgrade().filter(|ticker| !ticker.is_over()) else { return };
        let is_sent = Arc::clone(&ticker).send();
        let mut schedule = self.lock();
        let next = if is_sent {
            due.checked_add(entry.interval_nanos)
        } else {
            // Too many ticks wait: the circuit must catch up first, which it cannot do before time
            // has passed.
            due_after(due, entry.interval_nanos, schedule.nanos)
        };
        schedule.plan(next, ticker.id(), entry);
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        unpoisoned(self.schedule.lock())
    }
}

impl Schedule {
    /// Schedules the entry, unless the time overflows.
    fn plan(&mut self, due: Option<u64>, id: Id, entry: Entry) {
        if let Some(due) = due {
            self.entries.insert((due, id), entry);
            self.due.insert(id, due);
        }
    }
}

fn nanos_of(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the first of `due + interval`, `due + 2 * interval`, and so on that is after `now`.
fn due_after(due: u64, interval: u64, now: u64) -> Option<u64> {
    assert!(due <= now && interval > 0, "due at {due} ns, each {interval} ns, and served at {now} ns");
    let passed = (now - due) / interval + 1;
    due.checked_add(passed.checked_mul(interval)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_passed_at_once_and_the_beat_is_kept() {
        assert_eq!(due_after(10, 10, 10), Some(20));
        assert_eq!(due_after(10, 10, 19), Some(20));
        assert_eq!(due_after(10, 10, 20), Some(30));
        assert_eq!(due_after(10, 10, u64::MAX), None);
    }
}

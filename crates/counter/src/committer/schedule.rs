//! Schedule of dirty counters.

use super::keys::{Keys, Timing};
use crate::promise::Promise;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A dirty counter.
#[derive(Debug)]
pub(crate) struct Dirty<K> {
    pub(crate) key: K,
    /// Earliest time at which it may have become dirty, since the start of the committer.
    pub(crate) since: Duration,
    timing: Timing,
    /// Position at the last check; for exact counters.
    seen_at: Option<i64>,
}

impl<K> Dirty<K> {
    pub(crate) fn new(key: K, timing: Timing, since: Duration) -> Self {
        Self { key, since, timing, seen_at: None }
    }
}

/// Dirty counters that wait for their time. Those with the same maximum age form one queue, in
/// order of arrival, which is the order in which they are due.
#[derive(Debug)]
pub(crate) struct Schedule<K> {
    lines: BTreeMap<Duration, Line<K>>,
    interval: Duration,
    /// Number of counters that one interval checks.
    budget: usize,
    next_interval: Duration,
    /// The queue that the next interval checks first.
    turn: Duration,
}

#[derive(Debug)]
struct Line<K> {
    /// `None` is the place of an entry that was taken.
    waiting: VecDeque<Option<Dirty<K>>>,
    filled: usize,
    /// Index at which the next interval continues.
    cursor: usize,
}

impl<K> Schedule<K> {
    pub(crate) fn new(interval: Duration, budget: usize) -> Self {
        let next_interval = Duration::ZERO;
        Self { lines: BTreeMap::new(), interval, budget: budget.max(1), next_interval, turn: Duration::ZERO }
    }

    /// Returns the time since which the longest-waiting counter is dirty.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        self.lines
            .values()
            .filter_map(|line| line.waiting.iter().flatten().next().map(|dirty| dirty.since))
            .min()
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = &K> {
        self.lines.values().flat_map(|line| line.waiting.iter().flatten().map(|dirty| &dirty.key))
    }

    pub(crate) fn push(&mut self, dirty: Dirty<K>) {
        let line = self.lines.entry(dirty.timing.max_age).or_insert_with(Line::new);
        line.close_up();
        line.waiting.push_back(Some(dirty));
        line.filled += 1;
    }

    /// Takes all waiting counters.
    pub(crate) fn take_all(&mut self) -> Vec<Dirty<K>> {
        std::mem::take(&mut self.lines)
            .into_values()
            .flat_map(|line| line.waiting.into_iter().flatten())
            .collect()
    }

    /// Takes the counters that have reached their age, and those found to have reached their
    /// threshold. `room` is the capacity of a batch.
    pub(crate) fn take_due(
        &mut self,
        now: Duration,
        room: usize,
        due: &mut Vec<Dirty<K>>,
        keys: &impl Keys<Key = K>,
    ) {
        let mut again = Vec::new();
        for (age, line) in &mut self.lines {
            while let Some(dirty) = line.pop_if(|dirty| dirty.since.saturating_add(*age) <= now) {
                if dirty.at_its_age(keys) { due.push(dirty) } else { again.push(dirty) }
            }
        }
        if !due.is_empty() {
            self.take_along(now, room, due, keys);
        }
        for mut dirty in again {
            dirty.seen_at = Some(keys.counter(&dirty.key).position());
            dirty.since = now;
            self.push(dirty);
        }
        if now >= self.next_interval {
            self.next_interval = now + self.interval;
            self.take_thresholds(due, keys);
        }
        self.lines.retain(|_, line| line.filled > 0);
    }

    /// Fills a batch that is sent anyway with counters past half their age.
    ///
    /// Counters in steady use thus become due together, and the store is called once per age
    /// instead of once per interval. If more counters are due than a batch holds, this saves
    /// nothing.
    fn take_along(&mut self, now: Duration, room: usize, due: &mut Vec<Dirty<K>>, keys: &impl Keys<Key = K>) {
        for (age, line) in &mut self.lines {
            while due.len() < room
                && let Some(dirty) = line.pop_if(|dirty| {
                    dirty.since.saturating_add(*age / 2) <= now && dirty.is_written_behind(keys)
                })
            {
                due.push(dirty);
            }
        }
    }

    fn take_thresholds(&mut self, due: &mut Vec<Dirty<K>>, keys: &impl Keys<Key = K>) {
        let mut budget = self.budget;
        let turn = self.turn;
        let order: Vec<_> =
            self.lines.range(turn..).chain(self.lines.range(..turn)).map(|(age, _)| *age).collect();
        for age in order {
            let line = self.lines.get_mut(&age).expect("lines stay while they are looked at");
            let looks = line.waiting.len().min(budget);
            for _ in 0..looks {
                if let Some(dirty) = line.look(|dirty| dirty.has_reached_low(keys)) {
                    due.push(dirty);
                }
            }
            budget -= looks;
            if budget == 0 {
                // Starts with the unfinished queue next time.
                self.turn = age;
                return;
            }
        }
    }

    /// Returns when something may be due next.
    pub(crate) fn next(&self) -> Option<Duration> {
        (!self.lines.is_empty()).then_some(self.next_interval)
    }
}

impl<K> Dirty<K> {
    /// The same counter, dirty since another time.
    pub(crate) fn since(self, since: Duration) -> Self {
        Self { since, ..self }
    }

    /// Whether the counter is committed at its age. The unused part of a reservation is kept while
    /// the counter is in use.
    fn at_its_age(&self, keys: &impl Keys<Key = K>) -> bool {
        let books = keys.counter(&self.key).books();
        match books.promise() {
            Promise::Relaxed { .. } => true,
            Promise::Exact { .. } => self.seen_at == Some(books.position()),
        }
    }

    /// Whether the counter moves before the store does.
    fn is_written_behind(&self, keys: &impl Keys<Key = K>) -> bool {
        matches!(keys.counter(&self.key).promise(), Promise::Relaxed { .. })
    }

    fn has_reached_low(&self, keys: &impl Keys<Key = K>) -> bool {
        self.is_written_behind(keys)
            && keys.counter(&self.key).books().uncommitted() >= self.timing.low.max(1)
    }
}

impl<K> Line<K> {
    fn new() -> Self {
        Self { waiting: VecDeque::new(), filled: 0, cursor: 0 }
    }

    /// Removes the empty places when they are the majority.
    fn close_up(&mut self) {
        if self.waiting.len() > 2 * self.filled + 64 {
            self.waiting.retain(Option::is_some);
            self.cursor = 0;
        }
    }

    /// Takes the first entry if `is_due` returns true.
    fn pop_if(&mut self, is_due: impl FnOnce(&Dirty<K>) -> bool) -> Option<Dirty<K>> {
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        if !is_due(self.waiting.front()?.as_ref()?) {
            return None;
        }
        self.cursor = self.cursor.saturating_sub(1);
        self.filled -= 1;
        self.waiting.pop_front()?
    }

    /// Checks the next entry, and takes it if `is_due` returns true.
    fn look(&mut self, is_due: impl FnOnce(&Dirty<K>) -> bool) -> Option<Dirty<K>> {
        if self.cursor >= self.waiting.len() {
            self.cursor = 0;
        }
        let place = self.waiting.get_mut(self.cursor)?;
        self.cursor += 1;
        if !is_due(place.as_ref()?) {
            return None;
        }
        self.filled -= 1;
        place.take()
    }
}

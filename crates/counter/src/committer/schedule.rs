//! Which dirty counters are due.

use super::keys::{Keys, Timing};
use crate::promise::Promise;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A dirty counter.
#[derive(Debug)]
pub(crate) struct Dirty<K> {
    pub(crate) key: K,
    /// Since when it may have been; the time since the committer began.
    pub(crate) since: Duration,
    timing: Timing,
    /// Where it was when it was looked at last, for those that reserve.
    seen_at: Option<i64>,
}

impl<K> Dirty<K> {
    pub(crate) fn new(key: K, timing: Timing, since: Duration) -> Self {
        Self { key, since, timing, seen_at: None }
    }
}

/// Dirty counters that wait for their time. Those of one age stand in a line, in the order in which they came, which is the order in
/// which they are due.
#[derive(Debug)]
pub(crate) struct Schedule<K> {
    lines: BTreeMap<Duration, Line<K>>,
    interval: Duration,
    /// How many counters are looked at in one interval.
    budget: usize,
    next_interval: Duration,
    /// The line that is to be looked at first in the next interval.
    turn: Duration,
}

#[derive(Debug)]
struct Line<K> {
    /// `None` has been taken out of its place.
    waiting: VecDeque<Option<Dirty<K>>>,
    filled: usize,
    /// Where the next interval begins to look.
    cursor: usize,
}

impl<K> Schedule<K> {
    pub(crate) fn new(interval: Duration, budget: usize) -> Self {
        let next_interval = Duration::ZERO;
        Self { lines: BTreeMap::new(), interval, budget: budget.max(1), next_interval, turn: Duration::ZERO }
    }

    /// Since when the counter that waits for longest does.
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

    /// Takes everything that waits.
    pub(crate) fn take_all(&mut self) -> Vec<Dirty<K>> {
        std::mem::take(&mut self.lines)
            .into_values()
            .flat_map(|line| line.waiting.into_iter().flatten())
            .collect()
    }

    /// Takes what is due by its age, and what an interval finds to have reached its threshold. `room` is how many a batch has.
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

    /// Fills up a batch that goes in any case with those that are past half their age.
    ///
    /// So counters that are in use all the time come to be due together, and the store is called once in an age and not once in an
    /// interval. Where more are due than a batch takes, there is nothing to save.
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
                // The line that has not been looked at to its end is the first one next time.
                self.turn = age;
                return;
            }
        }
    }

    /// When something may be due next.
    pub(crate) fn next(&self) -> Option<Duration> {
        (!self.lines.is_empty()).then_some(self.next_interval)
    }
}

impl<K> Dirty<K> {
    /// The same, as of another time.
    pub(crate) fn since(self, since: Duration) -> Self {
        Self { since, ..self }
    }

    /// Whether it is committed at its age. What is unused of a reservation is kept as long as the counter is in use.
    fn at_its_age(&self, keys: &impl Keys<Key = K>) -> bool {
        let books = keys.counter(&self.key).books();
        match books.promise() {
            Promise::Relaxed { .. } => true,
            Promise::Exact { .. } => self.seen_at == Some(books.position()),
        }
    }

    /// Whether moves come first and the store later.
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

    /// Gives the empty places away when they are most of all.
    fn close_up(&mut self) {
        if self.waiting.len() > 2 * self.filled + 64 {
            self.waiting.retain(Option::is_some);
            self.cursor = 0;
        }
    }

    /// Takes the first one if `is_due` says so.
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

    /// Looks at the next one, and takes it if `is_due` says so.
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

//! Settings of a counter by name.

use crate::account::Kind;
use crate::committer::{Error, Timing};
use crate::counter::Counter;
use crate::promise::Promise;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

/// What a counter is, what a crash may do to it, and when it is committed.
///
/// ```
/// use tidemark_counter::{Kind, Promise, counters::Settings};
///
/// let quota = Settings { kind: Kind::Quota { limit: 1_000 }, promise: Promise::Exact { block: 50 }, ..Settings::default() };
/// assert_eq!(quota.high, 500);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Whether it has a limit. Plain by default.
    pub kind: Kind,
    /// What a crash may do to it. By default, relaxed with a cap of 1,000.
    pub promise: Promise,
    /// Uncommitted units from which a relaxed counter is committed immediately, while callers
    /// continue up to the cap. 500 by default. With a value of the cap or more the commit starts at
    /// the cap, where callers wait.
    pub high: u64,
    /// Uncommitted units from which a relaxed counter is committed at the next interval. 100 by
    /// default.
    pub low: u64,
    /// Longest time until a commit, from the *first* uncommitted change. An exact counter that has
    /// not moved for this long returns the unused part of its reservation. 1 s by default. A batch
    /// sent because of a counter's age also takes counters past half their age, if there is room,
    /// so that counters in steady use are committed together.
    pub max_age: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::Plain,
            promise: Promise::Relaxed { cap: 1_000 },
            high: 500,
            low: 100,
            max_age: Duration::from_secs(1),
        }
    }
}

impl Settings {
    pub(crate) fn timing(&self) -> Timing {
        Timing { max_age: self.max_age, low: self.low }
    }

    /// Returns the settings with all numbers within their ranges.
    pub(crate) fn bounded(self) -> Self {
        let promise = match self.promise {
            Promise::Relaxed { cap } => Promise::Relaxed { cap: cap.max(1) },
            Promise::Exact { block } => Promise::Exact { block: block.max(1) },
        };
        Self { promise, ..self }
    }

    /// Returns the number of open units from which a commit is requested, 0 for never.
    fn alarm(&self) -> u64 {
        match self.promise {
            Promise::Relaxed { cap } if self.high < cap => self.high.max(1),
            _ => 0,
        }
    }

    /// Creates a counter of which the store has `position`.
    pub(crate) fn counter(&self, position: i64) -> Counter {
        let counter = Counter::new(self.kind, self.promise, position);
        counter.set_alarm(self.alarm());
        counter
    }

    pub(crate) fn apply_to(&self, counter: &Counter) {
        counter.set_kind(self.kind);
        counter.set_promise(self.promise);
        counter.set_alarm(self.alarm());
    }

    /// Most different settings in a process, limits aside.
    pub(crate) const MAX_DIFFERENT: usize = 1 << 16;
}

/// Interned settings, so that a counter stores two bytes for them. Limits are stored in the
/// counters.
#[derive(Debug, Default)]
pub(crate) struct AllSettings(RwLock<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    list: Vec<Settings>,
    numbers: HashMap<Settings, u16>,
}

impl AllSettings {
    fn read(&self) -> RwLockReadGuard<'_, Numbered> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the settings with this number.
    pub(crate) fn get(&self, number: u16) -> Settings {
        self.read().list[usize::from(number)]
    }

    /// Returns the number of the settings, which are interned if they are new.
    pub(crate) fn number(&self, settings: &Settings) -> Result<u16, Error> {
        let settings = Settings { kind: Kind::Plain, ..*settings };
        if let Some(number) = self.read().numbers.get(&settings) {
            return Ok(*number);
        }
        let mut numbered = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbered.numbers.get(&settings) {
            return Ok(*number);
        }
        let max = Settings::MAX_DIFFERENT;
        let number = u16::try_from(numbered.list.len()).map_err(|_| Error::TooManySettings { max })?;
        numbered.list.push(settings);
        numbered.numbers.insert(settings, number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_by_their_limits_only_have_one_number() {
        let all = AllSettings::default();
        let limited = |limit| Settings { kind: Kind::Quota { limit }, ..Settings::default() };
        assert_eq!(all.number(&limited(1)), all.number(&limited(2)));
        for low in 0..Settings::MAX_DIFFERENT as u64 {
            let settings = Settings { low, ..Settings::default() };
            let number = all.number(&settings).unwrap();
            assert_eq!(all.get(number), settings);
        }
        let one_more = Settings { low: u64::MAX, ..Settings::default() };
        assert!(all.number(&one_more).is_err());
    }

    #[test]
    fn a_threshold_beyond_the_cap_is_left_to_the_cap() {
        let with = |high, promise| Settings { promise, high, ..Settings::default() }.alarm();
        assert_eq!(with(50, Promise::Relaxed { cap: 100 }), 50);
        assert_eq!(with(0, Promise::Relaxed { cap: 100 }), 1);
        assert_eq!(with(u64::MAX, Promise::Relaxed { cap: 100 }), 0);
        assert_eq!(with(50, Promise::Exact { block: 100 }), 0);
    }
}

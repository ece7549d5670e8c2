//! Schedules: stock that is released at set times, and may lapse at the end of its window.

use crate::catalogue::item::AMOUNT_MAX;
use crate::catalogue::rules::WINDOW_MS_MAX;

/// Maximum number of releases of a pool.
pub const RELEASES_MAX: usize = 1 << 16;

/// Latest time in a schedule: the end of the year 9999. Milliseconds since 1970-01-01 UTC.
pub const MOMENT_MS_MAX: u64 = 253_402_300_799_999;

/// Units of an item, released in consecutive windows. A [`Catalogue`](crate::Catalogue) names the
/// item by id, a [`Pool`](crate::Pool) by number.
///
/// ```
/// use tidemark_pool::{Release, Unsold};
///
/// // Three cars in a day of 24 hours: in the fourth, the twelfth and the twentieth.
/// let cars = Release { item: (), units: 3, from_ms: 1000, every_ms: 3_600_000, times: 24, unsold: Unsold::Stays };
/// let hours: Vec<u64> = (0..24).filter(|hour| cars.come_in(hour + 1) > cars.come_in(*hour)).collect();
/// assert_eq!(hours, [3, 11, 19]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release<I = Box<str>> {
    /// The item.
    pub item: I,
    /// Number of units in all windows together, spread evenly: the first *k* of *n* windows release
    /// units · *k* / *n*, rounded to nearest.
    pub units: u64,
    /// Start of the first window. 1 to [`MOMENT_MS_MAX`], in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// Length of a window. 1 to [`WINDOW_MS_MAX`] milliseconds.
    pub every_ms: u64,
    /// Number of windows: at least one, and the last ends by [`MOMENT_MS_MAX`].
    pub times: u64,
    /// What happens to units that are not drawn.
    pub unsold: Unsold,
}

/// What happens to the remaining units of an item when a window ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unsold {
    /// They stay in stock.
    #[default]
    Stays,
    /// The whole stock lapses, whatever its origin, before units are released at the same time.
    Lapses,
}

/// Releases of a pool, each checked on its own.
///
/// ```
/// use tidemark_pool::{Catalogue, Item, Pool, Release, Schedule, Secret, Unsold, selector::WideTree};
///
/// let release = Release { item: "mug".into(), units: 20, from_ms: 60_000, every_ms: 1000, times: 10, unsold: Unsold::Stays };
/// let catalogue = Catalogue::new(vec![Item::limited("mug", 1, 0)]).unwrap();
/// let catalogue = catalogue.scheduled(Schedule::new(vec![release]).unwrap()).unwrap();
/// let mut pool = Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
/// assert!(pool.draw().is_err(), "there is nothing yet");
/// assert!(pool.advance(61_000_000), "two windows have begun after a minute and a second");
/// assert_eq!(pool.urn().entry(0).unwrap().stock, tidemark_pool::Stock::Limited(4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule<I = Box<str>> {
    releases: Vec<Release<I>>,
}

/// Error in a schedule. Releases are numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// There are more releases than [`RELEASES_MAX`].
    #[error("there are {count} releases, at most {RELEASES_MAX} are possible: use windows that repeat")]
    TooMany {
        /// Number of releases.
        count: usize,
    },
    /// A value is out of range.
    #[error("release {number}: {name} is {value}, and must be 1 to {max}")]
    OutOfRange {
        /// Number of the release.
        number: usize,
        /// What the value is.
        name: &'static str,
        /// The value.
        value: u64,
        /// Maximum.
        max: u64,
    },
    /// The last window ends after [`MOMENT_MS_MAX`].
    #[error("release {number} ends after the year 9999: use fewer or shorter windows")]
    TooLate {
        /// Number of the release.
        number: usize,
    },
    /// The item is not in the catalogue.
    #[error("release {number} is of the item {id:?}, which is not there: name one of the catalogue")]
    UnknownItem {
        /// Number of the release.
        number: usize,
        /// The unknown id.
        id: Box<str>,
    },
    /// The item is unlimited.
    #[error("release {number} is of the item {id:?}, which is unlimited: give it a quantity, which may be 0")]
    Unlimited {
        /// Number of the release.
        number: usize,
        /// Id of the item.
        id: Box<str>,
    },
    /// All units of an item together exceed [`AMOUNT_MAX`].
    #[error("with release {number} there are more than {AMOUNT_MAX} units of {id:?} in all: use fewer")]
    TooManyUnits {
        /// Number of the release.
        number: usize,
        /// The item.
        id: Box<str>,
    },
}

impl<I> Release<I> {
    /// Returns the number of windows that have begun by this time. Milliseconds since 1970.
    pub fn begun(&self, now_ms: u64) -> u64 {
        match now_ms.checked_sub(self.from_ms) {
            Some(since) => self.times.min(since / self.every_ms + 1),
            None => 0,
        }
    }

    /// Returns the number of units released in the first `windows` windows, at most
    /// [`times`](Self::times).
    pub fn come_in(&self, windows: u64) -> u64 {
        debug_assert!(windows <= self.times, "there are not so many windows");
        let (units, times) = (u128::from(self.units), u128::from(self.times));
        // Half a unit is rounded up.
        ((2 * units * u128::from(windows) + times) / (2 * times)) as u64
    }

    /// Returns the number of units released by this time. Milliseconds since 1970.
    pub fn come(&self, now_ms: u64) -> u64 {
        self.come_in(self.begun(now_ms))
    }

    /// Returns the end of the last window. Milliseconds since 1970.
    pub fn end_ms(&self) -> u64 {
        self.from_ms + self.every_ms * self.times
    }

    /// Returns the next time after this one at which units are released or, if they lapse, a window
    /// ends. Milliseconds since 1970.
    pub fn next_ms(&self, now_ms: u64) -> Option<u64> {
        let begun = self.begun(now_ms);
        let begin_of = |window: u64| self.from_ms + self.every_ms * (window - 1);
        match self.unsold {
            Unsold::Lapses if begun < self.times => Some(begin_of(begun + 1)),
            Unsold::Lapses => Some(self.end_ms()).filter(|&end_ms| end_ms > now_ms),
            Unsold::Stays => self.window_of(self.come_in(begun) + 1).map(begin_of),
        }
    }

    /// Returns the last lapse by this time. Milliseconds since 1970.
    pub(crate) fn last_lapse_ms(&self, now_ms: u64) -> Option<u64> {
        let since = now_ms.checked_sub(self.from_ms).filter(|_| self.unsold == Unsold::Lapses)?;
        let ended = self.times.min(since / self.every_ms);
        (ended > 0).then(|| self.from_ms + self.every_ms * ended)
    }

    /// Returns the window that releases a unit; both count from 1. `None` if there are fewer units.
    fn window_of(&self, unit: u64) -> Option<u64> {
        if unit > self.units {
            return None;
        }
        let (units, times) = (u128::from(self.units), u128::from(self.times));
        let window = ((2 * u128::from(unit) - 1) * times).div_ceil(2 * units) as u64;
        debug_assert!(
            self.come_in(window) >= unit && self.come_in(window - 1) < unit,
            "it comes there first"
        );
        Some(window)
    }

    fn check(&self, number: usize) -> Result<(), ScheduleError> {
        for (name, value, max) in [
            ("its number of units", self.units, AMOUNT_MAX),
            ("its beginning in milliseconds since 1970", self.from_ms, MOMENT_MS_MAX),
            ("its window in milliseconds", self.every_ms, WINDOW_MS_MAX),
            ("its number of windows", self.times, MOMENT_MS_MAX),
        ] {
            if !(1..=max).contains(&value) {
                return Err(ScheduleError::OutOfRange { number, name, value, max });
            }
        }
        let length = self.every_ms.checked_mul(self.times);
        let end = length.and_then(|length| length.checked_add(self.from_ms));
        match end {
            Some(end_ms) if end_ms <= MOMENT_MS_MAX => Ok(()),
            _ => Err(ScheduleError::TooLate { number }),
        }
    }
}

impl<I> Default for Schedule<I> {
    fn default() -> Self {
        Self { releases: Vec::new() }
    }
}

impl<I> Schedule<I> {
    /// Creates a schedule from releases.
    ///
    /// # Errors
    /// The first error in a single release.
    pub fn new(releases: Vec<Release<I>>) -> Result<Self, ScheduleError> {
        if releases.len() > RELEASES_MAX {
            return Err(ScheduleError::TooMany { count: releases.len() });
        }
        (1..).zip(&releases).try_for_each(|(number, release)| release.check(number))?;
        Ok(Self { releases })
    }

    /// Returns the releases.
    pub fn releases(&self) -> &[Release<I>] {
        &self.releases
    }

    /// Returns whether there are no releases.
    pub fn is_empty(&self) -> bool {
        self.releases.is_empty()
    }
}

impl Schedule {
    /// Converts ids to item numbers; `None` if an id does not exist.
    pub(crate) fn resolve(&self, find: impl Fn(&str) -> Option<u32>) -> Option<Schedule<u32>> {
        let releases = self.releases.iter().map(|release| {
            let &Release { ref item, units, from_ms, every_ms, times, unsold } = release;
            Some(Release { item: find(item)?, units, from_ms, every_ms, times, unsold })
        });
        Some(Schedule { releases: releases.collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn release() -> impl Strategy<Value = Release<()>> {
        (1..30_u64, 1..20_u64, 1..5_u64, 1..12_u64, any::<bool>()).prop_map(
            |(units, from_ms, every_ms, times, lapses)| {
                let unsold = if lapses { Unsold::Lapses } else { Unsold::Stays };
                Release { item: (), units, from_ms, every_ms, times, unsold }
            },
        )
    }

    proptest! {
        #[test]
        fn the_next_moment_is_the_first_at_which_something_changes(release in release()) {
            prop_assert_eq!(release.check(1), Ok(()));
            for now_ms in 0..100 {
                let changes = |&at: &u64| {
                    release.come(at) > release.come(at - 1)
                        || (release.unsold == Unsold::Lapses
                            && (release.last_lapse_ms(at) == Some(at) || release.begun(at) > release.begun(at - 1)))
                };
                prop_assert_eq!(release.next_ms(now_ms), (now_ms + 1..200).find(changes), "behind {}", now_ms);
            }
            prop_assert_eq!(release.come(release.end_ms() - 1), release.units);
        }

        #[test]
        fn units_come_as_evenly_as_they_can(release in release()) {
            let each: Vec<u64> = (0..release.times).map(|window| release.come_in(window + 1) - release.come_in(window)).collect();
            let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{:?}", each);
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let release = Release {
            item: (),
            units: AMOUNT_MAX,
            from_ms: 1,
            every_ms: 1,
            times: MOMENT_MS_MAX - 1,
            unsold: Unsold::Stays,
        };
        assert_eq!(release.check(1), Ok(()));
        assert_eq!((release.come(0), release.come(u64::MAX)), (0, AMOUNT_MAX));
        assert_eq!((release.next_ms(0), release.next_ms(u64::MAX)), (Some(1), None));
        let longer = Release { times: MOMENT_MS_MAX, ..release };
        assert_eq!(longer.check(7), Err(ScheduleError::TooLate { number: 7 }));
        let longest = Release { every_ms: WINDOW_MS_MAX, ..longer };
        assert_eq!(longest.check(7), Err(ScheduleError::TooLate { number: 7 }));
    }
}

//! Timetable of an urn: its releases, and how far they are done.

use crate::catalogue::schedule::{Release, Schedule, Unsold};
use crate::record::bytes::{Reader, put_number};
use std::collections::BTreeSet;
use std::ops::Range;

/// Releases of an urn. The state follows from one time: everything due by then is done.
#[derive(Debug, Clone)]
pub(super) struct Timetable {
    /// Grouped by item, in the order of the items.
    releases: Box<[Release<u32>]>,
    /// Ranges in `releases`, one for each item that has any: its plan.
    plans: Box<[Range<u32>]>,
    /// Time of the next event of each unfinished plan, and the plan's index.
    due: BTreeSet<(u64, u32)>,
    /// Everything due by this time is done. Milliseconds since 1970.
    now_ms: u64,
}

/// Units released to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Coming {
    pub(super) item: u32,
    /// Whether the units left lapse first.
    pub(super) lapses: bool,
    pub(super) units: u64,
}

impl Timetable {
    /// Creates the timetable of a schedule, with everything due by this time done; `None` if it is
    /// empty.
    pub(super) fn new(schedule: Schedule<u32>, now_ms: u64) -> Option<Box<Self>> {
        let mut releases = schedule.releases().to_vec();
        releases.sort_by_key(|release| release.item);
        let mut plans: Vec<Range<u32>> = Vec::new();
        for (place, release) in (0..).zip(&releases) {
            match plans.last_mut() {
                Some(plan) if releases[plan.start as usize].item == release.item => plan.end = place + 1,
                _ => plans.push(place..place + 1),
            }
        }
        let mut timetable =
            Self { releases: releases.into(), plans: plans.into(), due: BTreeSet::new(), now_ms };
        timetable.due = (0..timetable.plans.len() as u32).filter_map(|plan| timetable.entry(plan)).collect();
        (!timetable.plans.is_empty()).then(|| Box::new(timetable))
    }

    pub(super) fn releases(&self) -> &[Release<u32>] {
        &self.releases
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    pub(super) fn next_ms(&self) -> Option<u64> {
        self.due.first().map(|&(at_ms, _)| at_ms)
    }

    /// Returns the number of units of an item still to come. O(log n).
    pub(super) fn promised(&self, item: u32) -> u64 {
        let item_of = |plan: &Range<u32>| self.releases[plan.start as usize].item;
        let Ok(place) = self.plans.binary_search_by_key(&item, item_of) else { return 0 };
        self.of(place as u32).map(|release| release.units - release.come(self.now_ms)).sum()
    }

    /// Returns what is due by this time, at most one entry for each item.
    pub(super) fn due(&self, now_ms: u64) -> impl Iterator<Item = Coming> {
        self.due.range(..=(now_ms, u32::MAX)).map(move |&(_, plan)| self.coming(plan, now_ms))
    }

    /// Moves forward or back to a time. O(log n) for each item with an event in between, and O(n)
    /// to go back.
    pub(super) fn go_to(&mut self, now_ms: u64) {
        let changed: Vec<u32> = if now_ms > self.now_ms {
            self.due.range(..=(now_ms, u32::MAX)).map(|&(_, plan)| plan).collect()
        } else {
            let changes = |&plan: &u32| self.next_of(plan, now_ms).is_some_and(|at_ms| at_ms <= self.now_ms);
            (0..self.plans.len() as u32).filter(changes).collect()
        };
        for entry in changed.iter().filter_map(|&plan| self.entry(plan)).collect::<Vec<_>>() {
            let was_due = self.due.remove(&entry);
            assert!(was_due, "{entry:?}, a time and a plan, is not among what is due at {}", self.now_ms);
        }
        self.now_ms = now_ms;
        for entry in changed.iter().filter_map(|&plan| self.entry(plan)).collect::<Vec<_>>() {
            self.due.insert(entry);
        }
    }

    /// Returns the entry of a plan in `due`.
    fn entry(&self, plan: u32) -> Option<(u64, u32)> {
        self.next_of(plan, self.now_ms).map(|at_ms| (at_ms, plan))
    }

    fn next_of(&self, plan: u32, now_ms: u64) -> Option<u64> {
        self.of(plan).filter_map(|release| release.next_ms(now_ms)).min()
    }

    fn of(&self, plan: u32) -> impl Iterator<Item = &Release<u32>> {
        let Range { start, end } = self.plans[plan as usize];
        self.releases[start as usize..end as usize].iter()
    }

    /// Returns what a plan releases up to a time, as if each event had been applied on time without
    /// draws in between.
    fn coming(&self, plan: u32, now_ms: u64) -> Coming {
        let lapse = self.of(plan).filter_map(|release| release.last_lapse_ms(now_ms)).max();
        let lapse = lapse.filter(|&at_ms| at_ms > self.now_ms);
        // Units released before the very time of the lapse lapse.
        let since = lapse.map_or(self.now_ms, |at_ms| at_ms - 1);
        let units = self.of(plan).map(|release| release.come(now_ms) - release.come(since)).sum();
        Coming {
            item: self.releases[self.plans[plan as usize].start as usize].item,
            lapses: lapse.is_some(),
            units,
        }
    }

    pub(super) fn write(&self, into: &mut Vec<u8>) {
        put_number(into, self.releases.len() as u64);
        for release in &self.releases {
            let &Release { item, units, from_ms, every_ms, times, unsold } = release;
            let lapses = u64::from(unsold == Unsold::Lapses);
            for number in [u64::from(item), units, from_ms, every_ms, times, lapses] {
                put_number(into, number);
            }
        }
        put_number(into, self.now_ms);
    }

    /// Reads the [output of `write`](Self::write) for this number of items; `None` if it is
    /// invalid.
    #[expect(clippy::option_option, reason = "there may be no timetable, and there may be no sense")]
    pub(super) fn read(reader: &mut Reader<'_>, items: usize) -> Option<Option<Box<Self>>> {
        let count: usize = reader.small().filter(|&count| count <= crate::RELEASES_MAX)?;
        let mut releases = Vec::new();
        for _ in 0..count {
            let item = reader.small::<u32>().filter(|&item| (item as usize) < items)?;
            let (units, from_ms) = (reader.number()?, reader.number()?);
            let (every_ms, times) = (reader.number()?, reader.number()?);
            let unsold = *[Unsold::Stays, Unsold::Lapses].get(reader.small::<usize>()?)?;
            releases.push(Release { item, units, from_ms, every_ms, times, unsold });
        }
        if count == 0 {
            return Some(None);
        }
        if !releases.is_sorted_by_key(|release| release.item) {
            return None;
        }
        let now_ms = reader.number()?;
        let is_bounded = releases.chunk_by(|one, other| one.item == other.item).all(|plan| {
            let units = plan.iter().try_fold(0_u64, |sum, release| sum.checked_add(release.units));
            units.is_some_and(|units| units <= crate::AMOUNT_MAX)
        });
        let schedule = Schedule::new(releases).ok().filter(|_| is_bounded)?;
        Some(Self::new(schedule, now_ms))
    }
}

/// Writes an empty timetable.
pub(super) fn write_none(into: &mut Vec<u8>) {
    put_number(into, 0);
}

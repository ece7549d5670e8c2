//! Compaction: what a series' rules write into other series.
//!
//! ```text
//! source       1  5 │ 12        buckets of 10: the point at 12 closes the first, and opens the next
//! destination  0 ───┘           has one point for every bucket that is over and has points
//! ```
//!
//! A destination follows every change of its source in the same record: a bucket is written when a
//! point behind it comes, and again when a point in it comes late, changes or goes. If the newest
//! points go, the bucket that is open again leaves the destination. A bucket that begins before what
//! the retention of the source has dropped stays as it was compacted.
//!
//! An append into the open bucket costs a comparison a rule. The append that closes a bucket reads its
//! points once. If some of the series are in block files, [`foresight`] first reads all that the change
//! may need, because it cannot stop half-way.

use super::{errors, foresight};
use crate::context::Keys;
use crate::error::CommandError;
use crate::value::series::PointsBefore;
use crate::value::{Rule, TimeSeries};
use crate::watch::touched::Touched;
use std::collections::BTreeSet;
use tidemark_series::{AppendError, Appended, Direction, DuplicatePolicy, PinnedBlocks, guarded};

/// A point that a rule writes into its destination, or removes from it.
#[derive(Debug)]
struct Write {
    destination: Box<[u8]>,
    time: i64,
    value: Option<f64>,
}

/// Buckets of one rule that a change may have changed, by their starts.
#[derive(Debug, Default)]
struct Affected {
    /// Buckets with changed points.
    own: BTreeSet<i64>,
    /// Buckets whose results depend on the changed points of others.
    beside: BTreeSet<i64>,
}

/// What is to be known of a series with rules before a point is added.
struct Before {
    newest: Option<(i64, f64)>,
    /// Buckets that the point closes: retention may drop their points with it.
    closed: Vec<Write>,
}

/// Adds a point to a series and reports the change, by an event if Redis has one.
pub(super) fn append(
    keys: &mut Keys<'_>,
    key: &[u8],
    (time, value): (i64, f64),
    policy: Option<DuplicatePolicy>,
    event: Option<&'static str>,
) -> Result<Result<Appended<f64>, AppendError>, CommandError> {
    let _pinned = match keys.series(key) {
        Some(series) if !is_in_open_buckets(series, time) => foresight::look(keys, key, time..=time)?,
        _ => None,
    };
    follow_append(keys, key, (time, value), policy, event)
}

/// Whether a point is the newest, and no bucket is over with it.
fn is_in_open_buckets(series: &TimeSeries, time: i64) -> bool {
    let newest = guarded(|| series.points().last()).ok().flatten();
    newest.is_some_and(|(newest, value)| {
        let is_open = |rule: &Rule| rule.start_of(time) == rule.start_of(newest);
        time > newest && !value.is_nan() && series.rules().iter().all(is_open)
    })
}

/// Does the same as [`append`], of which it is known that it can read what it needs.
fn follow_append(
    keys: &mut Keys<'_>,
    key: &[u8],
    (time, value): (i64, f64),
    policy: Option<DuplicatePolicy>,
    event: Option<&'static str>,
) -> Result<Result<Appended<f64>, AppendError>, CommandError> {
    let mut points_before = keys.points_before(key);
    let appended = keys.update(key, |series: &mut TimeSeries| {
        let before = Before::of(series, (time, value));
        let appended = series.append_noting(time, value, policy, &mut points_before);
        series.seal();
        (before, appended)
    })?;
    let (before, appended) = appended.ok_or(errors::NO_SERIES)?;
    let is_changed = match appended {
        Err(_) | Ok(Appended::Ignored(_)) => false,
        // Clients' commands are logged even if the value was the same.
        Ok(Appended::Replaced(old)) => event.is_some() || old.to_bits() != value.to_bits(),
        Ok(Appended::Added) => true,
    };
    if is_changed {
        if let Some(before) = before {
            before.follow(keys, key, (time, value));
        }
        report(keys, key, event, &points_before);
    }
    Ok(appended)
}

/// Removes points between two times, reports the change if there is one, and returns their number.
pub(super) fn remove(
    keys: &mut Keys<'_>,
    key: &[u8],
    from: i64,
    to: i64,
    event: Option<&'static str>,
) -> Result<u64, CommandError> {
    let _pinned = match keys.series(key) {
        Some(series) if series.has_rules() => foresight::look(keys, key, from..=to)?,
        _ => None,
    };
    follow_remove(keys, key, from, to, event)
}

/// Does the same as [`remove`], of which it is known that it can read what it needs.
fn follow_remove(
    keys: &mut Keys<'_>,
    key: &[u8],
    from: i64,
    to: i64,
    event: Option<&'static str>,
) -> Result<u64, CommandError> {
    let mut points_before = keys.points_before(key);
    let removed = keys.update(key, |series: &mut TimeSeries| {
        let newest = series.points().last().map(|(time, _)| time);
        let affected: Vec<Affected> =
            series.rules().iter().map(|rule| removed_from(series, rule, from, to)).collect();
        (newest, affected, series.remove_noting(from, to, &mut points_before))
    })?;
    let (newest, affected, removed) = removed.ok_or(errors::NO_SERIES)?;
    if removed > 0 {
        if !affected.is_empty() {
            settle(keys, key, newest, &affected);
            report_open_buckets(keys, key);
        }
        report(keys, key, event, &points_before);
    }
    Ok(removed)
}

/// Whether removing points from `from` on would change a bucket of which the retention has dropped
/// points.
pub(super) fn is_beyond_retention(series: &TimeSeries, from: i64) -> bool {
    let (retention, last) = (series.definition().retention, series.points().last());
    let Some((last, _)) = last.filter(|_| retention > 0) else { return false };
    let floor = last.saturating_sub_unsigned(retention);
    series.rules().iter().any(|rule| rule.start_of(from).max(0) < floor)
}

/// The buckets of a new rule that are over already.
pub(super) struct Backfill {
    writes: Vec<Write>,
    /// Blocks of the destination that they join.
    pinned: Option<PinnedBlocks>,
}

impl Backfill {
    /// Computes the buckets.
    ///
    /// # Errors
    /// The points of the source, or those of the destination that they join, cannot be read.
    pub(super) fn of(keys: &Keys<'_>, key: &[u8], rule: &Rule) -> Result<Self, CommandError> {
        let mut writes = Vec::new();
        if let Some(series) = keys.series(key) {
            let read = guarded(|| {
                rule.for_each_result(series.points(), |start, result| {
                    writes.push(Write {
                        destination: rule.destination.clone(),
                        time: Rule::stamp(start),
                        value: Some(result),
                    });
                });
            });
            read.map_err(|block| CommandError::unreadable(block.of(key)))?;
        }
        let pinned = match (&writes[..], &writes[..]) {
            ([first, ..], [.., last]) => foresight::look(keys, &rule.destination, first.time..=last.time)?,
            _ => None,
        };
        Ok(Self { writes, pinned })
    }

    /// Writes the buckets into the destination.
    pub(super) fn apply(self, keys: &mut Keys<'_>) {
        let Self { writes, pinned: _pinned } = self;
        writes.into_iter().for_each(|write| write.apply(keys, None));
    }
}

/// Returns what a compacted series would get if the open bucket were over; `None` if it is not
/// compacted, or its source has no points.
pub(super) fn open_bucket(keys: &Keys<'_>, key: &[u8], destination: &TimeSeries) -> Option<(i64, f64)> {
    let source = keys.series(destination.source()?)?;
    let rule = source.rules().iter().find(|rule| *rule.destination == *key)?;
    let (newest, _) = source.points().last()?;
    let start = rule.start_of(newest);
    Some((Rule::stamp(start), rule.result(source.points(), start, None)?))
}

fn report(keys: &mut Keys<'_>, key: &[u8], event: Option<&'static str>, before: &PointsBefore) {
    match event {
        Some(event) => keys.changed_in(key, event, || Touched::points(before)),
        None => keys.changed_unannounced(key, || Touched::points(before)),
    }
}

/// Reports to reads of the destinations that the open bucket has changed.
fn report_open_buckets(keys: &mut Keys<'_>, key: &[u8]) {
    let rules = keys.series(key).map_or(&[][..], TimeSeries::rules);
    if rules.iter().any(|rule| keys.is_read(&rule.destination)) {
        let destinations: Vec<_> = rules.iter().map(|rule| rule.destination.clone()).collect();
        destinations.iter().for_each(|destination| keys.changed_open_bucket(destination));
    }
}

impl Before {
    /// Returns what is to be known before a point is added; `None` if the series has no rules.
    #[inline]
    fn of(series: &TimeSeries, point: (i64, f64)) -> Option<Self> {
        if series.rules().is_empty() { None } else { Some(Self::of_compacted(series, point)) }
    }

    fn of_compacted(series: &TimeSeries, point: (i64, f64)) -> Self {
        let newest = series.points().last();
        let mut closed = Vec::new();
        if let Some((newest, _)) = newest.filter(|(newest, _)| point.0 > *newest) {
            for rule in series.rules() {
                let open = rule.start_of(newest);
                if rule.start_of(point.0) > open
                    && let Some(result) = rule.result(series.points(), open, Some(point))
                {
                    closed.push(Write {
                        destination: rule.destination.clone(),
                        time: Rule::stamp(open),
                        value: Some(result),
                    });
                }
            }
        }
        Self { newest, closed }
    }

    /// Brings the destinations up to date after the point was added.
    fn follow(self, keys: &mut Keys<'_>, key: &[u8], (time, value): (i64, f64)) {
        let is_newest = self.newest.is_none_or(|(newest, _)| time > newest);
        self.closed.into_iter().for_each(|write| write.apply(keys, Some("ts.add:dest")));
        // The first number behind NaNs is the neighbour of the last number before them.
        let ends_nans = self.newest.is_some_and(|(_, newest)| newest.is_nan()) && !value.is_nan();
        if !is_newest || ends_nans {
            let affected = keys.series(key).map_or_else(Vec::new, |series| {
                let of_rule = |rule: &Rule| Affected {
                    own: if is_newest { BTreeSet::new() } else { BTreeSet::from([rule.start_of(time)]) },
                    beside: rule.beside(series.points(), time, time).collect(),
                };
                series.rules().iter().map(of_rule).collect()
            });
            settle(keys, key, self.newest.map(|(newest, _)| newest), &affected);
        }
        report_open_buckets(keys, key);
    }
}

/// Returns the buckets of a rule that removing points may change. O(points to be removed).
fn removed_from(series: &TimeSeries, rule: &Rule, from: i64, to: i64) -> Affected {
    let mut affected = Affected::default();
    series.points().read(from..=to, Direction::Forward, &mut |times: &[i64], _: &[f64]| {
        let mut last = None;
        for time in times {
            let start = rule.start_of(*time);
            if last.replace(start) != Some(start) {
                affected.own.insert(start);
            }
        }
        std::ops::ControlFlow::Continue(())
    });
    affected.beside.extend(rule.beside(series.points(), from, to));
    affected
}

/// Writes the affected buckets of each rule that are over, and removes those that are open again.
fn settle(keys: &mut Keys<'_>, key: &[u8], newest_before: Option<i64>, affected: &[Affected]) {
    let Some(source) = keys.series(key) else { return };
    let points = source.points();
    let newest = points.last().map(|(time, _)| time);
    let mut writes = Vec::new();
    for (rule, affected) in source.rules().iter().zip(affected) {
        let Some(destination) = keys.series(&rule.destination) else { continue };
        let open = newest.map_or(i64::MIN, |newest| rule.start_of(newest));
        let open_before = newest_before.map_or(i64::MIN, |newest| rule.start_of(newest));
        let reopened = (open < open_before).then_some(open);
        let starts: BTreeSet<i64> =
            affected.own.iter().chain(&affected.beside).copied().chain(reopened).collect();
        for start in starts {
            let time = Rule::stamp(start);
            let present = destination.points().get(time);
            let value = if start >= open {
                if start >= open_before {
                    continue;
                }
                None
            } else if start < points.floor() || (present.is_none() && !affected.own.contains(&start)) {
                // Compacted for good, or never: a rule begins with the buckets that are over after it.
                continue;
            } else {
                rule.result(points, start, None)
            };
            if value.map(f64::to_bits) != present.map(f64::to_bits) {
                writes.push(Write { destination: rule.destination.clone(), time, value });
            }
        }
    }
    writes.into_iter().for_each(|write| write.apply(keys, None));
}

impl Write {
    /// Writes or removes the point, and what follows from it in the rules of the destination.
    fn apply(self, keys: &mut Keys<'_>, event: Option<&'static str>) {
        let Self { destination, time, value } = self;
        // With an expired destination, the rule ends.
        keys.drop_expired(&destination);
        if !keys.exists(&destination) {
            return;
        }
        // A point that is too old for the destination's retention is not kept there.
        let written = match value {
            Some(value) => {
                follow_append(keys, &destination, (time, value), Some(DuplicatePolicy::Last), event)
                    .map(is_kept)
            }
            None => follow_remove(keys, &destination, time, time, event).map(|_| ()),
        };
        written.expect("the destination of a rule is a series");
    }
}

/// Checks that a destination has refused a point only because of its retention.
fn is_kept(appended: Result<Appended<f64>, AppendError>) {
    if let Err(error @ AppendError::Unreadable(_)) = appended {
        panic!("a rule writes into its destination, of which was known that it can be read: {error}");
    }
}

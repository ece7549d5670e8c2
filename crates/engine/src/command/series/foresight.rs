//! Looking ahead: reads what a change may need from block files before it begins.
//!
//! A point that is added to a series, or removed from it, may change buckets of the series that it is
//! compacted into, and those of others. If a block could not be read half-way, a part of them would have
//! changed. So everything that may be needed is read first, and the change is refused if that fails.
//! What was read stays in memory until the change is done, so that the disk cannot fail between.

use crate::context::Keys;
use crate::error::CommandError;
use crate::value::{Rule, TimeSeries};
use std::ops::RangeInclusive;
use tidemark_series::{PinnedBlocks, naming};

/// Reads all blocks that a change of the points in a range may need. The caller keeps what it returns
/// until the change is done.
///
/// # Errors
/// A block cannot be read.
pub(super) fn look(
    keys: &Keys<'_>,
    key: &[u8],
    range: RangeInclusive<i64>,
) -> Result<Option<PinnedBlocks>, CommandError> {
    if !may_lack_points(keys, key) {
        return Ok(None);
    }
    CommandError::guard(|| {
        let pinned = PinnedBlocks::begin();
        read(keys, key, *range.start(), *range.end());
        Ok(Some(pinned))
    })
}

/// Whether points of a series, or of one that it is compacted into, may be out of memory.
fn may_lack_points(keys: &Keys<'_>, key: &[u8]) -> bool {
    keys.series(key).is_some_and(|series| {
        series.points().may_lack_points()
            || series.rules().iter().any(|rule| may_lack_points(keys, &rule.destination))
    })
}

/// Reads what a change of the points from `from` to `to` may need, in the series and in all that it is
/// compacted into.
fn read(keys: &Keys<'_>, key: &[u8], from: i64, to: i64) {
    let Some(series) = keys.series(key) else { return };
    let changes: Vec<_> = naming(key, || {
        series.points().read_for_change(from..=to);
        series.rules().iter().map(|rule| (rule, buckets_read(series, rule, from, to))).collect()
    });
    for (rule, (first, last)) in changes {
        read(keys, &rule.destination, Rule::stamp(first), Rule::stamp(last));
    }
}

/// Reads what the buckets need that a change may change, and returns the first and the last of them.
fn buckets_read(series: &TimeSeries, rule: &Rule, from: i64, to: i64) -> (i64, i64) {
    let points = series.points();
    let (mut first, mut last) = (rule.start_of(from), rule.start_of(to));
    // The bucket that a point behind all others closes, or that is open again without these.
    let is_end = points.last().is_none_or(|(newest, _)| to >= newest);
    let before = if is_end { from.checked_sub(1).and_then(|end| points.at_or_before(end)) } else { None };
    let opened = before.map(|(time, _)| rule.start_of(time));
    for start in opened.into_iter().chain(rule.beside(points, from, to)) {
        (first, last) = (first.min(start), last.max(start));
    }
    for start in [first, rule.start_of(from), rule.start_of(to), last] {
        rule.result(points, start, None);
    }
    (first, last)
}

//! The options of reads of ranges, and reading one series by them.

mod following;
mod positions;

pub(super) use following::{Joining, Kept, Shape, Sources};

use super::adding::bound;
use super::clock::Clock;
use super::compaction;
use super::errors;
use super::options::once;
use crate::command::parse::{canonical_integer, float, is};
use crate::context::{Keys, Seen};
use crate::error::CommandError;
use crate::value::series::Points;
use crate::value::{Object, TimeSeries};
use std::ops::{ControlFlow, RangeInclusive};
use tidemark_series::{
    Aggregation, Buckets, Direction, DuplicatePolicy, Options, Reading, Snapshot, View, ViewError, Window,
    Windows,
};

/// Most values of an answer that is not written while it is read: those of buckets, groups and joins.
pub(super) const VALUES_MAX: usize = 1 << 22;

/// Which time of a bucket is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stamp {
    Start,
    Middle,
    End,
}

/// How a range is aggregated.
#[derive(Debug, Clone, PartialEq)]
struct Aggregated {
    names: Vec<String>,
    aggregations: Vec<Aggregation>,
    duration: i64,
    stamp: Stamp,
    empty: bool,
    /// Position of the argument behind the duration.
    end: usize,
}

/// Which part of a series is read, and how.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Range {
    from: i64,
    to: i64,
    has_from: bool,
    has_to: bool,
    /// Whether the open bucket of a compacted series is read.
    with_open_bucket: bool,
    times: Option<Vec<i64>>,
    values: Option<RangeInclusive<f64>>,
    count: Option<usize>,
    align: Option<i64>,
    aggregated: Option<Aggregated>,
}

/// What is read of one series, seen through lenses or not: its points in the range, which stay as they
/// are while the series changes, and the points next to them.
#[derive(Debug)]
pub(super) struct Source {
    points: View<Snapshot<f64>>,
    before: Option<(i64, f64)>,
    after: Option<(i64, f64)>,
}

/// The rows of an answer: a time each, and as many values as there are aggregations.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    pub(super) width: usize,
    pub(super) times: Vec<i64>,
    pub(super) values: Vec<f64>,
}

impl Rows {
    /// Returns the rows.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (i64, &[f64])> {
        self.times.iter().copied().zip(self.values.chunks_exact(self.width))
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    fn push(&mut self, time: i64, values: &[f64]) {
        self.times.push(time);
        self.values.extend_from_slice(values);
    }

    fn reverse(&mut self) {
        self.times.reverse();
        self.values.reverse();
        // Within a row, the order of the aggregations stays.
        self.values.chunks_exact_mut(self.width).for_each(<[f64]>::reverse);
    }

    fn truncate(&mut self, rows: usize) {
        self.times.truncate(rows);
        self.values.truncate(rows.saturating_mul(self.width));
    }
}

/// Parses a name of an aggregation.
pub(super) fn aggregation(word: &[u8]) -> Result<Aggregation, CommandError> {
    let known = std::str::from_utf8(word).ok().and_then(|name| name.parse().ok());
    known.ok_or_else(|| {
        let is_quantile = word.to_ascii_lowercase().starts_with(b"quantile");
        if is_quantile { errors::QUANTILE } else { errors::AGGREGATION_UNKNOWN }
    })
}

/// Parses a list of names of aggregations.
fn aggregations(word: &[u8]) -> Result<(Vec<String>, Vec<Aggregation>), CommandError> {
    let parse = |name: &[u8]| {
        let known = aggregation(name)?;
        Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), known))
    };
    let parsed: Vec<_> = word.split(|byte| *byte == b',').map(parse).collect::<Result<_, CommandError>>()?;
    Ok(parsed.into_iter().unzip())
}

impl Range {
    /// Parses the two ends of a range.
    pub(super) fn between(from: &[u8], to: &[u8], clock: Clock) -> Result<Self, CommandError> {
        Ok(Self {
            from: bound(from, b"-", 0, clock, errors::FROM)?,
            to: bound(to, b"+", i64::MAX, clock, errors::TO)?,
            has_from: from != b"-",
            has_to: to != b"+",
            with_open_bucket: false,
            times: None,
            values: None,
            count: None,
            align: None,
            aggregated: None,
        })
    }

    /// Returns the range of points from a time on, the first `count` of them.
    pub(super) fn from_time(from: i64, count: Option<usize>) -> Self {
        Self {
            from,
            to: i64::MAX,
            has_from: true,
            has_to: false,
            with_open_bucket: false,
            times: None,
            values: None,
            count,
            align: None,
            aggregated: None,
        }
    }

    /// Parses all arguments from position `at` on as options of a range.
    pub(super) fn parse_options(&mut self, args: &[&[u8]], mut at: usize) -> Result<(), CommandError> {
        while at < args.len() {
            at = self.parse_option(args, at)?.ok_or_else(|| errors::unknown_option(args[at]))?;
        }
        self.check()
    }

    /// Parses the option at a position, and returns the position behind it; `None` if it is no option
    /// of a range.
    pub(super) fn parse_option(&mut self, args: &[&[u8]], at: usize) -> Result<Option<usize>, CommandError> {
        let (word, rest) = (args[at], &args[at + 1..]);
        let used = if is(word, "LATEST") {
            self.with_open_bucket = true;
            0
        } else if is(word, "COUNT") {
            once(&mut self.count, word, parse_count(rest)?)?;
            1
        } else if is(word, "FILTER_BY_TS") {
            let times: Vec<i64> = rest.iter().map_while(|word| parse_time(word)).collect();
            if times.is_empty() {
                return Err(errors::TIMES_MISSING);
            }
            let used = times.len();
            once(&mut self.times, word, times)?;
            used
        } else if is(word, "FILTER_BY_VALUE") {
            let [lowest, highest, ..] = rest else { return Err(errors::VALUES_MISSING) };
            let lowest = float(lowest).map_err(|_| errors::LOWEST)?;
            let highest = float(highest).map_err(|_| errors::HIGHEST)?;
            once(&mut self.values, word, lowest..=highest)?;
            2
        } else if is(word, "ALIGN") {
            let align = rest.first().ok_or_else(|| errors::arity(args))?;
            let align = self.parse_align(align)?;
            once(&mut self.align, word, align)?;
            1
        } else if is(word, "AGGREGATION") {
            let [names, duration, ..] = rest else { return Err(errors::AGGREGATION) };
            let duration = canonical_integer(duration).ok_or(errors::AGGREGATION)?;
            let (names, aggregations) = aggregations(names)?;
            self.aggregate(word, names, aggregations, duration, at + 3)?;
            2
        } else if let Some(aggregated) = &mut self.aggregated
            && is(word, "BUCKETTIMESTAMP")
        {
            if ![0, 1].contains(&(at - aggregated.end)) {
                return Err(errors::STAMP_PLACE);
            }
            let stamp = rest.first().ok_or_else(|| errors::arity(args))?;
            aggregated.stamp = parse_stamp(stamp).ok_or(errors::STAMP)?;
            1
        } else if let Some(aggregated) = &mut self.aggregated
            && is(word, "EMPTY")
        {
            if ![0, 2].contains(&(at - aggregated.end)) {
                return Err(errors::EMPTY_PLACE);
            }
            aggregated.empty = true;
            0
        } else {
            return Ok(None);
        };
        Ok(Some(at + 1 + used))
    }

    /// Aggregates by buckets of `duration`, behind which the argument at `end` comes.
    pub(super) fn aggregate(
        &mut self,
        word: &[u8],
        names: Vec<String>,
        aggregations: Vec<Aggregation>,
        duration: i64,
        end: usize,
    ) -> Result<(), CommandError> {
        if duration <= 0 {
            return Err(errors::BUCKET);
        }
        let (stamp, empty) = (Stamp::Start, false);
        once(&mut self.aggregated, word, Aggregated { names, aggregations, duration, stamp, empty, end })
    }

    fn parse_align(&self, word: &[u8]) -> Result<i64, CommandError> {
        if is(word, "START") || word == b"-" {
            return if self.has_from { Ok(self.from) } else { Err(errors::ALIGN_START) };
        }
        if is(word, "END") || word == b"+" {
            return if self.has_to { Ok(self.to) } else { Err(errors::ALIGN_END) };
        }
        parse_time(word).ok_or(errors::ALIGN)
    }

    /// Checks what depends on several options.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        if self.align.is_some() && self.aggregated.is_none() {
            return Err(errors::ALIGN_ALONE);
        }
        Ok(())
    }

    /// Returns the names of the aggregations.
    pub(super) fn aggregators(&self) -> &[String] {
        self.aggregated.as_ref().map_or(&[], |aggregated| &aggregated.names)
    }

    /// Returns the number of values in a row.
    pub(super) fn width(&self) -> usize {
        self.aggregated.as_ref().map_or(1, |aggregated| aggregated.aggregations.len())
    }

    /// Returns how many rows are answered at most.
    pub(super) fn count(&self) -> usize {
        self.count.unwrap_or(usize::MAX)
    }

    /// Returns the same range with at most so many rows.
    pub(super) fn limited_to(&self, count: usize) -> Self {
        Self { count: Some(count), ..self.clone() }
    }

    /// Returns the same range with other aggregations and without a limit on rows.
    pub(super) fn for_one_of_several(&self, aggregations: Option<&[Aggregation]>) -> Self {
        let mut range = Self { count: None, ..self.clone() };
        if let (Some(aggregated), Some(aggregations)) = (&mut range.aggregated, aggregations) {
            aggregated.aggregations = aggregations.to_vec();
        }
        range
    }

    /// Takes references to what is to be read of what a key shows: a series or a lens.
    pub(super) fn source_of_seen(
        &self,
        keys: &Keys<'_>,
        key: &[u8],
        seen: &Seen<'_>,
    ) -> Result<Source, CommandError> {
        if seen.view.is_plain() { self.source(keys, key, seen.series) } else { self.source_of(&seen.view) }
    }

    /// Takes references to what is to be read of a series. O(blocks in the range + log n).
    pub(super) fn source(
        &self,
        keys: &Keys<'_>,
        key: &[u8],
        series: &TimeSeries,
    ) -> Result<Source, CommandError> {
        let open = if self.with_open_bucket { compaction::open_bucket(keys, key, series) } else { None };
        // Where points have been dropped, the bucket would not be kept either.
        let open = open.filter(|(time, _)| *time >= series.points().floor());
        match open {
            None => self.source_of(&View::new(series.points(), Vec::new())),
            Some((time, value)) => {
                // A copy shares the blocks. The open bucket drops no point, whatever the retention.
                let mut points = series.points().clone();
                points.set_options(Options::default());
                let added = points.append_with(time, value, DuplicatePolicy::Last);
                added.expect("what is behind the floor is not too old, and the last of two points is taken");
                self.source_of(&View::new(&points, Vec::new()))
            }
        }
    }

    fn source_of(&self, points: &View<&Points>) -> Result<Source, CommandError> {
        let is_filtered = self.times.is_some() || self.values.is_some();
        let (mut before, mut after) = (None, None);
        if self.aggregated.is_some() && !is_filtered {
            if let Some(time) = self.from.checked_sub(1) {
                before = points.at_or_before(time).map_err(errors::not_seen)?;
            }
            if let Some(time) = self.to.checked_add(1) {
                after = points.at_or_after(time).map_err(errors::not_seen)?;
            }
        }
        Ok(Source { points: points.snapshot(self.from..=self.to), before, after })
    }

    /// Reads the rows of a series, the newest first if `reverse`. O(points in the range), less what
    /// blocks' summaries save.
    pub(super) fn rows(&self, source: &Source, reverse: bool) -> Result<Rows, CommandError> {
        let mut rows = Rows { width: self.width(), times: Vec::new(), values: Vec::new() };
        if self.from > self.to {
            return Ok(rows);
        }
        match &self.aggregated {
            None => self.read_points(source, reverse, &mut rows)?,
            Some(aggregated) => self.read_buckets(source, aggregated, reverse, &mut rows)?,
        }
        Ok(rows)
    }

    /// Whether points are answered as they are.
    pub(super) fn is_raw(&self) -> bool {
        self.aggregated.is_none()
    }

    /// Returns the number of points that are answered, if they are answered as they are. O(blocks),
    /// O(points) with a filter of values.
    pub(super) fn count_points(&self, source: &Source) -> Result<usize, CommandError> {
        if self.from > self.to {
            return Ok(0);
        }
        let mut count = 0;
        if source.points.is_plain() && self.times.is_none() && self.values.is_none() {
            count = usize::try_from(source.points.points().count()).unwrap_or(usize::MAX);
        } else {
            self.read(source, Direction::Forward, &mut |times: &[i64], _: &[f64]| {
                count += times.len();
                ControlFlow::Continue(())
            })?;
        }
        Ok(count.min(self.count()))
    }

    /// Calls `visit` with each point that is answered as it is, until it breaks off.
    pub(super) fn for_each_point(
        &self,
        source: &Source,
        reverse: bool,
        mut visit: impl FnMut(i64, f64) -> ControlFlow<()>,
    ) -> Result<(), CommandError> {
        if self.from > self.to {
            return Ok(());
        }
        let mut left = self.count();
        let mut visit = |time: i64, value: f64| {
            left -= 1;
            visit(time, value)?;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let direction = if reverse { Direction::Backward } else { Direction::Forward };
        self.read(source, direction, &mut |times: &[i64], values: &[f64]| {
            let mut points = times.iter().zip(values);
            if reverse {
                points.rev().try_for_each(|(time, value)| visit(*time, *value))
            } else {
                points.try_for_each(|(time, value)| visit(*time, *value))
            }
        })
    }

    fn read_points(&self, source: &Source, reverse: bool, rows: &mut Rows) -> Result<(), CommandError> {
        self.for_each_point(source, reverse, |time, value| {
            rows.push(time, &[value]);
            if rows.values.len() <= VALUES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if rows.values.len() > VALUES_MAX { Err(errors::TOO_MANY_ROWS) } else { Ok(()) }
    }

    fn read_buckets(
        &self,
        source: &Source,
        aggregated: &Aggregated,
        reverse: bool,
        rows: &mut Rows,
    ) -> Result<(), CommandError> {
        let buckets = Buckets::new(aggregated.duration, self.align.unwrap_or(0)).ok_or(errors::BUCKET)?;
        let window = Window {
            buckets,
            aggregations: aggregated.aggregations.clone(),
            empty: aggregated.empty,
            range: self.from..=self.to,
            before: source.before,
            after: source.after,
        };
        // The last buckets are known only after all before them.
        let wanted = if reverse { usize::MAX } else { self.count() };
        let offset = aggregated.offset();
        let mut is_too_long = false;
        let mut windows = Windows::new(&window, |start: i64, results: &[f64]| {
            is_too_long = rows.values.len() >= VALUES_MAX;
            if is_too_long || rows.len() >= wanted {
                return ControlFlow::Break(());
            }
            // Times of clients are not negative.
            rows.push(start.max(0).saturating_add(offset), results);
            if rows.len() < wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        self.read(source, Direction::Forward, &mut windows)?;
        windows.finish();
        if is_too_long {
            return Err(errors::TOO_MANY_ROWS);
        }
        if reverse {
            rows.reverse();
        }
        rows.truncate(self.count());
        Ok(())
    }

    /// Reads the points that pass the filters.
    fn read(
        &self,
        source: &Source,
        direction: Direction,
        reading: &mut impl Reading<f64>,
    ) -> Result<(), CommandError> {
        let (points, range) = (&source.points, self.from..=self.to);
        let result = if let Some(times) = &self.times {
            self.read_at(source, times, direction, reading)
        } else if let Some(wanted) = &self.values {
            let mut passed = (Vec::new(), Vec::new());
            points.read(range, direction, &mut |times: &[i64], values: &[f64]| {
                passed.0.clear();
                passed.1.clear();
                for (time, value) in times.iter().zip(values).filter(|(_, value)| wanted.contains(value)) {
                    passed.0.push(*time);
                    passed.1.push(*value);
                }
                if passed.0.is_empty() {
                    ControlFlow::Continue(())
                } else {
                    reading.run(&passed.0, &passed.1)
                }
            })
        } else {
            points.read(range, direction, reading)
        };
        result.map_err(errors::not_seen)
    }

    /// Reads the points at single times.
    fn read_at(
        &self,
        source: &Source,
        times: &[i64],
        direction: Direction,
        reading: &mut impl Reading<f64>,
    ) -> Result<(), ViewError> {
        let mut times: Vec<i64> =
            times.iter().copied().filter(|time| (self.from..=self.to).contains(time)).collect();
        times.sort_unstable();
        times.dedup();
        if direction == Direction::Backward {
            times.reverse();
        }
        let passes = |value: &f64| self.values.as_ref().is_none_or(|wanted| wanted.contains(value));
        for time in times {
            if let Some(value) = source.points.get(time)?.filter(passes)
                && reading.run(&[time], &[value]).is_break()
            {
                break;
            }
        }
        Ok(())
    }
}

/// Parses a time, which is not negative.
fn parse_time(word: &[u8]) -> Option<i64> {
    canonical_integer(word).filter(|time| *time >= 0)
}

fn parse_count(rest: &[&[u8]]) -> Result<usize, CommandError> {
    let word = rest.first().ok_or(errors::COUNT_MISSING)?;
    let count = canonical_integer(word).ok_or(errors::COUNT)?;
    usize::try_from(count).ok().filter(|count| *count > 0).ok_or(errors::COUNT_RANGE)
}

fn parse_stamp(word: &[u8]) -> Option<Stamp> {
    if is(word, "START") || word == b"-" {
        Some(Stamp::Start)
    } else if is(word, "END") || word == b"+" {
        Some(Stamp::End)
    } else if is(word, "MID") || word == b"~" {
        Some(Stamp::Middle)
    } else {
        None
    }
}

/// Assumed number of points that a read through a lens visits: the lens knows only names.
const SEEN_POINTS: usize = 1 << 20;

/// Returns about how many points a read of a range visits.
pub(super) fn effort(object: &Object, from: &[u8], to: &[u8]) -> usize {
    let series = match object {
        Object::Series(series) => series,
        Object::Lens(_) => return SEEN_POINTS,
        _ => return 0,
    };
    // The time of the read is not known here: that of the last point stands for it.
    let last = series.points().last().map_or(0, |(time, _)| time);
    let range = Range::between(from, to, Clock::at(last, series.definition().unit));
    let range = range.ok().filter(|range| range.from <= range.to);
    range.map_or(0, |range| series.points().estimate_in(range.from..=range.to))
}

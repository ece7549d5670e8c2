//! The rows of a watched range, followed from change to change.
//!
//! ```text
//! points that were noted ─► positions of rows ─► each row before and after ─► with COUNT, the edge moves
//! ```
//!
//! A row has a *position*: the time of its point, or the start of its bucket. What is kept does not grow
//! with the range: the number of rows, where they end, and a digest. A change reads the rows that it
//! concerns, before and after it, and with `COUNT` those that pass the edge. A bucket is read as a whole,
//! less what blocks' summaries save. If the ends of the range move with time, the rows are read that leave
//! or come between the old ends and the new ones.
//!
//! Rows are those of one series, or of several: then the row at a position has the reduced value of all that
//! have a row there, or the values of each in columns.

use super::Range;
use super::positions::Row;
use crate::command::parse::is;
use crate::command::series::clock::{Clock, is_relative};
use crate::command::series::points::{reply_joined_row, reply_row};
use crate::persist::record::Cursor;
use crate::value::Unit;
use crate::value::series::Points;
use crate::watch::difference::write_gone_row;
use crate::watch::following::Undo;
use crate::wire::reply::{Protocol, Reply};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};
use tidemark_series::{Aggregation, Direction, aggregate};
use xxhash_rust::xxh3::xxh3_128;

/// Rows by their positions: before and after a change, as far as they are answered.
type Changed = BTreeMap<i64, (Option<Row>, Option<Row>)>;

/// Which rows are followed, and in which order they are answered.
#[derive(Debug, Clone)]
pub(in crate::command::series) struct Shape {
    range: Range,
    /// Unit of the ends of the range, if they move with time.
    moves_in: Option<Unit>,
    newest_first: bool,
    /// The range of each series whose values are columns; empty otherwise.
    columns: Vec<Range>,
}

/// What is kept of the rows of an answer.
#[derive(Debug, Default)]
pub(in crate::command::series) struct Kept {
    /// Number of rows that are answered.
    rows: u64,
    /// Position of the last row, if there may be more than `COUNT` allows.
    edge: Option<i64>,
    /// Sum of the digests of the rows: it changes with each row, and does not depend on their order.
    digest: u128,
    /// The bucket that has changed last, and its row.
    last: Option<(i64, Option<Row>)>,
}

/// The points of which rows are made, each with what a change has replaced.
pub(in crate::command::series) struct Sources<'p> {
    pub(in crate::command::series) series: SmallVec<[(&'p Points, Option<&'p Undo>); 1]>,
    pub(in crate::command::series) joining: Joining,
}

/// How the rows of several series become one.
#[derive(Debug, Clone, Copy)]
pub(in crate::command::series) enum Joining {
    /// There is one series.
    None,
    /// By an aggregation of their values.
    Reduced(Aggregation),
    /// By columns.
    Columns,
}

impl Sources<'_> {
    /// Returns the row at a position, if there is one.
    fn row_at(&self, shape: &Shape, at: i64) -> Option<Row> {
        self.joined(shape, |range, points, _| range.row_at(points, at))
    }

    /// Returns the row at a position as it was before the change.
    fn row_before(&self, shape: &Shape, at: i64) -> Option<Row> {
        self.joined(shape, |range, points, undo| match undo {
            Some(undo) => range.row_before(points, at, undo),
            None => range.row_at(points, at),
        })
    }

    fn joined(
        &self,
        shape: &Shape,
        row: impl Fn(&Range, &Points, Option<&Undo>) -> Option<Row>,
    ) -> Option<Row> {
        match self.joining {
            Joining::None => {
                let (points, undo) = self.series.first()?;
                row(&shape.range, points, *undo)
            }
            Joining::Reduced(reducer) => {
                let rows = self.series.iter().filter_map(|(points, undo)| row(&shape.range, points, *undo));
                let values: SmallVec<[f64; 8]> = rows.map(|row| row[0]).collect();
                (!values.is_empty()).then(|| Row::from_slice(&[aggregate(reducer, &values)]))
            }
            Joining::Columns => {
                let (mut joined, mut is_there) = (Row::new(), false);
                for ((points, undo), range) in self.series.iter().zip(&shape.columns) {
                    if let Some(row) = row(range, points, *undo) {
                        joined.extend_from_slice(&row);
                        is_there = true;
                    } else {
                        joined.extend(std::iter::repeat_n(f64::NAN, range.width()));
                    }
                }
                is_there.then_some(joined)
            }
        }
    }

    /// Returns the position next to the beginning of a time, in a direction, that has points.
    fn first_position(
        &self,
        range: &Range,
        within: &RangeInclusive<i64>,
        direction: Direction,
    ) -> Option<i64> {
        let positions = self.series.iter().filter_map(|(points, _)| {
            let (time, _) = range.first_point(points, within.clone(), direction)?;
            Some(range.position_of(time))
        });
        match direction {
            Direction::Forward => positions.min(),
            Direction::Backward => positions.max(),
        }
    }

    /// Calls `visit` with the rows and their positions, in a direction, until it breaks off.
    fn for_each_row(
        &self,
        shape: &Shape,
        direction: Direction,
        mut visit: impl FnMut(i64, &[f64]) -> ControlFlow<()>,
    ) {
        let rows = match self.joining {
            Joining::None => {
                if let Some((points, _)) = self.series.first() {
                    shape.range.for_each_row(points, direction, visit);
                }
                return;
            }
            Joining::Reduced(reducer) => self.reduced_rows(&shape.range, reducer),
            Joining::Columns => self.rows_in_columns(&shape.columns),
        };
        let mut visit = |(at, row): (&i64, &Row)| visit(*at, row);
        _ = match direction {
            Direction::Forward => rows.iter().try_for_each(&mut visit),
            Direction::Backward => rows.iter().rev().try_for_each(&mut visit),
        };
    }

    fn reduced_rows(&self, range: &Range, reducer: Aggregation) -> BTreeMap<i64, Row> {
        let mut values: BTreeMap<i64, Row> = BTreeMap::new();
        for (points, _) in &self.series {
            range.for_each_row(points, Direction::Forward, |at, row| {
                values.entry(at).or_default().push(row[0]);
                ControlFlow::Continue(())
            });
        }
        for row in values.values_mut() {
            *row = Row::from_slice(&[aggregate(reducer, row)]);
        }
        values
    }

    fn rows_in_columns(&self, columns: &[Range]) -> BTreeMap<i64, Row> {
        let width = columns.iter().map(Range::width).sum();
        let (mut rows, mut column) = (BTreeMap::new(), 0);
        for ((points, _), range) in self.series.iter().zip(columns) {
            range.for_each_row(points, Direction::Forward, |at, row| {
                let joined = rows.entry(at).or_insert_with(|| Row::from_elem(f64::NAN, width));
                joined[column..column + row.len()].copy_from_slice(row);
                ControlFlow::Continue(())
            });
            column += range.width();
        }
        rows
    }
}

impl Shape {
    /// Returns the shape of a read that begins with the command's name; `None` if its rows cannot be
    /// followed. `clock` has the time as of which it is answered.
    pub(in crate::command::series) fn of(
        range: Range,
        args: &[&[u8]],
        newest_first: bool,
        clock: Clock,
    ) -> Option<Self> {
        // All buckets move with the end that they are aligned to.
        let aligned_to_an_end = |pair: &[&[u8]]| {
            is(pair[0], "ALIGN") && ["START", "-", "END", "+"].iter().any(|end| is(pair[1], end))
        };
        let moves_in = is_relative(args).then(|| clock.unit());
        let is_hard = range.with_open_bucket
            || depends_on_neighbours(&range)
            || (moves_in.is_some() && args[1..].windows(2).any(aligned_to_an_end));
        (!is_hard).then_some(Self { range, moves_in, newest_first, columns: Vec::new() })
    }

    /// Returns the shape of a join of series, each with its range; `None` if its rows cannot be followed.
    pub(in crate::command::series) fn with_columns(self, columns: Vec<Range>) -> Option<Self> {
        let is_hard = columns.iter().any(depends_on_neighbours);
        (!is_hard).then_some(Self { columns, ..self })
    }

    fn set_ends(&mut self, from: i64, to: i64) {
        for range in std::iter::once(&mut self.range).chain(&mut self.columns) {
            (range.from, range.to) = (from, to);
        }
    }

    /// Returns the shape with the ends of another.
    pub(in crate::command::series) fn moved(&self, to: &Self) -> Self {
        let mut moved = self.clone();
        moved.set_ends(to.range.from, to.range.to);
        moved
    }

    /// Appends the ends of the range and their unit, if they move with time.
    ///
    /// ```text
    /// unit u8 │ first time i64 │ last time i64
    /// ```
    pub(in crate::command::series) fn encode(&self, into: &mut Vec<u8>) {
        if let Some(unit) = self.moves_in {
            into.push(unit as u8);
            into.extend_from_slice(&self.range.from.to_le_bytes());
            into.extend_from_slice(&self.range.to.to_le_bytes());
        }
    }

    /// Decodes that form, of a read with these arguments. `parse` makes its shape at a time.
    pub(in crate::command::series) fn decode(
        args: &[&[u8]],
        bytes: &mut Cursor<'_>,
        parse: impl Fn(Clock) -> Option<Self>,
    ) -> Option<Self> {
        if !is_relative(args) {
            return parse(Clock::at(0, Unit::default()));
        }
        let mut shape = parse(Clock::at(0, Unit::of_code(bytes.u8()?)?))?;
        shape.set_ends(bytes.u64()?.cast_signed(), bytes.u64()?.cast_signed());
        Some(shape)
    }

    /// Whether the ends of the range move with time.
    pub(in crate::command::series) fn moves(&self) -> bool {
        self.moves_in.is_some()
    }

    /// Returns the memory that it uses beyond its own size, in bytes.
    pub(in crate::command::series) fn heap_bytes(&self) -> usize {
        let times = self.range.times.as_ref().map_or(0, |times| times.len() * size_of::<i64>());
        times + self.columns.len() * (size_of::<Range>() + times)
    }

    /// Writes all rows.
    pub(in crate::command::series) fn write_rows(&self, sources: &Sources<'_>, reply: &mut Reply) {
        let (mut rows, mut count) = (Reply::new(reply.protocol()), 0);
        sources.for_each_row(self, self.onwards(), |at, row| {
            self.write_row(&mut rows, at, row);
            count += 1;
            if count < self.range.count() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        reply.array(count);
        reply.encoded(rows.bytes());
    }

    fn write_row(&self, reply: &mut Reply, at: i64, row: &[f64]) {
        let time = self.range.time_of(at);
        if self.columns.is_empty() { reply_row(reply, time, row) } else { reply_joined_row(reply, time, row) }
    }

    /// Whether a point leaves or comes if the range moves to another. O(series * log(points)).
    pub(in crate::command::series) fn passes(&self, to: &Self, points: &Points) -> bool {
        let mut is_passed = false;
        for within in self.passed_times(to) {
            points.read(within, Direction::Forward, &mut |_: &[i64], _: &[f64]| {
                is_passed = true;
                ControlFlow::Break(())
            });
        }
        is_passed
    }

    /// Returns the times that leave the range or come if its ends move on.
    fn passed_times(&self, to: &Self) -> impl Iterator<Item = RangeInclusive<i64>> {
        let (old, new) = (&self.range, &to.range);
        // Ends only move on, so points leave at the front of the range, and come behind it.
        let leaving = old.from..=old.to.min(new.from.saturating_sub(1));
        let coming = new.from.max(old.to.saturating_add(1))..=new.to;
        [leaving, coming].into_iter().filter(|within| !within.is_empty())
    }

    /// The direction in which rows are answered.
    fn onwards(&self) -> Direction {
        if self.newest_first { Direction::Backward } else { Direction::Forward }
    }

    /// Whether a position comes after another in the answer.
    fn is_behind(&self, at: i64, other: i64) -> bool {
        if self.newest_first { at < other } else { at > other }
    }

    /// Returns the row next to a position in a direction; without a position, the first one.
    fn next(&self, sources: &Sources<'_>, position: Option<i64>, direction: Direction) -> Option<(i64, Row)> {
        let mut position = position;
        loop {
            let within = self.range.beside(position, direction)?;
            let at = sources.first_position(&self.range, &within, direction)?;
            if let Some(row) = sources.row_at(self, at) {
                return Some((at, row));
            }
            position = Some(at);
        }
    }

    fn digest_of(&self, at: i64, row: &[f64]) -> u128 {
        let mut bytes: SmallVec<[u8; 64]> = SmallVec::from_slice(&self.range.time_of(at).to_le_bytes());
        row.iter().for_each(|value| bytes.extend_from_slice(&bits(*value).to_le_bytes()));
        xxh3_128(&bytes)
    }
}

impl Kept {
    /// Begins to follow rows. O(points in the range).
    pub(in crate::command::series) fn begin(shape: &Shape, sources: &Sources<'_>) -> Self {
        let mut kept = Self::default();
        sources.for_each_row(shape, shape.onwards(), |at, row| {
            kept.digest = kept.digest.wrapping_add(shape.digest_of(at, row));
            kept.rows += 1;
            if kept.rows < shape.range.count() as u64 {
                return ControlFlow::Continue(());
            }
            kept.edge = Some(at);
            ControlFlow::Break(())
        });
        kept
    }

    /// Returns the number of rows, and the sum of their digests: equal answers have equal ones.
    pub(in crate::command::series) fn digest(&self) -> (u64, u128) {
        (self.rows, self.digest)
    }

    /// ```text
    /// rows u64 │ digest u128 │ whether there is an edge u8 │ edge i64
    /// ```
    pub(in crate::command::series) fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.rows.to_le_bytes());
        into.extend_from_slice(&self.digest.to_le_bytes());
        into.push(u8::from(self.edge.is_some()));
        into.extend_from_slice(&self.edge.unwrap_or(0).to_le_bytes());
    }

    /// Decodes that form; `None` if it is not valid.
    pub(in crate::command::series) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let rows = bytes.u64()?;
        let digest = u128::from(bytes.u64()?) | u128::from(bytes.u64()?) << 64;
        let (has_edge, edge) = (bytes.u8()?, bytes.u64()?.cast_signed());
        Some(Self { rows, edge: (has_edge != 0).then_some(edge), digest, last: None })
    }

    /// Follows a change of points, which has been made. Returns the rows that have changed, encoded;
    /// `None` if none has. O(rows that have changed).
    pub(in crate::command::series) fn follow(
        &mut self,
        shape: &Shape,
        sources: &Sources<'_>,
        protocol: Protocol,
    ) -> Option<Vec<u8>> {
        let changed = self.touched(shape, sources);
        self.settle(shape, sources, changed, protocol)
    }

    /// Follows the range to other ends; the points have not changed. Returns the rows that have changed,
    /// encoded; `None` if none has. O(points that leave or come).
    pub(in crate::command::series) fn slide(
        &mut self,
        shape: &Shape,
        to: &Shape,
        sources: &Sources<'_>,
        protocol: Protocol,
    ) -> Option<Vec<u8>> {
        let changed = self.passed(shape, to, sources);
        self.settle(to, sources, changed, protocol)
    }

    /// Brings what is kept up to date with rows that may have changed. Returns those that have, encoded;
    /// `None` if none has.
    fn settle(
        &mut self,
        shape: &Shape,
        sources: &Sources<'_>,
        mut changed: Changed,
        protocol: Protocol,
    ) -> Option<Vec<u8>> {
        self.settle_count(shape, sources, &mut changed);
        changed.retain(|_, (before, after)| !are_equal(before.as_ref(), after.as_ref()));
        for (at, (before, after)) in &changed {
            let digest = |row: &Option<Row>| row.as_ref().map_or(0, |row| shape.digest_of(*at, row));
            self.digest = self.digest.wrapping_sub(digest(before)).wrapping_add(digest(after));
        }
        if changed.is_empty() {
            return None;
        }
        let mut reply = Reply::new(protocol);
        reply.array(changed.len());
        let mut write = |(at, (_, after)): (&i64, &(Option<Row>, Option<Row>))| match after {
            Some(row) => shape.write_row(&mut reply, *at, row),
            None => write_gone_row(&mut reply, shape.range.time_of(*at)),
        };
        if shape.newest_first {
            changed.iter().rev().for_each(&mut write);
        } else {
            changed.iter().for_each(&mut write);
        }
        Some(reply.take())
    }

    /// Returns the rows that leave, come, or are cut elsewhere when the ends of the range move, before and
    /// after it, as [`Kept::touched`] does.
    fn passed(&mut self, shape: &Shape, to: &Shape, sources: &Sources<'_>) -> Changed {
        let mut positions = BTreeSet::new();
        for within in shape.passed_times(to) {
            for (points, _) in &sources.series {
                points.read(within.clone(), Direction::Forward, &mut |times: &[i64], _: &[f64]| {
                    positions.extend(times.iter().map(|time| shape.range.position_of(*time)));
                    ControlFlow::Continue(())
                });
            }
        }
        positions.retain(|at| !self.edge.is_some_and(|edge| shape.is_behind(*at, edge)));
        // The bucket at the front may be cut elsewhere now.
        self.last = None;
        let both = |at| (sources.row_at(shape, at), sources.row_at(to, at));
        positions.into_iter().map(|at| (at, both(at))).collect()
    }

    /// Returns the rows that a change of points concerns, before and after it: of the rows before, those
    /// that were answered; of those after, those that are not behind the edge.
    fn touched(&mut self, shape: &Shape, sources: &Sources<'_>) -> Changed {
        let (mut changed, range) = (Changed::new(), &shape.range);
        let in_range = range.from..=range.to;
        // Empty if the ends are in the wrong order.
        let times = sources.series.iter().filter_map(|(_, undo)| *undo).flat_map(|undo| undo.keys());
        let positions: BTreeSet<i64> =
            times.filter(|time| in_range.contains(time)).map(|time| range.position_of(*time)).collect();
        let mut last = None;
        for at in positions {
            let after = sources.row_at(shape, at);
            if !self.edge.is_some_and(|edge| shape.is_behind(at, edge)) {
                let before = match &self.last {
                    Some((known, row)) if *known == at => row.clone(),
                    _ => sources.row_before(shape, at),
                };
                changed.insert(at, (before, after.clone()));
            }
            last = Some((at, after));
        }
        if range.aggregated.is_some() && last.is_some() {
            self.last = last;
        }
        changed
    }

    /// Brings the number of rows back to what `COUNT` allows: rows behind the edge join, or rows before
    /// it leave.
    fn settle_count(&mut self, shape: &Shape, sources: &Sources<'_>, changed: &mut Changed) {
        let (mut rows, most) = (self.rows, shape.range.count() as u64);
        for (before, after) in changed.values() {
            rows = rows + u64::from(after.is_some()) - u64::from(before.is_some());
        }
        if rows < most {
            // Only with an edge may there be others behind it.
            if let Some(edge) = self.edge.take() {
                let mut position = edge;
                while rows < most
                    && let Some((at, row)) = shape.next(sources, Some(position), shape.onwards())
                {
                    changed.entry(at).or_default().1 = Some(row);
                    (rows, position) = (rows + 1, at);
                }
                self.edge = (rows == most).then_some(position);
            }
        } else if most < usize::MAX as u64 {
            let backwards = opposite(shape.onwards());
            let mut last = match self.edge {
                Some(edge) => match sources.row_at(shape, edge) {
                    Some(row) => Some((edge, row)),
                    None => shape.next(sources, Some(edge), backwards),
                },
                None => shape.next(sources, None, backwards),
            };
            while rows > most {
                let (at, row) = last.take().expect("there are more rows than are answered");
                changed.entry(at).or_insert_with(|| (Some(row), None)).1 = None;
                rows -= 1;
                last = shape.next(sources, Some(at), backwards);
            }
            self.edge = last.map(|(at, _)| at);
        }
        self.rows = rows;
    }
}

fn depends_on_neighbours(range: &Range) -> bool {
    let is_one =
        |it: &Aggregation| matches!(it, Aggregation::Twa | Aggregation::Increase | Aggregation::Rate);
    let aggregated = range.aggregated.as_ref();
    aggregated.is_some_and(|aggregated| aggregated.empty || aggregated.aggregations.iter().any(is_one))
}

/// The bits of a value as it is answered: all NaNs are the same there.
fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

fn are_equal(one: Option<&Row>, other: Option<&Row>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            one.iter().map(|value| bits(*value)).eq(other.iter().map(|value| bits(*value)))
        }
        _ => false,
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Backward,
        Direction::Backward => Direction::Forward,
    }
}

//! The rows of a watched range of one series, followed from change to change.
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

use super::{Aggregated, Range, Stamp};
use crate::command::parse::is;
use crate::command::series::clock::{Clock, is_relative};
use crate::command::series::points::reply_row;
use crate::persist::record::Cursor;
use crate::value::Unit;
use crate::value::series::Points;
use crate::watch::difference::write_gone_row;
use crate::watch::following::{Following, Undo};
use crate::wire::reply::{Protocol, Reply};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, RangeInclusive};
use tidemark_series::{Aggregation, Buckets, Direction, Reading, Window, Windows};
use xxhash_rust::xxh3::xxh3_128;

/// The values of a row.
type Row = SmallVec<[f64; 2]>;

/// Rows by their positions: before and after a change, as far as they are answered.
type Changed = BTreeMap<i64, (Option<Row>, Option<Row>)>;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Followed {
    range: Range,
    /// Unit of the ends of the range, if they move with time.
    moves_in: Option<Unit>,
    newest_first: bool,
    /// Number of rows that are answered.
    rows: u64,
    /// Position of the last row, if there may be more than `COUNT` allows.
    edge: Option<i64>,
    /// Sum of the digests of the rows: it changes with each row, and does not depend on their order.
    digest: u128,
    /// The bucket that has changed last, and its row.
    last: Option<(i64, Option<Row>)>,
}

/// Returns the range of a read that can be followed, whose arguments begin with the command's name; and
/// whether the newest row comes first. `clock` has the time as of which it is answered.
fn parse(args: &[&[u8]], clock: Clock) -> Option<(Range, bool)> {
    let newest_first = match args.first()? {
        name if name.eq_ignore_ascii_case(b"ts.range") => false,
        name if name.eq_ignore_ascii_case(b"ts.revrange") => true,
        _ => return None,
    };
    let mut range = Range::between(args.get(2)?, args.get(3)?, clock).ok()?;
    range.parse_options(args, 4).ok()?;
    let depends_on_neighbours = |aggregated: &Aggregated| {
        let is_one =
            |it: &Aggregation| matches!(it, Aggregation::Twa | Aggregation::Increase | Aggregation::Rate);
        aggregated.empty || aggregated.aggregations.iter().any(is_one)
    };
    // All buckets move with the end that they are aligned to.
    let aligned_to_an_end = |pair: &[&[u8]]| {
        is(pair[0], "ALIGN") && ["START", "-", "END", "+"].iter().any(|end| is(pair[1], end))
    };
    let is_hard = range.with_open_bucket
        || range.aggregated.as_ref().is_some_and(depends_on_neighbours)
        || (is_relative(args) && args[4..].windows(2).any(aligned_to_an_end));
    (!is_hard).then_some((range, newest_first))
}

/// Returns the ends of a followed range at the time of `clock`.
fn ends(args: &[&[u8]], clock: Clock) -> (i64, i64) {
    let (range, _) = parse(args, clock).expect("what is followed can be followed at any time");
    (range.from, range.to)
}

impl Following for Followed {
    fn follow(&mut self, points: &Points, undo: &Undo, protocol: Protocol) -> Option<Vec<u8>> {
        let changed = self.touched(points, undo);
        self.settle(points, changed, protocol)
    }

    fn passes(&self, points: &Points, args: &[&[u8]], clock: Clock) -> bool {
        let mut is_passed = false;
        for within in self.passed_times(ends(args, clock)) {
            points.read(within, Direction::Forward, &mut |_: &[i64], _: &[f64]| {
                is_passed = true;
                ControlFlow::Break(())
            });
        }
        is_passed
    }

    fn slide(
        &mut self,
        points: &Points,
        args: &[&[u8]],
        clock: Clock,
        protocol: Protocol,
    ) -> Option<Vec<u8>> {
        let changed = self.passed(points, ends(args, clock));
        self.settle(points, changed, protocol)
    }

    fn digest(&self) -> (u64, u128) {
        (self.rows, self.digest)
    }

    fn bytes(&self) -> usize {
        let times = self.range.times.as_ref().map_or(0, |times| times.len() * size_of::<i64>());
        size_of::<Self>() + times
    }

    /// ```text
    /// rows u64 │ digest u128 │ whether there is an edge u8 │ edge i64
    ///    │ if the range moves with time: its unit u8 │ its first time i64 │ its last time i64
    /// ```
    fn encode(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.rows.to_le_bytes());
        into.extend_from_slice(&self.digest.to_le_bytes());
        into.push(u8::from(self.edge.is_some()));
        into.extend_from_slice(&self.edge.unwrap_or(0).to_le_bytes());
        if let Some(unit) = self.moves_in {
            into.push(unit as u8);
            into.extend_from_slice(&self.range.from.to_le_bytes());
            into.extend_from_slice(&self.range.to.to_le_bytes());
        }
    }
}

impl Followed {
    /// Brings what is kept up to date with rows that may have changed. Returns those that have, encoded;
    /// `None` if none has.
    fn settle(&mut self, points: &Points, mut changed: Changed, protocol: Protocol) -> Option<Vec<u8>> {
        self.settle_count(points, &mut changed);
        changed.retain(|_, (before, after)| !are_equal(before.as_ref(), after.as_ref()));
        for (at, (before, after)) in &changed {
            let digest = |row: &Option<Row>| row.as_ref().map_or(0, |row| self.digest_of(*at, row));
            self.digest = self.digest.wrapping_sub(digest(before)).wrapping_add(digest(after));
        }
        if changed.is_empty() {
            return None;
        }
        let mut reply = Reply::new(protocol);
        reply.array(changed.len());
        let mut write = |(at, (_, after)): (&i64, &(Option<Row>, Option<Row>))| match after {
            Some(row) => reply_row(&mut reply, self.time_of(*at), row),
            None => write_gone_row(&mut reply, self.time_of(*at)),
        };
        if self.newest_first {
            changed.iter().rev().for_each(&mut write);
        } else {
            changed.iter().for_each(&mut write);
        }
        Some(reply.take())
    }

    /// Begins to follow a read of a series with these points, as of the time of `clock`: `None` if its
    /// options forbid that. O(points in the range).
    pub(crate) fn begin(points: &Points, args: &[&[u8]], clock: Clock) -> Option<Self> {
        let (range, newest_first) = parse(args, clock)?;
        let moves_in = is_relative(args).then(|| clock.unit());
        let mut followed = Self { range, moves_in, newest_first, rows: 0, edge: None, digest: 0, last: None };
        let (mut rows, mut edge, mut digest) = (0, None, 0_u128);
        followed.range.for_each_row(points, followed.onwards(), |at, row| {
            digest = digest.wrapping_add(followed.digest_of(at, row));
            rows += 1;
            if rows < followed.range.count() {
                return ControlFlow::Continue(());
            }
            edge = Some(at);
            ControlFlow::Break(())
        });
        (followed.rows, followed.edge, followed.digest) = (rows as u64, edge, digest);
        Some(followed)
    }

    /// Decodes what a snapshot keeps of it, of a read with these arguments; `None` if it is not valid.
    pub(crate) fn decode(args: &[&[u8]], bytes: &mut Cursor<'_>) -> Option<Self> {
        let rows = bytes.u64()?;
        let digest = u128::from(bytes.u64()?) | u128::from(bytes.u64()?) << 64;
        let (has_edge, edge) = (bytes.u8()?, bytes.u64()?.cast_signed());
        let edge = (has_edge != 0).then_some(edge);
        let moves_in = if is_relative(args) { Some(Unit::of_code(bytes.u8()?)?) } else { None };
        let (mut range, newest_first) = parse(args, Clock::at(0, moves_in.unwrap_or_default()))?;
        if moves_in.is_some() {
            (range.from, range.to) = (bytes.u64()?.cast_signed(), bytes.u64()?.cast_signed());
        }
        bytes.is_empty().then_some(Self { range, moves_in, newest_first, rows, edge, digest, last: None })
    }

    /// Returns the times that leave the range or come if its ends move on.
    fn passed_times(&self, new: (i64, i64)) -> impl Iterator<Item = RangeInclusive<i64>> {
        let old = (self.range.from, self.range.to);
        // Ends only move on, so points leave at the front of the range, and come behind it.
        let leaving = old.0..=old.1.min(new.0.saturating_sub(1));
        let coming = new.0.max(old.1.saturating_add(1))..=new.1;
        [leaving, coming].into_iter().filter(|within| !within.is_empty())
    }

    /// Moves the ends of the range. Returns the rows that leave, come, or are cut elsewhere, before and
    /// after it, as [`Followed::touched`] does.
    fn passed(&mut self, points: &Points, ends: (i64, i64)) -> Changed {
        let mut positions = BTreeSet::new();
        for within in self.passed_times(ends) {
            points.read(within, Direction::Forward, &mut |times: &[i64], _: &[f64]| {
                positions.extend(times.iter().map(|time| self.range.position_of(*time)));
                ControlFlow::Continue(())
            });
        }
        positions.retain(|at| !self.edge.is_some_and(|edge| self.is_behind(*at, edge)));
        let before: Vec<_> = positions.iter().map(|at| self.range.row_at(points, *at)).collect();
        (self.range.from, self.range.to) = ends;
        // The bucket at the front may be cut elsewhere now.
        self.last = None;
        let rows = positions.into_iter().zip(before);
        rows.map(|(at, before)| (at, (before, self.range.row_at(points, at)))).collect()
    }

    /// Returns the rows that a change of points concerns, before and after it: of the rows before, those
    /// that were answered; of those after, those that are not behind the edge.
    fn touched(&mut self, points: &Points, undo: &Undo) -> Changed {
        let mut changed = Changed::new();
        let in_range = self.range.from..=self.range.to;
        // Empty if the ends are in the wrong order.
        let mut positions: Vec<i64> = undo
            .keys()
            .filter(|time| in_range.contains(time))
            .map(|time| self.range.position_of(*time))
            .collect();
        positions.dedup();
        let mut last = None;
        for at in positions {
            let after = self.range.row_at(points, at);
            if !self.edge.is_some_and(|edge| self.is_behind(at, edge)) {
                let before = match &self.last {
                    Some((known, row)) if *known == at => row.clone(),
                    _ => self.range.row_before(points, at, undo),
                };
                changed.insert(at, (before, after.clone()));
            }
            last = Some((at, after));
        }
        if self.range.aggregated.is_some() && last.is_some() {
            self.last = last;
        }
        changed
    }

    /// Brings the number of rows back to what `COUNT` allows: rows behind the edge join, or rows before
    /// it leave.
    fn settle_count(&mut self, points: &Points, changed: &mut Changed) {
        let (mut rows, most) = (self.rows, self.range.count() as u64);
        for (before, after) in changed.values() {
            rows = rows + u64::from(after.is_some()) - u64::from(before.is_some());
        }
        if rows < most {
            // Only with an edge may there be others behind it.
            if let Some(edge) = self.edge.take() {
                let mut position = edge;
                while rows < most
                    && let Some((at, row)) = self.next(points, Some(position), self.onwards())
                {
                    changed.entry(at).or_default().1 = Some(row);
                    (rows, position) = (rows + 1, at);
                }
                self.edge = (rows == most).then_some(position);
            }
        } else if most < usize::MAX as u64 {
            let backwards = opposite(self.onwards());
            let mut last = match self.edge {
                Some(edge) => match self.range.row_at(points, edge) {
                    Some(row) => Some((edge, row)),
                    None => self.next(points, Some(edge), backwards),
                },
                None => self.next(points, None, backwards),
            };
            while rows > most {
                let (at, row) = last.take().expect("there are more rows than are answered");
                changed.entry(at).or_insert_with(|| (Some(row), None)).1 = None;
                rows -= 1;
                last = self.next(points, Some(at), backwards);
            }
            self.edge = last.map(|(at, _)| at);
        }
        self.rows = rows;
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
    fn next(&self, points: &Points, position: Option<i64>, direction: Direction) -> Option<(i64, Row)> {
        let mut position = position;
        loop {
            let within = self.range.beside(position, direction)?;
            let (time, value) = self.range.first_point(points, within, direction)?;
            let at = self.range.position_of(time);
            let row = match self.range.aggregated {
                None => Some(Row::from_slice(&[value])),
                Some(_) => self.range.row_at(points, at),
            };
            if let Some(row) = row {
                return Some((at, row));
            }
            position = Some(at);
        }
    }

    fn time_of(&self, at: i64) -> i64 {
        self.range.time_of(at)
    }

    fn digest_of(&self, at: i64, row: &[f64]) -> u128 {
        let mut bytes: SmallVec<[u8; 64]> = SmallVec::from_slice(&self.time_of(at).to_le_bytes());
        row.iter().for_each(|value| bytes.extend_from_slice(&bits(*value).to_le_bytes()));
        xxh3_128(&bytes)
    }
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

impl Aggregated {
    fn window(&self, of: &Range, range: RangeInclusive<i64>) -> Window {
        let (buckets, aggregations) = (self.buckets(of), self.aggregations.clone());
        Window { buckets, aggregations, empty: false, range, before: None, after: None }
    }

    fn buckets(&self, range: &Range) -> Buckets {
        Buckets::new(self.duration, range.align.unwrap_or(0)).expect("a duration that was parsed is positive")
    }
}

impl Range {
    /// Returns the position of the row that has a point at this time.
    fn position_of(&self, time: i64) -> i64 {
        self.aggregated.as_ref().map_or(time, |aggregated| aggregated.buckets(self).start_of(time))
    }

    /// Returns the time with which the row at a position is answered.
    fn time_of(&self, at: i64) -> i64 {
        let Some(aggregated) = &self.aggregated else { return at };
        at.max(0).saturating_add(aggregated.offset())
    }

    /// Returns the times of the points in the row at a position.
    fn points_at(&self, at: i64) -> RangeInclusive<i64> {
        let end = self.aggregated.as_ref().map_or(at, |it| at.saturating_add(it.duration - 1));
        at.max(self.from)..=end.min(self.to)
    }

    /// Returns the times of the range next to a position, in a direction; `None` if there are none.
    fn beside(&self, position: Option<i64>, direction: Direction) -> Option<RangeInclusive<i64>> {
        let (mut from, mut to) = (self.from, self.to);
        if let Some(at) = position {
            let own = self.points_at(at);
            match direction {
                Direction::Forward => from = from.max(own.end().checked_add(1)?),
                Direction::Backward => to = to.min(own.start().checked_sub(1)?),
            }
        }
        (from <= to).then_some(from..=to)
    }

    fn passes(&self, time: i64, value: f64) -> bool {
        self.times.as_ref().is_none_or(|times| times.contains(&time))
            && self.values.as_ref().is_none_or(|wanted| wanted.contains(&value))
    }

    /// Returns the first point in a direction that passes the filters.
    fn first_point(
        &self,
        points: &Points,
        within: RangeInclusive<i64>,
        direction: Direction,
    ) -> Option<(i64, f64)> {
        if let Some(times) = &self.times {
            let wanted = times.iter().copied().filter(|time| within.contains(time));
            let found = wanted.filter_map(|time| {
                points.get(time).map(|value| (time, value)).filter(|(time, value)| self.passes(*time, *value))
            });
            return match direction {
                Direction::Forward => found.min_by_key(|(time, _)| *time),
                Direction::Backward => found.max_by_key(|(time, _)| *time),
            };
        }
        let mut found = None;
        points.read(within, direction, &mut |times: &[i64], values: &[f64]| {
            let mut run = times.iter().copied().zip(values.iter().copied());
            let passes = |(time, value): &(i64, f64)| self.passes(*time, *value);
            found = match direction {
                Direction::Forward => run.find(passes),
                Direction::Backward => run.rfind(passes),
            };
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// Returns the row at a position, if there is one.
    fn row_at(&self, points: &Points, at: i64) -> Option<Row> {
        let Some(aggregated) = &self.aggregated else {
            let is_in_range = self.points_at(at).contains(&at);
            let value = points.get(at).filter(|value| is_in_range && self.passes(at, *value))?;
            return Some(Row::from_slice(&[value]));
        };
        let mut row = None;
        self.aggregate_points(aggregated, self.points_at(at), points, |_, results| {
            row = Some(Row::from_slice(results));
            ControlFlow::Continue(())
        });
        row
    }

    /// Calls `visit` with the rows and their positions, in a direction, until it breaks off.
    fn for_each_row(
        &self,
        points: &Points,
        direction: Direction,
        mut visit: impl FnMut(i64, &[f64]) -> ControlFlow<()>,
    ) {
        let within = self.from..=self.to;
        let Some(aggregated) = &self.aggregated else {
            points.read(within, direction, &mut |times: &[i64], values: &[f64]| {
                let mut run = times.iter().zip(values).filter(|(time, value)| self.passes(**time, **value));
                match direction {
                    Direction::Forward => run.try_for_each(|(time, value)| visit(*time, &[*value])),
                    Direction::Backward => run.rev().try_for_each(|(time, value)| visit(*time, &[*value])),
                }
            });
            return;
        };
        if direction == Direction::Forward {
            return self.aggregate_points(aggregated, within, points, visit);
        }
        let mut rows = Vec::new();
        self.aggregate_points(aggregated, within, points, |at, results| {
            rows.push((at, Row::from_slice(results)));
            ControlFlow::Continue(())
        });
        _ = rows.iter().rev().try_for_each(|(at, row)| visit(*at, row));
    }

    /// Aggregates the points between two times that pass the filters. Calls `output` with the start of
    /// each bucket and its results.
    fn aggregate_points(
        &self,
        aggregated: &Aggregated,
        within: RangeInclusive<i64>,
        points: &Points,
        output: impl FnMut(i64, &[f64]) -> ControlFlow<()>,
    ) {
        if within.is_empty() {
            return;
        }
        let window = aggregated.window(self, within.clone());
        let mut windows = Windows::new(&window, output);
        if self.times.is_none() && self.values.is_none() {
            points.read(within, Direction::Forward, &mut windows);
        } else {
            points.read(within, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
                let run = times.iter().copied().zip(values.iter().copied());
                let (times, values): (Vec<i64>, Vec<f64>) =
                    run.filter(|(time, value)| self.passes(*time, *value)).unzip();
                if times.is_empty() { ControlFlow::Continue(()) } else { windows.run(&times, &values) }
            });
        }
        windows.finish();
    }

    /// Returns the row at a position as it was before a change.
    fn row_before(&self, points: &Points, at: i64, undo: &Undo) -> Option<Row> {
        let Some(aggregated) = &self.aggregated else {
            let value = undo.get(&at).copied().flatten().filter(|value| self.passes(at, *value))?;
            return Some(Row::from_slice(&[value]));
        };
        let within = self.points_at(at);
        let mut before: BTreeMap<i64, f64> = BTreeMap::new();
        points.read(within.clone(), Direction::Forward, &mut |times: &[i64], values: &[f64]| {
            before.extend(times.iter().copied().zip(values.iter().copied()));
            ControlFlow::Continue(())
        });
        for (time, value) in undo.range(within.clone()) {
            match value {
                Some(value) => before.insert(*time, *value),
                None => before.remove(time),
            };
        }
        let passing = before.into_iter().filter(|(time, value)| self.passes(*time, *value));
        let (times, values): (Vec<i64>, Vec<f64>) = passing.unzip();
        if times.is_empty() {
            return None;
        }
        let window = aggregated.window(self, within);
        let mut row = None;
        let mut windows = Windows::new(&window, |_, results: &[f64]| {
            row = Some(Row::from_slice(results));
            ControlFlow::Continue(())
        });
        _ = windows.run(&times, &values);
        windows.finish();
        row
    }
}

impl Aggregated {
    /// Returns how far behind the start of a bucket the time of its row is.
    pub(super) fn offset(&self) -> i64 {
        match self.stamp {
            Stamp::Start => 0,
            Stamp::Middle => self.duration / 2,
            Stamp::End => self.duration,
        }
    }
}

//! Rules: which series a series is compacted into, and which it is compacted from.

use crate::persist::record::{Cursor, put_bytes, put_varint};
use crate::value::links::{LinkUse, Linking};
use std::ops::ControlFlow;
use tidemark_series::{Aggregation, Buckets, Direction, Window, Windows};

use super::{Points, TimeSeries};

/// Compaction of a series into another: one point for every bucket of time that is over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    /// Key that gets the points.
    pub(crate) destination: Box<[u8]>,
    /// What a bucket's points become.
    pub(crate) aggregation: Aggregation,
    /// Duration of a bucket, at least 1.
    pub(crate) duration: i64,
    /// Time at which a bucket begins, not negative.
    pub(crate) align: i64,
}

impl Rule {
    /// Returns the start of the bucket that has a time.
    #[inline]
    pub(crate) fn start_of(&self, time: i64) -> i64 {
        self.buckets().start_of(time)
    }

    /// Returns the time of the point that a bucket becomes. Times of clients are not negative.
    pub(crate) fn stamp(start: i64) -> i64 {
        start.max(0)
    }

    fn buckets(&self) -> Buckets {
        Buckets::new(self.duration, self.align).expect("the duration of a rule is at least 1")
    }

    /// Returns what the bucket at `start` becomes; `None` if it has no points. `next` is the point
    /// behind the series' last one, if it is about to come. O(points in the bucket), less what blocks'
    /// summaries save.
    pub(crate) fn result(&self, points: &Points, start: i64, next: Option<(i64, f64)>) -> Option<f64> {
        let (uses_before, uses_after) = self.aggregation.uses_neighbours();
        let end = start.saturating_add(self.duration - 1);
        let next = next.filter(|(_, value)| !value.is_nan());
        let window = self.window(
            if uses_before { number_before(points, start) } else { None },
            if uses_after { next.or_else(|| number_after(points, end)) } else { None },
        );
        let mut result = None;
        let mut windows = Windows::new(&window, |_, results: &[f64]| {
            result = Some(results[0]);
            ControlFlow::Break(())
        });
        points.read(start..=end, Direction::Forward, &mut windows);
        windows.finish();
        result
    }

    /// Calls `visit` with the start and the result of each bucket that has points and is over. O(points).
    pub(crate) fn for_each_result(&self, points: &Points, mut visit: impl FnMut(i64, f64)) {
        let Some(open) = points.last().map(|(time, _)| self.start_of(time)) else { return };
        let window = self.window(None, None);
        let mut windows = Windows::new(&window, |start: i64, results: &[f64]| {
            if start < open {
                visit(start, results[0]);
            }
            ControlFlow::Continue(())
        });
        points.read(i64::MIN..=i64::MAX, Direction::Forward, &mut windows);
        windows.finish();
    }

    /// Returns the buckets, other than those with points in a range, that a change of these points may
    /// change.
    pub(crate) fn beside(&self, points: &Points, from: i64, to: i64) -> impl Iterator<Item = i64> {
        let (uses_before, uses_after) = self.aggregation.uses_neighbours();
        let before = if uses_after { number_before(points, from) } else { None };
        let after = if uses_before { number_after(points, to) } else { None };
        [before, after].into_iter().flatten().map(|(time, _)| self.start_of(time))
    }

    fn window(&self, before: Option<(i64, f64)>, after: Option<(i64, f64)>) -> Window {
        Window {
            buckets: self.buckets(),
            aggregations: vec![self.aggregation],
            empty: false,
            range: 0..=i64::MAX,
            before,
            after,
        }
    }
}

/// Returns the last number, which NaN is not, before a time.
pub(crate) fn number_before(points: &Points, time: i64) -> Option<(i64, f64)> {
    let mut found = None;
    let end = time.checked_sub(1)?;
    points.read(i64::MIN..=end, Direction::Backward, &mut |times: &[i64], values: &[f64]| {
        let at = values.iter().rposition(|value| !value.is_nan());
        found = at.map(|at| (times[at], values[at]));
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// Returns the first number, which NaN is not, behind a time.
fn number_after(points: &Points, time: i64) -> Option<(i64, f64)> {
    let mut found = None;
    let start = time.checked_add(1)?;
    points.read(start..=i64::MAX, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
        let at = values.iter().position(|value| !value.is_nan());
        found = at.map(|at| (times[at], values[at]));
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// What a series knows of other series.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Relations {
    /// Key of the series that it is compacted from.
    pub(crate) source: Option<Box<[u8]>>,
    /// Rules by which it is compacted, in the order in which they were made; no two have the same
    /// destination.
    pub(crate) rules: Vec<Rule>,
}

/// Largest encoded name of an aggregation in a snapshot.
const NAME_MAX: usize = 64;

impl Relations {
    fn is_empty(&self) -> bool {
        self.source.is_none() && self.rules.is_empty()
    }

    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        put_bytes(into, self.source.as_deref().unwrap_or_default());
        into.push(u8::from(self.source.is_some()));
        put_varint(into, self.rules.len() as u64);
        for rule in &self.rules {
            put_bytes(into, &rule.destination);
            put_bytes(into, rule.aggregation.to_string().as_bytes());
            put_varint(into, rule.duration.cast_unsigned());
            put_varint(into, rule.align.cast_unsigned());
        }
    }

    pub(super) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let source = bytes.bytes()?;
        let source = match bytes.u8()? {
            0 => source.is_empty().then_some(None)?,
            1 => Some(source.into()),
            _ => return None,
        };
        let count = usize::try_from(bytes.varint()?).ok().filter(|count| *count <= bytes.remaining())?;
        let rules = (0..count).map(|_| decode_rule(bytes)).collect::<Option<Vec<_>>>()?;
        let relations = Self { source, rules };
        (!relations.is_empty()).then_some(relations)
    }
}

fn decode_rule(bytes: &mut Cursor<'_>) -> Option<Rule> {
    let destination = bytes.bytes()?.into();
    let name = bytes.bytes().filter(|name| name.len() <= NAME_MAX)?;
    let aggregation = std::str::from_utf8(name).ok()?.parse().ok()?;
    let duration = i64::try_from(bytes.varint()?).ok().filter(|duration| *duration > 0)?;
    let align = i64::try_from(bytes.varint()?).ok()?;
    Some(Rule { destination, aggregation, duration, align })
}

impl TimeSeries {
    /// Whether it is compacted into others.
    #[inline]
    pub(crate) fn has_rules(&self) -> bool {
        !self.rules().is_empty()
    }

    /// Returns the rules by which it is compacted.
    #[inline]
    pub(crate) fn rules(&self) -> &[Rule] {
        self.definition().relations.as_deref().map_or(&[], |relations| &relations.rules)
    }

    /// Returns the key of the series that it is compacted from.
    pub(crate) fn source(&self) -> Option<&[u8]> {
        self.definition().relations.as_deref()?.source.as_deref()
    }

    /// Changes what it knows of other series. The database counts keys with links: see
    /// [`crate::context::Keys::change_links`].
    pub(crate) fn relate(&mut self, change: impl FnOnce(&mut Relations)) {
        let definition = self.definition_mut();
        let mut relations = definition.relations.take().map_or_else(Relations::default, |boxed| *boxed);
        change(&mut relations);
        definition.relations = (!relations.is_empty()).then(|| Box::new(relations));
        self.apply_options();
    }
}

impl Linking for TimeSeries {
    fn has_links(&self) -> bool {
        self.definition().relations.is_some()
    }

    /// A change of a destination may change its source: the rule ends when the destination goes.
    fn for_each_link(&self, visit: &mut dyn FnMut(&[u8], LinkUse)) {
        for rule in self.rules() {
            visit(&rule.destination, LinkUse::Writes);
        }
        if let Some(source) = self.source() {
            visit(source, LinkUse::Writes);
            visit(source, LinkUse::Reads);
        }
    }

    fn cut_link(&mut self, key: &[u8]) {
        self.relate(|relations| {
            relations.rules.retain(|rule| *rule.destination != *key);
            relations.source.take_if(|source| **source == *key);
        });
    }

    fn rename_link(&mut self, from: &[u8], to: &[u8]) {
        self.relate(|relations| {
            let destinations = relations.rules.iter_mut().map(|rule| &mut rule.destination);
            for key in destinations.chain(&mut relations.source) {
                if **key == *from {
                    *key = to.into();
                }
            }
        });
    }

    fn cut_all_links(&mut self) {
        self.relate(|relations| *relations = Relations::default());
    }
}

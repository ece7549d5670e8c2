//! Time series: points at distinct times, labels, and what becomes of a second point at a time. See
//! [`tidemark_series`].

mod capture;
mod definition;
mod duration;
mod in_parts;
mod labels;
mod rules;
mod undo;

pub(crate) use definition::{Definition, POLICIES, Unit};
pub(crate) use labels::Labels;
pub(crate) use rules::{Relations, Rule};
pub(crate) use undo::PointsBefore;

use super::{InParts, Value};
use crate::persist::record::{Cursor, put_bytes, put_varint};
use capture::SeriesCapture;
use std::ops::ControlFlow;
use tidemark_series::{AppendError, Appended, Direction, DuplicatePolicy, Series};
use xxhash_rust::xxh3::Xxh3;

/// The points of a series.
pub(crate) type Points = Series<f64>;

/// A time series as the value of a key.
#[derive(Debug)]
pub struct TimeSeries(Box<SeriesState>);

#[derive(Debug)]
struct SeriesState {
    definition: Definition,
    points: Points,
    capture: Option<Box<SeriesCapture>>,
}

impl TimeSeries {
    /// Creates a series without points.
    pub(crate) fn new(definition: Definition) -> Self {
        let points = Points::new(definition.options());
        Self::of(definition, points)
    }

    fn of(definition: Definition, points: Points) -> Self {
        Self(Box::new(SeriesState { definition, points, capture: None }))
    }

    /// Returns what it was created or altered with.
    pub(crate) fn definition(&self) -> &Definition {
        &self.0.definition
    }

    fn definition_mut(&mut self) -> &mut Definition {
        &mut self.0.definition
    }

    /// Tells the points what the definition says of them.
    fn apply_options(&mut self) {
        let options = self.0.definition.options();
        self.0.points.set_options(options);
    }

    /// Returns its points.
    pub(crate) fn points(&self) -> &Points {
        &self.0.points
    }

    /// Returns its labels.
    pub(crate) fn labels(&self) -> &Labels {
        &self.0.definition.labels
    }

    /// Changes everything but its labels, which the database's index knows. A shorter retention drops
    /// points.
    pub(crate) fn redefine(&mut self, definition: Definition) {
        assert_eq!(self.0.definition.labels, definition.labels, "labels change through the index");
        self.0.definition = definition;
        self.apply_options();
    }

    /// Replaces the labels. The caller moves the key in the database's index.
    pub(crate) fn set_labels(&mut self, labels: Labels) {
        self.0.definition.labels = labels;
    }

    /// Adds a point, by the series' policy or another.
    ///
    /// # Errors
    /// The point is too old, or the policy refuses it; nothing has changed then.
    pub(crate) fn append(
        &mut self,
        time: i64,
        value: f64,
        policy: Option<DuplicatePolicy>,
    ) -> Result<Appended<f64>, AppendError> {
        let policy = self.policy_or(policy);
        let SeriesState { definition, points, .. } = &mut *self.0;
        let appended = points.append_with(time, value, policy)?;
        if definition.is_compressed {
            points.seal();
        }
        Ok(appended)
    }

    /// Adds points behind all others. Returns `false`, and changes nothing, if they are not, or if
    /// each must be looked at.
    pub(crate) fn extend(&mut self, times: &[i64], values: &[f64]) -> bool {
        let SeriesState { definition, points, .. } = &mut *self.0;
        if points.options().ignore.is_some() || points.extend(times, values).is_err() {
            return false;
        }
        if definition.is_compressed {
            points.seal();
        }
        true
    }

    /// Returns whether [`TimeSeries::append`] would take a point; changes nothing.
    pub(crate) fn check(
        &self,
        time: i64,
        value: f64,
        policy: Option<DuplicatePolicy>,
    ) -> Result<(), AppendError> {
        self.0.points.check(time, value, self.policy_or(policy))
    }

    fn policy_or(&self, policy: Option<DuplicatePolicy>) -> DuplicatePolicy {
        policy.or(self.0.definition.policy).unwrap_or_default()
    }

    /// Removes the points between two times and returns their number.
    pub(crate) fn remove(&mut self, from: i64, to: i64) -> u64 {
        self.0.points.remove(from..=to)
    }

    /// Returns the memory that it uses, in bytes. O(blocks).
    pub(crate) fn bytes(&self) -> usize {
        size_of::<SeriesState>() + self.0.definition.labels.bytes() + self.0.points.bytes()
    }

    /// Returns the name of the representation, as Redis's module for time series has it.
    #[expect(clippy::unused_self, reason = "the other types decide by their value")]
    pub(crate) fn encoding(&self) -> &'static str {
        "raw"
    }

    /// Appends everything but the parts.
    fn encode_head(&self, into: &mut Vec<u8>) {
        let mut definition = Vec::new();
        self.0.definition.encode(&mut definition);
        put_bytes(into, &definition);
        self.0.points.encode_head(into);
    }

    /// Returns the series of a head and its parts; `None` if they are not well formed.
    fn assemble<'a>(head: &[u8], parts: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut head = Cursor::new(head);
        let mut definition = Cursor::new(head.bytes()?);
        let definition = Definition::decode(&mut definition).filter(|_| definition.is_empty())?;
        let points = head.take(head.remaining())?;
        let points = Points::assemble(definition.options(), points, parts).ok()?;
        Some(Self::of(definition, points))
    }
}

impl Value for TimeSeries {
    /// A series without points stays.
    fn is_empty(&self) -> bool {
        false
    }

    fn elements(&self) -> usize {
        usize::try_from(self.0.points.len()).unwrap_or(usize::MAX)
    }

    fn encoding(&self) -> &'static str {
        self.encoding()
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let mut part = Vec::new();
        self.encode_head(&mut part);
        put_bytes(into, &part);
        put_varint(into, self.0.points.parts() as u64);
        for index in 0..self.0.points.parts() {
            part.clear();
            self.0.points.encode_part(index, &mut part);
            put_bytes(into, &part);
        }
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let head = bytes.bytes()?;
        let count = usize::try_from(bytes.varint()?).ok().filter(|count| *count <= bytes.remaining())?;
        let parts = (0..count).map(|_| bytes.bytes()).collect::<Option<Vec<_>>>()?;
        Self::assemble(head, parts)
    }

    /// Depends on the points, and not on how they lie in blocks.
    fn digest(&self) -> u64 {
        let mut definition = Vec::new();
        self.0.definition.encode(&mut definition);
        let mut digest = Xxh3::new();
        digest.update(&definition);
        digest.update(&self.0.points.floor().to_le_bytes());
        let mut run = Vec::new();
        self.0.points.read(i64::MIN..=i64::MAX, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
            run.clear();
            for (time, value) in times.iter().zip(values) {
                run.extend_from_slice(&time.to_le_bytes());
                run.extend_from_slice(&value.to_bits().to_le_bytes());
            }
            digest.update(&run);
            ControlFlow::Continue(())
        });
        digest.digest()
    }

    fn in_parts(&self) -> Option<&dyn InParts> {
        Some(self)
    }

    fn in_parts_mut(&mut self) -> Option<&mut dyn InParts> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;

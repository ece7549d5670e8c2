//! Time series: points at distinct times, labels, and what becomes of a second point at a time. See
//! [`tidemark_series`].

mod capture;
mod definition;
mod duration;
mod image;
mod in_parts;
mod label_filter;
mod labels;
mod rules;
mod undo;

pub(crate) use definition::{Definition, POLICIES, Unit};
pub(crate) use label_filter::{LabelFilter, Matcher, Pattern, Wanted};
pub(crate) use labels::Labels;
pub(crate) use rules::{Relations, Rule};
pub(crate) use undo::PointsBefore;

use super::{InParts, Object, TypedValue, Value};
use crate::persist::blocks::Blocks;
use crate::persist::record::{Cursor, put_bytes, put_varint};
use capture::SeriesCapture;
use image::{decode_parts, encode_parts};
use std::ops::ControlFlow;
use tidemark_series::{
    AppendError, Appended, Direction, DuplicatePolicy, Part, SealedPiece, Series, Unsealed,
};
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
    #[inline]
    pub(crate) fn append(
        &mut self,
        time: i64,
        value: f64,
        policy: Option<DuplicatePolicy>,
    ) -> Result<Appended<f64>, AppendError> {
        let policy = self.policy_or(policy);
        self.0.points.append_with(time, value, policy)
    }

    /// Adds points behind all others. Returns `false`, and changes nothing, if they are not, or if
    /// each must be looked at.
    pub(crate) fn extend(&mut self, times: &[i64], values: &[f64]) -> bool {
        let points = &mut self.0.points;
        points.options().ignore.is_none() && points.extend(times, values).is_ok()
    }

    /// Returns the number of full blocks that are to be compressed. The caller that fills one compresses
    /// it by [`TimeSeries::seal`], or has a thread do so.
    #[inline]
    pub(crate) fn to_seal(&self) -> usize {
        let SeriesState { definition, points, .. } = &*self.0;
        if definition.is_compressed { points.open_pieces() } else { 0 }
    }

    /// Compresses full blocks.
    pub(crate) fn seal(&mut self) {
        if self.to_seal() > 0 {
            self.0.points.seal();
        }
    }

    /// Returns how much the head has grown since it was worth compressing; 0 if it is not. The caller that
    /// grows one has a thread compress it.
    #[inline]
    pub(crate) fn head_growth(&self) -> u32 {
        let SeriesState { definition, points, .. } = &*self.0;
        if definition.is_compressed { points.head_growth() } else { 0 }
    }

    /// Compresses the head, if it has grown.
    pub(crate) fn seal_head(&mut self) {
        if self.0.definition.is_compressed {
            self.0.points.seal_head();
        }
    }

    /// Returns the points of a full block, to be compressed elsewhere.
    pub(crate) fn unsealed(&self) -> Option<Unsealed<f64>> {
        if self.to_seal() > 0 { self.0.points.unsealed() } else { None }
    }

    /// Returns the points of a head that has grown, to be compressed elsewhere. One that has not gives up the
    /// memory that it does not need.
    pub(crate) fn unsealed_head(&mut self) -> Option<Unsealed<f64>> {
        let SeriesState { definition, points, .. } = &mut *self.0;
        if !definition.is_compressed {
            return None;
        }
        let unsealed = points.unsealed_head();
        if unsealed.is_none() {
            points.shrink_head();
        }
        unsealed
    }

    /// Puts a compressed block in the place of its points, unless they have changed since.
    pub(crate) fn put_sealed(&mut self, sealed: SealedPiece<f64>) {
        self.0.points.put_sealed(sealed);
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
    fn assemble(head: &[u8], parts: Vec<Part<f64>>) -> Option<Self> {
        let mut head = Cursor::new(head);
        let mut definition = Cursor::new(head.bytes()?);
        let definition = Definition::decode(&mut definition).filter(|_| definition.is_empty())?;
        let points = head.take(head.remaining())?;
        let points = Points::of_parts(definition.options(), points, parts.into_iter().map(Ok)).ok()?;
        Some(Self::of(definition, points))
    }

    /// Returns a series that has only these parts; `None` if they do not follow each other.
    fn of_run(parts: Vec<Part<f64>>) -> Option<Self> {
        let definition = Definition::default();
        let mut head = Vec::new();
        Points::new(definition.options()).encode_head(&mut head);
        let points = Points::of_parts(definition.options(), &head, parts.into_iter().map(Ok)).ok()?;
        Some(Self::of(definition, points))
    }

    /// Returns its parts, without what is in none.
    fn into_parts(self) -> impl Iterator<Item = Part<f64>> {
        self.0.points.into_parts()
    }

    /// Returns the memory of the blocks whose points are in memory, in bytes. O(blocks).
    pub(crate) fn bytes_of_points(&self) -> usize {
        self.0.points.bytes_of_points()
    }

    /// Drops points that are in block files, the oldest first, until about `bytes` are free. Returns how
    /// many are. No answer changes. O(blocks).
    pub(crate) fn drop_points(&mut self, bytes: usize) -> usize {
        self.0.points.drop_points(bytes)
    }
}

impl Value for TimeSeries {
    /// A series without points stays.
    fn is_empty(&self) -> bool {
        false
    }

    /// Also those that the retention hides: to know their number, a block may have to be read.
    fn elements(&self) -> usize {
        usize::try_from(self.0.points.stored()).unwrap_or(usize::MAX)
    }

    fn encoding(&self) -> &'static str {
        self.encoding()
    }

    fn encode(&self, into: &mut Vec<u8>) {
        self.encode_with(&Blocks::default(), into);
    }

    fn encode_with(&self, blocks: &Blocks, into: &mut Vec<u8>) {
        let mut part = Vec::new();
        self.encode_head(&mut part);
        put_bytes(into, &part);
        put_varint(into, self.0.points.parts() as u64);
        encode_parts(&self.0.points, 0..self.0.points.parts(), blocks, into);
    }

    /// The copy shares the blocks.
    fn share(&self) -> Option<Object> {
        let SeriesState { definition, points, .. } = &*self.0;
        Some(Self::of(definition.clone(), points.clone()).into_object())
    }

    fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let head = bytes.bytes()?;
        let count = usize::try_from(bytes.varint()?).ok().filter(|count| *count <= bytes.remaining())?;
        let parts = decode_parts(count, bytes).filter(|parts| parts.len() == count)?;
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

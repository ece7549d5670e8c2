//! The rows of a watched range that are followed from change to change, instead of kept.

use crate::value::TimeSeries;
use crate::wire::reply::Protocol;
use std::collections::BTreeMap;

/// Points before a change, by their times: see [`crate::value::series::PointsBefore`].
pub(crate) type Undo = BTreeMap<i64, Option<f64>>;

/// Points before the changes of a record, by database and key.
pub(crate) type NotedPoints = BTreeMap<(u8, Box<[u8]>), Undo>;

/// Returns the series of a key in the read's database; `None` if it has none, or a lens.
pub(crate) type SeriesAt<'s> = dyn Fn(&[u8]) -> Option<&'s TimeSeries> + 's;

/// A key of which more than points may have changed, and whether the read selects what it has now.
pub(crate) type Beyond = (Box<[u8]>, bool);

/// What has changed of the series that a read reads.
pub(crate) struct Changes<'c> {
    pub(crate) db: u8,
    pub(crate) points: &'c NotedPoints,
    pub(crate) beyond: &'c [Beyond],
}

impl Changes<'_> {
    /// Returns what a change of points of a key has replaced, if there was one.
    pub(crate) fn of(&self, key: &[u8]) -> Option<&Undo> {
        self.points.get(&(self.db, key.into()))
    }

    /// Returns the keys whose points have changed.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.points.keys().filter(|(db, _)| *db == self.db).map(|(_, key)| &**key)
    }
}

/// What becomes of the rows of an answer.
pub(crate) enum Outcome {
    Same,
    /// These have changed, encoded.
    Changed(Vec<u8>),
    /// They can no longer be followed: the whole answer must be read again.
    Lost,
}

impl From<Option<Vec<u8>>> for Outcome {
    fn from(rows: Option<Vec<u8>>) -> Self {
        rows.map_or(Self::Same, Self::Changed)
    }
}

/// What is kept of an answer to find its changes. The type of it belongs to the command. The arguments of
/// the read begin with the command's name.
pub(crate) trait Following: Send {
    /// Follows changes, which have been made. O(rows that have changed), and the rows of series of which
    /// more than points has.
    fn follow(
        &mut self,
        series: &SeriesAt<'_>,
        args: &[&[u8]],
        changes: &Changes<'_>,
        protocol: Protocol,
    ) -> Outcome;

    /// Whether a point leaves or comes if the range, whose ends depend on the time, moves to another.
    /// O(log(points)) for each series.
    fn passes(&self, series: &SeriesAt<'_>, args: &[&[u8]], as_of_us: u64) -> bool;

    /// Moves the range, whose ends depend on the time, to another; the series have not changed. O(points
    /// that leave or come), and the number of series.
    fn slide(&mut self, series: &SeriesAt<'_>, args: &[&[u8]], as_of_us: u64, protocol: Protocol) -> Outcome;

    /// Returns numbers that are equal for equal answers.
    fn digest(&self) -> (u64, u128);

    /// Returns the memory that it uses, in bytes.
    fn bytes(&self) -> usize;

    /// Appends what a snapshot keeps of it.
    fn encode(&self, into: &mut Vec<u8>);
}

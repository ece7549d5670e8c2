//! The rows of a watched range that are followed from change to change, instead of kept.

use crate::command::Clock;
use crate::value::series::Points;
use crate::wire::reply::Protocol;
use std::collections::BTreeMap;

/// Points before a change, by their times: see [`crate::value::series::PointsBefore`].
pub(crate) type Undo = BTreeMap<i64, Option<f64>>;

/// What is kept of an answer to find its changes. The type of it belongs to the command.
pub(crate) trait Following: Send {
    /// Follows a change of points of the series, which has been made. Returns the rows that have
    /// changed, encoded; `None` if none has. O(rows that have changed).
    fn follow(&mut self, points: &Points, undo: &Undo, protocol: Protocol) -> Option<Vec<u8>>;

    /// Whether a point leaves or comes if the range, whose ends depend on the time, moves to that of `clock`.
    /// O(log(points)).
    fn passes(&self, points: &Points, args: &[&[u8]], clock: Clock) -> bool;

    /// Moves the range, whose ends depend on the time, to that of `clock`; the points have not changed.
    /// Returns the rows that have changed, encoded; `None` if none has. O(points that leave or come).
    fn slide(&mut self, points: &Points, args: &[&[u8]], clock: Clock, protocol: Protocol)
    -> Option<Vec<u8>>;

    /// Returns the number of rows, and the sum of their digests: equal answers have equal ones.
    fn digest(&self) -> (u64, u128);

    /// Returns the memory that it uses, in bytes.
    fn bytes(&self) -> usize;

    /// Appends what a snapshot keeps of it.
    fn encode(&self, into: &mut Vec<u8>);
}

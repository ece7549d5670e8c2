//! A series: a partial function from time to values.
//!
//! Its points are in three places. *Pieces* hold most of them, in time order. The *head* gets points
//! behind all pieces. *Late* points belong between the points of pieces, or replace one; they are
//! merged into the pieces when there are many.

mod appending;
mod columns;
mod dropping;
mod image;
mod late;
mod layers;
mod lookup;
mod piece;
mod policy;
mod removing;
mod sealing;
mod snapshot;

pub use appending::{AppendError, Appended};
pub use image::{ImageError, Part};
pub use layers::{Direction, Reading};
pub(crate) use lookup::between;
pub use policy::{DuplicatePolicy, Ignore};
pub use sealing::{SealedPiece, Unsealed};
pub use snapshot::Snapshot;

use crate::codec::Hints;
use crate::sample::Sample;
use crate::unreadable::served;
use columns::Columns;
use late::Late;
use piece::Piece;
use std::collections::VecDeque;

/// What a series does with its points.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Options {
    /// Age, relative to the newest point, above which points are dropped; zero for none.
    pub retention: u64,
    /// What becomes of a second point at the same time.
    pub duplicates: DuplicatePolicy,
    /// Which points are ignored.
    pub ignore: Option<Ignore>,
}

/// Points that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Time of the first point.
    pub first: i64,
    /// Time of the last point.
    pub last: i64,
    /// Number of points.
    pub points: usize,
    /// Memory in bytes.
    pub bytes: usize,
}

/// A partial function from time to values of type `V`, as points at distinct times.
///
/// Time is an `i64` in whatever unit the caller uses. Points come in any order; those in time order
/// cost least.
///
/// ```
/// use tidemark_series::{Options, Series};
///
/// let mut series = Series::new(Options::default());
/// series.append(1_000, 20.5).unwrap();
/// series.append(2_000, 21.0).unwrap();
/// series.append(1_500, 20.7).unwrap(); // late, and taken
/// assert_eq!(series.get(1_500), Some(20.7));
/// assert_eq!(series.at_or_before(1_999), Some((1_500, 20.7)));
/// assert_eq!(series.get(1_999), None);
/// ```
#[derive(Debug, Clone)]
pub struct Series<V> {
    options: Options,
    pieces: VecDeque<Piece<V>>,
    head: Columns<V>,
    late: Late<V>,
    /// Number of points outside of the head, with those that hide behind the floor until their piece
    /// is dropped.
    settled: u64,
    /// Number of pieces that are not compressed.
    open_pieces: usize,
    /// Time of the newest point outside of the head; `i64::MIN` without one.
    newest_settled: i64,
    /// Points before this time have been dropped, and stay so, even if the retention changes.
    floor: i64,
    /// A point behind the head's last, up to this time, only goes to the head: no option applies to
    /// it, and no piece becomes too old by it.
    append_until: i64,
    /// Whether points of a block may be out of memory.
    may_lack_points: bool,
    hints: Hints,
}

impl<V: Sample> Series<V> {
    /// Makes a series without points.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            pieces: VecDeque::new(),
            head: Columns::default(),
            late: Late::default(),
            settled: 0,
            open_pieces: 0,
            newest_settled: i64::MIN,
            floor: i64::MIN,
            append_until: i64::MIN,
            may_lack_points: false,
            hints: Hints::default(),
        }
    }

    /// Returns what the series does with its points.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Changes what the series does with its points. A shorter retention drops points now; a longer
    /// one brings none back.
    pub fn set_options(&mut self, options: Options) {
        self.floor = self.floor();
        self.options = options;
        self.retain();
    }

    /// Returns the number of points. O(1), or one block decoded if the retention hides a part of it.
    pub fn len(&self) -> u64 {
        match self.floor().checked_sub(1) {
            Some(hidden) => self.stored() - served(self.count_stored(i64::MIN..=hidden)),
            None => self.stored(),
        }
    }

    /// Whether the series has no points.
    pub fn is_empty(&self) -> bool {
        self.stored() == 0
    }

    /// Returns the number of points, with those that the retention hides until their block goes. O(1).
    pub fn stored(&self) -> u64 {
        self.settled + self.head.len() as u64
    }

    /// Returns the time of the newest point; `i64::MIN` without points.
    #[inline]
    fn newest(&self) -> i64 {
        self.head.last_time().unwrap_or(self.newest_settled)
    }

    /// Returns the time before which points have been dropped; `i64::MIN` if none have.
    #[inline]
    pub fn floor(&self) -> i64 {
        if self.options.retention == 0 {
            return self.floor;
        }
        self.floor.max(self.newest().saturating_sub_unsigned(self.options.retention))
    }

    /// Returns the floor after a point at `time` has been added.
    #[inline]
    pub fn floor_with(&self, time: i64) -> i64 {
        if self.options.retention == 0 {
            return self.floor;
        }
        self.floor.max(self.newest().max(time).saturating_sub_unsigned(self.options.retention))
    }

    /// Returns the memory that the points use, in bytes. O(pieces).
    pub fn bytes(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(Piece::bytes).sum();
        pieces + self.pieces.capacity() * size_of::<Piece<V>>() + self.head.bytes() + self.late.bytes()
    }

    /// Returns the number of pieces the points are in, the head included.
    pub fn chunks(&self) -> usize {
        self.pieces.len() + usize::from(!self.head.is_empty())
    }

    /// Describes the pieces and the head; late points are in neither. O(pieces).
    pub fn describe(&self) -> Vec<Chunk> {
        let of_piece = |piece: &Piece<V>| Chunk {
            first: piece.first,
            last: piece.last,
            points: piece.len(),
            bytes: piece.bytes(),
        };
        let head = self.head.first_time().zip(self.head.last()).map(|(first, (last, _))| Chunk {
            first,
            last,
            points: self.head.len(),
            bytes: self.head.bytes(),
        });
        self.pieces.iter().map(of_piece).chain(head).collect()
    }
}

#[cfg(test)]
mod tests;

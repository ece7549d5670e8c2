//! New points, and those that are too old to be kept.

use super::columns::Columns;
use super::piece::Piece;
use super::{DuplicatePolicy, Series};
use crate::BLOCK_POINTS;
use crate::sample::Sample;
use crate::unreadable::{Unreadable, guarded, keep_refusing_block};

/// What became of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Appended<V> {
    /// The series has one point more.
    Added,
    /// The point at this time has another value now, or the same; this is the value before.
    Replaced(V),
    /// It says nothing new ([`Options::ignore`](super::Options::ignore)); the last point's time is
    /// this.
    Ignored(i64),
}

/// Why a point is refused. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// There is a point at this time, and the policy refuses a second.
    #[error("the series has a point at {0} already, and its duplicate policy refuses this one")]
    Duplicate(i64),
    /// The point is older than the retention allows.
    #[error("{time} is before {floor}, from which on the series keeps its points")]
    TooOld {
        /// Time of the point.
        time: i64,
        /// Earliest time that is kept.
        floor: i64,
    },
    /// The sum of the two values at this time is beyond the type's range.
    #[error("the sum of the values at {0} is beyond the range of their type")]
    Overflow(i64),
    /// The points around this time are in a block that cannot be read from its file:
    /// [`take_refusing_block`](crate::take_refusing_block) has more. An error that owned it would make
    /// every append look whether there is something to drop.
    #[error("the points of the series around {0} cannot be read from their file")]
    Unreadable(i64),
    /// Times do not rise, or there are more or fewer of them than values.
    #[error("points that are appended together must be at rising times, one value each")]
    NotRising,
}

impl<V: Sample> Series<V> {
    /// Adds a point at any time that the retention allows. Amortised O(1) behind the newest point;
    /// late points cost a lookup, and now and then a merge.
    #[inline]
    pub fn append(&mut self, time: i64, value: V) -> Result<Appended<V>, AppendError> {
        if self.append_to_head(time, value) {
            return Ok(Appended::Added);
        }
        self.append_slowly(time, value, self.options.duplicates)
    }

    /// Like [`Series::append`], with another policy for this point.
    #[inline]
    pub fn append_with(
        &mut self,
        time: i64,
        value: V,
        duplicates: DuplicatePolicy,
    ) -> Result<Appended<V>, AppendError> {
        if self.append_to_head(time, value) {
            return Ok(Appended::Added);
        }
        self.append_slowly(time, value, duplicates)
    }

    /// Appends a point if nothing but the head changes by it.
    #[inline]
    fn append_to_head(&mut self, time: i64, value: V) -> bool {
        time <= self.append_until && self.head.push_behind(time, value)
    }

    #[cold]
    #[inline(never)]
    fn append_slowly(
        &mut self,
        time: i64,
        value: V,
        duplicates: DuplicatePolicy,
    ) -> Result<Appended<V>, AppendError> {
        let floor = self.floor();
        if time < floor {
            return Err(AppendError::TooOld { time, floor });
        }
        let is_behind = self.is_empty() || time > self.newest();
        if is_behind && self.options.ignore.is_none() {
            self.push(time, value);
            self.retain();
            return Ok(Appended::Added);
        }
        told(time, || {
            if let Some(last) = self.ignored_for(time, value, duplicates)? {
                return Ok(Ok(Appended::Ignored(last)));
            }
            if is_behind {
                self.push(time, value);
                self.retain();
                return Ok(Ok(Appended::Added));
            }
            self.put_or_replace(time, value, duplicates)
        })
    }

    /// Adds a point that is not behind all others.
    fn put_or_replace(
        &mut self,
        time: i64,
        value: V,
        duplicates: DuplicatePolicy,
    ) -> Result<Result<Appended<V>, AppendError>, Unreadable> {
        let Some(old) = self.layers().get(time)? else {
            self.put(time, value, true)?;
            return Ok(Ok(Appended::Added));
        };
        let kept = match resolve(time, old, value, duplicates) {
            Ok(kept) => kept,
            Err(refused) => return Ok(Err(refused)),
        };
        if kept.to_bits() != old.to_bits() {
            self.put(time, kept, false)?;
        }
        Ok(Ok(Appended::Replaced(old)))
    }

    /// Returns whether a point would be added, replace another or be ignored; changes nothing.
    ///
    /// # Errors
    /// The error with which [`Series::append_with`] would refuse it.
    pub fn check(&self, time: i64, value: V, duplicates: DuplicatePolicy) -> Result<(), AppendError> {
        let floor = self.floor();
        if time < floor {
            return Err(AppendError::TooOld { time, floor });
        }
        if self.is_empty() || time > self.newest() {
            return Ok(());
        }
        told(time, || {
            if self.ignored_for(time, value, duplicates)?.is_some() {
                return Ok(Ok(()));
            }
            let old = self.layers().get(time)?;
            Ok(old.map_or(Ok(()), |old| resolve(time, old, value, duplicates).map(|_| ())))
        })
    }

    /// Returns the time of the last point if a point is ignored because of it.
    fn ignored_for(
        &self,
        time: i64,
        value: V,
        duplicates: DuplicatePolicy,
    ) -> Result<Option<i64>, Unreadable> {
        let Some(ignore) = self.options.ignore else { return Ok(None) };
        if duplicates != DuplicatePolicy::Last || self.is_empty() || time < self.newest() {
            return Ok(None);
        }
        Ok(self.find_last()?.filter(|last| ignore.covers(*last, time, value)).map(|last| last.0))
    }

    /// Adds points behind all others. The times must rise and begin behind the newest point; nothing
    /// is added if they do not. O(n), a copy of the columns.
    pub fn extend(&mut self, times: &[i64], values: &[V]) -> Result<(), AppendError> {
        let Some(first) = times.first() else {
            return if values.is_empty() { Ok(()) } else { Err(AppendError::NotRising) };
        };
        if times.len() != values.len() || !rise(times) || (!self.is_empty() && *first <= self.newest()) {
            return Err(AppendError::NotRising);
        }
        let floor = self.floor();
        if *first < floor {
            return Err(AppendError::TooOld { time: *first, floor });
        }
        let (mut times, mut values) = (times, values);
        while !times.is_empty() {
            let room = self.make_head_room().min(times.len());
            self.head.extend(&times[..room], &values[..room]);
            (times, values) = (&times[room..], &values[room..]);
        }
        self.retain();
        Ok(())
    }

    /// Appends a point behind all others.
    fn push(&mut self, time: i64, value: V) {
        let limit = self.make_head_room() + self.head.len();
        self.head.push(time, value, limit);
    }

    /// Returns how many more points the head takes, at least 1. The head and the small blocks before it
    /// fill a block together; a head that does is closed.
    fn make_head_room(&mut self) -> usize {
        let limit = BLOCK_POINTS - self.tail_points();
        if self.head.len() < limit {
            return limit - self.head.len();
        }
        self.close_head();
        BLOCK_POINTS
    }

    /// Makes a piece of the head, which has points.
    fn close_head(&mut self) {
        let head = std::mem::replace(&mut self.head, Columns::with_room_for_a_block());
        self.settle(head);
    }

    /// Makes a piece of points behind all pieces that are in the head no more.
    pub(super) fn settle(&mut self, points: Columns<V>) {
        self.settled += points.len() as u64;
        let piece = Piece::open(points);
        self.newest_settled = piece.last;
        self.pieces.push_back(piece);
        self.open_pieces += 1;
    }

    /// Puts a point at or before the newest: into the head, or among the late ones.
    fn put(&mut self, time: i64, value: V, is_new: bool) -> Result<(), Unreadable> {
        let behind_pieces = self.pieces.back().is_none_or(|piece| time > piece.last);
        if behind_pieces {
            match self.head.get_mut(time) {
                Some(old) => *old = value,
                None => self.head.insert(time, value),
            }
            self.split_head();
            return Ok(());
        }
        if self.has_too_many_late() {
            self.merge_late()?;
        }
        self.settled += u64::from(is_new);
        self.late.set(time, value);
        self.merge_late_if_many();
        Ok(())
    }

    /// Makes pieces of the first points of a head that has too many.
    pub(super) fn split_head(&mut self) {
        while self.head.len() > BLOCK_POINTS {
            let mut rest = Columns::with_room_for_a_block();
            let (times, values) = (self.head.times(), self.head.values());
            rest.extend(&times[BLOCK_POINTS..], &values[BLOCK_POINTS..]);
            let full = Columns::from_parts(times[..BLOCK_POINTS].to_vec(), values[..BLOCK_POINTS].to_vec());
            self.settle(full);
            self.head = rest;
        }
    }

    /// Drops what is older than the retention allows. Amortised O(1): whole pieces go when their last
    /// point is too old, and single points only hide behind the floor until then.
    pub(super) fn retain(&mut self) {
        let floor = self.floor();
        if floor > self.floor {
            self.floor = floor;
            self.drop_below_floor();
        }
        self.expect_appends();
    }

    /// Computes up to which time points may be appended without a look at the options.
    pub(super) fn expect_appends(&mut self) {
        self.append_until = if self.options.ignore.is_some() {
            i64::MIN
        } else if self.options.retention > 0
            && let Some(oldest) = self.pieces.front()
        {
            oldest.last.saturating_add_unsigned(self.options.retention)
        } else {
            i64::MAX
        };
    }
}

/// Returns what a change at a time has come to that may need a block, and keeps the block if it cannot be
/// read.
fn told<T>(
    time: i64,
    change: impl FnOnce() -> Result<Result<T, AppendError>, Unreadable>,
) -> Result<T, AppendError> {
    match guarded(change) {
        Ok(changed) => changed.expect("a block that cannot be read is recorded for the guard"),
        Err(block) => {
            keep_refusing_block(block);
            Err(AppendError::Unreadable(time))
        }
    }
}

/// Returns the value that stays of two at the same time.
fn resolve<V: Sample>(time: i64, old: V, value: V, duplicates: DuplicatePolicy) -> Result<V, AppendError> {
    let is_number = !old.is_nan() && !value.is_nan();
    let refused = if duplicates == DuplicatePolicy::Sum && is_number {
        AppendError::Overflow(time)
    } else {
        AppendError::Duplicate(time)
    };
    duplicates.resolve(old, value).ok_or(refused)
}

/// Whether each time is behind the one before. Looks at all of them, which a processor does many at a
/// time.
fn rise(times: &[i64]) -> bool {
    times.windows(2).filter(|pair| pair[0] >= pair[1]).count() == 0
}

//! What a change of a series' points has replaced.

use super::TimeSeries;
use std::ops::{ControlFlow, RangeInclusive};
use tidemark_series::{AppendError, Appended, Direction, DuplicatePolicy, guarded};

/// Most points of one change that are noted one by one.
const POINTS_MAX: usize = 1 << 17;

/// Points as they were before a change, recorded for watched reads of the key. A point that was not there
/// has no value. A time may come twice: then the first is from before.
#[derive(Debug)]
pub(crate) enum PointsBefore {
    /// Not recorded: no read watches the key.
    Unwatched,
    /// Not recorded: it is more than a change of points, or there are too many.
    Unknown,
    Known(Vec<(i64, Option<f64>)>),
}

impl PointsBefore {
    /// Returns an empty record.
    pub(crate) fn none(are_wanted: bool) -> Self {
        if are_wanted { Self::Known(Vec::new()) } else { Self::Unwatched }
    }

    /// Notes that a series is about to change. The first point may have created it, so it is more than a
    /// change of points.
    fn begin(&mut self, series: &TimeSeries) {
        if matches!(self, Self::Known(_)) && series.points().is_empty() {
            *self = Self::Unknown;
        }
    }

    fn push(&mut self, time: i64, value: Option<f64>) {
        match self {
            Self::Known(points) if points.len() < POINTS_MAX => points.push((time, value)),
            Self::Known(_) => *self = Self::Unknown,
            Self::Unwatched | Self::Unknown => {}
        }
    }

    /// Notes points that go, unless they cannot be read.
    fn note_all(&mut self, series: &TimeSeries, range: RangeInclusive<i64>) {
        let read = guarded(|| {
            series.points().read(range, Direction::Forward, &mut |times: &[i64], values: &[f64]| {
                times.iter().zip(values).for_each(|(time, value)| self.push(*time, Some(*value)));
                if matches!(self, Self::Known(_)) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
        });
        if read.is_err() {
            *self = Self::Unknown;
        }
    }

    /// Notes points that the retention drops when the series gets a point at `time`.
    fn note_dropped(&mut self, series: &TimeSeries, time: i64) {
        let (floor, behind) = (series.points().floor(), series.points().floor_with(time));
        if floor < behind {
            self.note_all(series, floor..=behind - 1);
        }
    }

    fn undo_to(&mut self, length: usize) {
        if let Self::Known(points) = self {
            points.truncate(length);
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Unwatched | Self::Unknown => 0,
            Self::Known(points) => points.len(),
        }
    }
}

impl TimeSeries {
    /// As [`TimeSeries::append`], and notes what was there before.
    #[inline]
    pub(crate) fn append_noting(
        &mut self,
        time: i64,
        value: f64,
        policy: Option<DuplicatePolicy>,
        before: &mut PointsBefore,
    ) -> Result<Appended<f64>, AppendError> {
        before.begin(self);
        if !matches!(before, PointsBefore::Known(_)) {
            return self.append(time, value, policy);
        }
        let length = before.len();
        before.note_dropped(self, time);
        let appended = self.append(time, value, policy);
        match &appended {
            Ok(Appended::Added) => before.push(time, None),
            Ok(Appended::Replaced(old)) => before.push(time, Some(*old)),
            Ok(Appended::Ignored(_)) | Err(_) => before.undo_to(length),
        }
        appended
    }

    /// As [`TimeSeries::extend`], and notes what was there before.
    pub(crate) fn extend_noting(&mut self, times: &[i64], values: &[f64], before: &mut PointsBefore) -> bool {
        before.begin(self);
        let length = before.len();
        if let (PointsBefore::Known(_), Some(last)) = (&before, times.last()) {
            before.note_dropped(self, *last);
        }
        let is_extended = self.extend(times, values);
        if is_extended && matches!(before, PointsBefore::Known(_)) {
            times.iter().for_each(|time| before.push(*time, None));
        } else {
            before.undo_to(length);
        }
        is_extended
    }

    /// As [`TimeSeries::remove`], and notes what was there before.
    pub(crate) fn remove_noting(&mut self, from: i64, to: i64, before: &mut PointsBefore) -> u64 {
        if let PointsBefore::Known(_) = before {
            before.note_all(self, from..=to);
        }
        self.remove(from, to)
    }
}

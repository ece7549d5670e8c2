//! Buckets of equal duration.

/// Buckets of equal duration, of which one begins at the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buckets {
    pub(super) duration: i64,
    pub(super) origin: i64,
}

impl Buckets {
    /// Returns buckets of `duration`, which is at least 1; `None` if it is not.
    pub fn new(duration: i64, origin: i64) -> Option<Self> {
        (duration > 0).then_some(Self { duration, origin })
    }

    /// Returns the duration of a bucket.
    pub fn duration(&self) -> i64 {
        self.duration
    }

    /// Returns the start of the bucket that has `time`; the lowest time if it would begin before that.
    #[inline]
    pub fn start_of(&self, time: i64) -> i64 {
        match time.checked_sub(self.origin) {
            Some(distance) => time.saturating_sub(distance.rem_euclid(self.duration)),
            None => {
                let distance = i128::from(time) - i128::from(self.origin);
                let start = i128::from(time) - distance.rem_euclid(i128::from(self.duration));
                i64::try_from(start).unwrap_or(i64::MIN)
            }
        }
    }
}

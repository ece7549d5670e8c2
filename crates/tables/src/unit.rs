//! Units of times.

use std::fmt;
use std::str::FromStr;

/// What a time counts, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// All units.
    pub const ALL: [Self; 4] = [Self::Nanoseconds, Self::Microseconds, Self::Milliseconds, Self::Seconds];

    /// Returns the name, as `TS.CREATE … UNIT` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }

    /// Returns the length in nanoseconds.
    #[must_use]
    pub fn nanoseconds(self) -> i64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
        }
    }

    /// Converts a time of this unit into another. `None` if it is no whole number of that, or beyond the range.
    #[must_use]
    pub fn convert(self, time: i64, into: Self) -> Option<i64> {
        if self == into {
            Some(time)
        } else {
            into.of_nanoseconds(i128::from(time) * i128::from(self.nanoseconds()))
        }
    }

    /// Counts nanoseconds in this unit. `None` if they are no whole number of it, or beyond the range.
    #[must_use]
    pub fn of_nanoseconds(self, nanoseconds: i128) -> Option<i64> {
        let unit = i128::from(self.nanoseconds());
        if nanoseconds % unit != 0 {
            return None;
        }
        i64::try_from(nanoseconds / unit).ok()
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Unit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|unit| unit.name() == text).ok_or("the unit must be ns, us, ms or s")
    }
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn a_conversion_is_exact_or_refused() {
        use Unit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
        for (from, time, into, expected) in [
            (Milliseconds, i64::MAX, Milliseconds, Some(i64::MAX)),
            (Milliseconds, 1_500, Seconds, None),
            (Milliseconds, 2_000, Seconds, Some(2)),
            (Seconds, i64::MAX, Milliseconds, None),
            (Seconds, 9_223_372_036, Nanoseconds, Some(9_223_372_036_000_000_000)),
            (Seconds, 9_223_372_037, Nanoseconds, None),
            (Nanoseconds, i64::MAX, Microseconds, None),
            (Microseconds, -3, Nanoseconds, Some(-3_000)),
        ] {
            assert_eq!(from.convert(time, into), expected, "{time} {from} in {into}");
        }
    }
}

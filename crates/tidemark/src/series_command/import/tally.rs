//! What became of the points.

use crate::counted::counted;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Most reasons that are counted apart.
const REASONS_MAX: usize = 20;

/// Counts of points.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Points that are in their series.
    taken: u64,
    /// Points that their series leaves out, as its options say.
    ignored: u64,
    /// Series that were sent points.
    series: u64,
    refused: BTreeMap<String, u64>,
}

impl Tally {
    pub(super) fn take(&mut self, points: u64) {
        self.taken += points;
    }

    pub(super) fn ignore(&mut self, points: u64) {
        self.ignored += points;
    }

    pub(super) fn series(&mut self) {
        self.series += 1;
    }

    pub(super) fn refuse(&mut self, reason: &str, points: u64) {
        let is_known = self.refused.contains_key(reason) || self.refused.len() < REASONS_MAX;
        let reason = if is_known { reason } else { "other reasons" };
        *self.refused.entry(reason.to_owned()).or_default() += points;
    }

    /// Returns how many points were refused.
    pub(super) fn refused(&self) -> u64 {
        self.refused.values().sum()
    }

    /// Writes the counts.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{} of {} series taken", counted(self.taken, "point"), self.series)?;
        if self.ignored > 0 {
            writeln!(out, "{} left out by IGNORE or by the policy first", counted(self.ignored, "point"))?;
        }
        for (reason, points) in &self.refused {
            writeln!(out, "{} refused: {reason}", counted(*points, "point"))?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_apart_up_to_a_limit() {
        let mut tally = Tally::default();
        for reason in 0..100 {
            tally.refuse(&reason.to_string(), 2);
        }
        assert_eq!((tally.refused(), tally.refused.len()), (200, REASONS_MAX + 1));
        assert_eq!(tally.refused["other reasons"], 160);
    }
}

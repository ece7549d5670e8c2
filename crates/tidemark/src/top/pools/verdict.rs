//! Verdict on the draws of a pool: whether they fit the odds, within chance.

/// Thresholds for "unusual" and "beyond chance": chance alone exceeds them in about one view of
/// twenty and one of a thousand. Standard deviations.
const UNUSUAL: f64 = 1.645;
const BEYOND: f64 = 3.09;

/// Result of the comparison of draws with the odds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Verdict {
    /// Draws that were compared with the odds.
    pub(super) compared: u64,
    /// Draws that were left out.
    pub(super) left_out: u64,
    /// Distance from the odds in standard deviations; `None` while there are too few draws.
    pub(super) deviation: Option<f64>,
}

impl Verdict {
    /// Returns the verdict in words.
    pub(super) fn word(&self) -> &'static str {
        match self.deviation {
            None => "too few draws to say",
            Some(deviation) if deviation < UNUSUAL => "as the odds say, within chance",
            Some(deviation) if deviation < BEYOND => "unusual, but chance does that now and then",
            Some(_) => "not as the odds say: beyond chance",
        }
    }

    /// Returns whether an operator should look.
    pub(super) fn is_alarming(&self) -> bool {
        self.deviation.is_some_and(|deviation| deviation >= BEYOND)
    }
}

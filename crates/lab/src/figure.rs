//! Figures in the texts of reports.

use std::fmt;

/// A figure in a text: `-` where nothing was measured, which is not a number here and `null` in JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure(pub(crate) f64);

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() { out.pad("-") } else { self.0.fmt(out) }
    }
}

#[cfg(test)]
mod tests {
    use super::Figure;

    #[test]
    fn what_was_not_measured_is_a_dash() {
        assert_eq!(format!("{:.3} {:>3}|", Figure(f64::NAN), Figure(f64::NAN)), "-   -|");
        assert_eq!(format!("{:.3} {}", Figure(0.0), Figure(2.5)), "0.000 2.5");
    }
}

//! Figures in texts, of which some were not measured.

use std::fmt;

/// A figure in a text: `-` where nothing was measured, which is not a number here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrDash(pub(crate) f64);

impl fmt::Display for OrDash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() { out.pad("-") } else { self.0.fmt(out) }
    }
}

#[cfg(test)]
mod tests {
    use super::OrDash;

    #[test]
    fn what_was_not_measured_is_a_dash() {
        assert_eq!(format!("{:.3} {:>3}|", OrDash(f64::NAN), OrDash(f64::NAN)), "-   -|");
        assert_eq!(format!("{:.3} {}", OrDash(0.0), OrDash(2.5)), "0.000 2.5");
    }
}

//! Expressions over the values of one or two series, compiled once and computed for many points at a
//! time.

mod parser;
mod program;

use program::{Operation, Scratch};
use std::fmt;

/// Most bytes of an expression.
const TEXT_MAX: usize = 1_024;

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at column {column}")]
pub struct ExpressionError {
    /// Where, counted in bytes from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: String,
}

/// An expression over `x`, and `y` if there is a second series.
///
/// It has numbers, `+ - * / ^`, a sign, parentheses, and the functions `abs`, `ceil`, `exp`, `floor`,
/// `ln`, `log2`, `log10`, `round`, `sqrt` of one value, `min`, `max` and `pow` of two and
/// `clamp(value, lowest, highest)`. `^` binds most and to the right, then the sign. Results are those of
/// IEEE 754, with NaN for what is not defined, and the same on every machine.
///
/// ```
/// use tidemark_series::Expression;
///
/// let celsius: Expression = "(x - 32) * 5 / 9".parse().unwrap();
/// assert_eq!(celsius.of(212.0, f64::NAN), 100.0);
/// let error = "(x - 32".parse::<Expression>().unwrap_err();
/// assert_eq!(error.to_string(), "')' is missing at column 8");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    program: Vec<Operation>,
    uses_second: bool,
}

impl std::str::FromStr for Expression {
    type Err = ExpressionError;

    /// Compiles a text of at most 1,024 bytes. O(bytes).
    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > TEXT_MAX {
            let problem = format!("the expression has {} bytes, more than {TEXT_MAX},", text.len());
            return Err(ExpressionError { column: TEXT_MAX + 1, problem });
        }
        let program = parser::parse(text)?;
        let uses_second = program.contains(&Operation::Second);
        Ok(Self { program, uses_second })
    }
}

impl Expression {
    /// Whether it uses `y`.
    pub fn uses_second(&self) -> bool {
        self.uses_second
    }

    /// Returns its value for one point.
    pub fn of(&self, first: f64, second: f64) -> f64 {
        let mut values = vec![first];
        self.apply(&mut values, &[second], &mut Scratch::default());
        values[0]
    }

    /// Replaces values of `x` by those of the expression. `second` has as many values of `y`, and none
    /// if the expression does not use it. O(values × operations).
    pub(super) fn apply(&self, values: &mut Vec<f64>, second: &[f64], scratch: &mut Scratch) {
        assert!(
            !self.uses_second || second.len() == values.len(),
            "{} values of x have {} of y",
            values.len(),
            second.len()
        );
        scratch.run(&self.program, values, second);
    }
}

impl fmt::Display for Expression {
    /// Writes the operations in the order in which they are computed, operands before operators.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, operation) in self.program.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{operation:?}")?;
        }
        Ok(())
    }
}

pub(super) use program::Scratch as ExpressionScratch;

#[cfg(test)]
mod tests;

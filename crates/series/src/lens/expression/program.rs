//! A compiled expression: operations on a stack of columns.

/// An operation of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Negate,
    Abs,
    Ceil,
    Exp,
    Floor,
    Ln,
    Log2,
    Log10,
    Round,
    Sqrt,
}

/// An operation of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Min,
    Max,
}

/// One step of a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Operation {
    Number(f64),
    First,
    Second,
    Unary(Unary),
    Binary(Binary),
    /// With a number as the right operand.
    WithNumber(Binary, f64),
    /// With a number as the left operand.
    OfNumber(f64, Binary),
}

impl Unary {
    /// Transcendental functions are those of a library in Rust: a system's own differ in the last bit.
    fn apply(self, values: &mut [f64]) {
        match self {
            Self::Negate => each(values, |value| -value),
            Self::Abs => each(values, f64::abs),
            Self::Ceil => each(values, f64::ceil),
            Self::Exp => each(values, libm::exp),
            Self::Floor => each(values, f64::floor),
            Self::Ln => each(values, libm::log),
            Self::Log2 => each(values, libm::log2),
            Self::Log10 => each(values, libm::log10),
            Self::Round => each(values, f64::round),
            Self::Sqrt => each(values, f64::sqrt),
        }
    }
}

fn each(values: &mut [f64], function: impl Fn(f64) -> f64) {
    values.iter_mut().for_each(|value| *value = function(*value));
}

/// Returns the smaller value; NaN if one is.
fn min(left: f64, right: f64) -> f64 {
    if left.is_nan() || left < right { left } else { right }
}

/// Returns the larger value; NaN if one is.
fn max(left: f64, right: f64) -> f64 {
    if left.is_nan() || left > right { left } else { right }
}

impl Binary {
    /// Calls `with` with the function of two values, so that each gets a loop of its own.
    fn select(self, with: impl FnOnce(&dyn Fn(&mut [f64], Operands<'_>))) {
        match self {
            Self::Add => with(&|values, operands| combine(values, operands, |left, right| left + right)),
            Self::Subtract => with(&|values, operands| combine(values, operands, |left, right| left - right)),
            Self::Multiply => with(&|values, operands| combine(values, operands, |left, right| left * right)),
            Self::Divide => with(&|values, operands| combine(values, operands, |left, right| left / right)),
            Self::Power => with(&|values, operands| combine(values, operands, libm::pow)),
            Self::Min => with(&|values, operands| combine(values, operands, min)),
            Self::Max => with(&|values, operands| combine(values, operands, max)),
        }
    }
}

/// The other operands of a binary operation.
#[derive(Debug, Clone, Copy)]
enum Operands<'a> {
    Right(&'a [f64]),
    RightNumber(f64),
    LeftNumber(f64),
}

fn combine(values: &mut [f64], operands: Operands<'_>, function: impl Fn(f64, f64) -> f64) {
    match operands {
        Operands::Right(right) => {
            values.iter_mut().zip(right).for_each(|(value, right)| *value = function(*value, *right));
        }
        Operands::RightNumber(right) => each(values, |value| function(value, right)),
        Operands::LeftNumber(left) => each(values, |value| function(left, value)),
    }
}

/// Columns that a computation uses, kept for the next one.
#[derive(Debug, Default)]
pub(in crate::lens) struct Scratch {
    stack: Vec<Vec<f64>>,
    spare: Vec<Vec<f64>>,
}

impl Scratch {
    /// Replaces values by those of a program.
    pub(super) fn run(&mut self, program: &[Operation], values: &mut Vec<f64>, second: &[f64]) {
        for operation in program {
            match *operation {
                Operation::Number(number) => self.push(|column| column.resize(values.len(), number)),
                Operation::First => self.push(|column| column.extend_from_slice(values)),
                Operation::Second => self.push(|column| column.extend_from_slice(second)),
                Operation::Unary(unary) => unary.apply(self.top()),
                Operation::Binary(binary) => {
                    let right = self.stack.pop().expect("an operator has two operands");
                    binary.select(|apply| apply(self.top(), Operands::Right(&right)));
                    self.spare.push(right);
                }
                Operation::WithNumber(binary, right) => {
                    binary.select(|apply| apply(self.top(), Operands::RightNumber(right)));
                }
                Operation::OfNumber(left, binary) => {
                    binary.select(|apply| apply(self.top(), Operands::LeftNumber(left)));
                }
            }
        }
        let result = self.stack.pop().expect("a program leaves its result");
        assert!(self.stack.is_empty(), "a program leaves {} columns beside its result", self.stack.len());
        self.spare.push(std::mem::replace(values, result));
    }

    fn push(&mut self, fill: impl FnOnce(&mut Vec<f64>)) {
        let mut column = self.spare.pop().unwrap_or_default();
        column.clear();
        fill(&mut column);
        self.stack.push(column);
    }

    fn top(&mut self) -> &mut Vec<f64> {
        self.stack.last_mut().expect("an operator has an operand")
    }
}

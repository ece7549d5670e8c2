//! Texts as programs: precedence climbing (Pratt, "Top Down Operator Precedence", 1973).

use super::ExpressionError;
use super::program::{Binary, Operation, Unary};

/// Deepest nesting of parentheses, functions and signs.
const DEPTH_MAX: usize = 64;

/// Binds more than the operators `* /`, and less than `^`.
const SIGN: u8 = 3;

/// Returns the program of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Operation>, ExpressionError> {
    let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0, program: Vec::new() };
    parser.operand_and_operators(0)?;
    match parser.next() {
        None => Ok(parser.program),
        Some(byte) => Err(parser.error(format!("'{}' is not expected", char::from(byte)))),
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
    program: Vec<Operation>,
}

impl Parser<'_> {
    fn error(&self, problem: impl Into<String>) -> ExpressionError {
        ExpressionError { column: self.at + 1, problem: problem.into() }
    }

    /// Returns the next byte that is no space, without taking it.
    fn next(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), ExpressionError> {
        if self.next() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.error(format!("'{}' is missing", char::from(byte))))
        }
    }

    /// Parses an operand, and the operators behind it that bind at least as much as `least`.
    fn operand_and_operators(&mut self, least: u8) -> Result<(), ExpressionError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("the expression is nested deeper than {DEPTH_MAX}")));
        }
        self.operand()?;
        while let Some((binary, binding, right)) = self.next().and_then(operator)
            && binding >= least
        {
            self.at += 1;
            let from = self.program.len();
            self.operand_and_operators(right)?;
            self.combine(binary, from);
        }
        self.depth -= 1;
        Ok(())
    }

    /// Adds an operator whose right operand begins at `from` in the program.
    fn combine(&mut self, binary: Binary, from: usize) {
        let operation = match (self.program[..from].last(), &self.program[from..]) {
            (_, [Operation::Number(right)]) => {
                let right = *right;
                self.program.pop();
                Operation::WithNumber(binary, right)
            }
            // A number that ends the left side is all of it: operators take theirs away.
            (Some(Operation::Number(left)), _) => {
                let left = *left;
                self.program.remove(from - 1);
                Operation::OfNumber(left, binary)
            }
            _ => Operation::Binary(binary),
        };
        self.program.push(operation);
    }

    fn operand(&mut self) -> Result<(), ExpressionError> {
        match self.next() {
            Some(b'(') => {
                self.at += 1;
                self.operand_and_operators(0)?;
                self.expect(b')')
            }
            Some(b'-') => {
                self.at += 1;
                let from = self.program.len();
                self.operand_and_operators(SIGN)?;
                if let [Operation::Number(number)] = &mut self.program[from..] {
                    *number = -*number;
                } else {
                    self.program.push(Operation::Unary(Unary::Negate));
                }
                Ok(())
            }
            Some(b'0'..=b'9' | b'.') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.name(),
            Some(byte) => Err(self.error(format!("a value is expected, not '{}',", char::from(byte)))),
            None => Err(self.error("a value is missing")),
        }
    }

    fn number(&mut self) -> Result<(), ExpressionError> {
        let digits = |text: &[u8], mut at: usize| {
            while text.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.') {
                at += 1;
            }
            at
        };
        let mut end = digits(self.text, self.at);
        if matches!(self.text.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.text.get(end + 1), Some(b'+' | b'-')));
            end = digits(self.text, end + 1 + sign);
        }
        let text = std::str::from_utf8(&self.text[self.at..end]).unwrap_or_default();
        let number = text.parse().map_err(|_| self.error(format!("'{text}' is not a number")))?;
        self.at = end;
        self.program.push(Operation::Number(number));
        Ok(())
    }

    fn name(&mut self) -> Result<(), ExpressionError> {
        let from = self.at;
        while self.text.get(self.at).is_some_and(u8::is_ascii_alphanumeric) {
            self.at += 1;
        }
        let name = String::from_utf8_lossy(&self.text[from..self.at]).to_ascii_lowercase();
        let unary = match &*name {
            "x" => {
                self.program.push(Operation::First);
                return Ok(());
            }
            "y" => {
                self.program.push(Operation::Second);
                return Ok(());
            }
            "min" => return self.function_of_two(Binary::Min),
            "max" => return self.function_of_two(Binary::Max),
            "pow" => return self.function_of_two(Binary::Power),
            "clamp" => return self.clamp(),
            "abs" => Unary::Abs,
            "ceil" => Unary::Ceil,
            "exp" => Unary::Exp,
            "floor" => Unary::Floor,
            "ln" => Unary::Ln,
            "log2" => Unary::Log2,
            "log10" => Unary::Log10,
            "round" => Unary::Round,
            "sqrt" => Unary::Sqrt,
            _ => {
                self.at = from;
                return Err(self.error(format!("'{name}' is neither x, y nor a function")));
            }
        };
        self.expect(b'(')?;
        self.operand_and_operators(0)?;
        self.expect(b')')?;
        self.program.push(Operation::Unary(unary));
        Ok(())
    }

    fn function_of_two(&mut self, binary: Binary) -> Result<(), ExpressionError> {
        self.expect(b'(')?;
        self.operand_and_operators(0)?;
        self.second_argument(binary)?;
        self.expect(b')')
    }

    /// Parses the argument behind a comma, and combines it with the one before it.
    fn second_argument(&mut self, binary: Binary) -> Result<(), ExpressionError> {
        self.expect(b',')?;
        let from = self.program.len();
        self.operand_and_operators(0)?;
        self.combine(binary, from);
        Ok(())
    }

    /// `clamp(value, lowest, highest)` is `min(max(value, lowest), highest)`.
    fn clamp(&mut self) -> Result<(), ExpressionError> {
        self.expect(b'(')?;
        self.operand_and_operators(0)?;
        self.second_argument(Binary::Max)?;
        self.second_argument(Binary::Min)?;
        self.expect(b')')
    }
}

/// Returns an operator, how much it binds, and how much the operators of its right operand must.
fn operator(byte: u8) -> Option<(Binary, u8, u8)> {
    Some(match byte {
        b'+' => (Binary::Add, 1, 2),
        b'-' => (Binary::Subtract, 1, 2),
        b'*' => (Binary::Multiply, 2, 3),
        b'/' => (Binary::Divide, 2, 3),
        b'^' => (Binary::Power, 4, 4),
        _ => return None,
    })
}

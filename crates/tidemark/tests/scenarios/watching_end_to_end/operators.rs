//! The operators of watched reads as the book describes them, applied to one answer after another.

use super::stream::content;
use std::cmp::Ordering;
use tidemark_engine::{Protocol, Reply};

/// A number in an answer. Whole numbers are compared as such, because a float cannot distinguish
/// all of them.
#[derive(Debug, Clone, Copy)]
struct Number {
    whole: Option<i64>,
    float: f64,
}

/// State of one operator.
enum Operator {
    Diff { last: Option<Vec<u8>> },
    Every { interval: u64, seen: u64 },
    Limit { left: u64 },
    Skip { left: u64 },
    Beyond { best: Option<Number>, wanted: Ordering },
    Range { low: Number, high: Number },
    Throttle { pause_us: u64, passed_us: Option<u64> },
    Window { size: usize, aggregate: String, numbers: Vec<f64> },
}

/// A chain of operators.
pub(crate) struct Operators {
    chain: Vec<Operator>,
    protocol: Protocol,
}

impl Operators {
    pub(crate) fn of(line: &str, protocol: Protocol) -> Self {
        let mut words = line.split_whitespace().filter(|word| *word != "|");
        let mut chain = Vec::new();
        while let Some(name) = words.next() {
            let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0_u64);
            chain.push(match name {
                "DIFF" => Operator::Diff { last: None },
                "EVERY" => Operator::Every { interval: number(), seen: 0 },
                "LIMIT" => Operator::Limit { left: number() },
                "SKIP" => Operator::Skip { left: number() },
                "HIGH" => Operator::Beyond { best: None, wanted: Ordering::Greater },
                "LOW" => Operator::Beyond { best: None, wanted: Ordering::Less },
                "RANGE" => Operator::Range { low: Number::whole(number()), high: Number::whole(number()) },
                "THROTTLE" => Operator::Throttle { pause_us: number() * 1000, passed_us: None },
                "WINDOW" => {
                    let size = number() as usize;
                    let aggregate = words.next().unwrap_or_default().to_owned();
                    Operator::Window { size, aggregate, numbers: Vec::new() }
                }
                other => panic!("the model does not know {other}"),
            });
        }
        Self { chain, protocol }
    }

    /// Returns the result for an answer with the time of its record, if it passes all operators.
    pub(crate) fn pass(&mut self, answer: &[u8], time_us: u64) -> Option<Vec<u8>> {
        let protocol = self.protocol;
        self.chain
            .iter_mut()
            .try_fold(answer.to_vec(), |answer, operator| operator.pass(answer, time_us, protocol))
    }
}

impl Operator {
    fn pass(&mut self, answer: Vec<u8>, time_us: u64, protocol: Protocol) -> Option<Vec<u8>> {
        let number = Number::of(&answer);
        let passes = match self {
            Self::Diff { last } => last.replace(answer.clone()).as_ref() != Some(&answer),
            Self::Every { interval, seen } => {
                *seen += 1;
                seen.is_multiple_of(*interval)
            }
            Self::Limit { left } => {
                let passes = *left > 0;
                *left = left.saturating_sub(1);
                passes
            }
            Self::Skip { left } => {
                let passes = *left == 0;
                *left = left.saturating_sub(1);
                passes
            }
            Self::Beyond { best, wanted } => {
                let number = number?;
                let passes = best.is_none_or(|best| number.compare(best) == *wanted);
                if passes {
                    *best = Some(number);
                }
                passes
            }
            Self::Range { low, high } => {
                let number = number?;
                number.compare(*low).is_ge() && number.compare(*high).is_le()
            }
            Self::Throttle { pause_us, passed_us } => {
                let passes = passed_us.is_none_or(|passed| time_us >= passed + *pause_us);
                if passes {
                    *passed_us = Some(time_us);
                }
                passes
            }
            Self::Window { size, aggregate, numbers } => {
                numbers.push(number?.float);
                let last = &numbers[numbers.len().saturating_sub(*size)..];
                let sum: f64 = last.iter().fold(0.0, |sum, number| sum + number);
                let value = match aggregate.as_str() {
                    "AVG" => sum / last.len() as f64,
                    "SUM" => sum,
                    "MIN" => last.iter().copied().min_by(f64::total_cmp).unwrap_or_default(),
                    "MAX" => last.iter().copied().max_by(f64::total_cmp).unwrap_or_default(),
                    other => panic!("the model does not know {other}"),
                };
                let mut reply = Reply::new(protocol);
                reply.double(value);
                return Some(reply.take());
            }
        };
        passes.then_some(answer)
    }
}

impl Number {
    fn whole(value: u64) -> Self {
        Self { whole: i64::try_from(value).ok(), float: value as f64 }
    }

    /// Reads an answer as a number: an integer, a double, or a string that parses as one.
    fn of(answer: &[u8]) -> Option<Self> {
        let is_number = matches!(answer.first(), Some(b':' | b','));
        let is_string = answer.starts_with(b"$") && !answer.starts_with(b"$-1");
        let text = std::str::from_utf8(content(answer)).ok().filter(|_| is_number || is_string)?;
        let float: f64 = text.parse().ok()?;
        // Negative zero is not a whole number: it is less than zero.
        let whole = text.parse().ok().filter(|_| text != "-0");
        (!float.is_nan()).then_some(Self { whole, float })
    }

    fn compare(self, other: Self) -> Ordering {
        match (self.whole, other.whole) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => self.float.total_cmp(&other.float),
        }
    }
}

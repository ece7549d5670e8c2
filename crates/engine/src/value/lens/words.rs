//! Transforms as clients write them.

use crate::command::parse::shown;
use crate::value::Unit;
use tidemark_series::{Aggregation, Difference, Expression, ExpressionError, Gap, Span, Transform};

/// Why words are no transforms.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum WordError {
    #[error("unknown transform {}", shown(name.as_bytes()))]
    Unknown { name: String },
    #[error("{transform} needs {what}")]
    Missing { transform: &'static str, what: &'static str },
    #[error("{transform} needs {what}, not {word}")]
    Invalid { transform: &'static str, what: &'static str, word: String },
    #[error("the expression is not valid: {0}")]
    Expression(ExpressionError),
    #[error("an expression with y needs WITH key ASOF age behind it")]
    NoSecond,
    #[error("the expression does not use y, the value of the key behind WITH")]
    UnusedSecond,
    #[error("the transforms have {bytes} bytes, more than {}", super::BYTES_MAX)]
    TooLong { bytes: usize },
    #[error(
        "LABELS needs names and values in turn, none of them empty, and values without parentheses and commas"
    )]
    Labels,
    #[error("a lens has at most {} transforms, not {transforms}", super::TRANSFORMS_MAX)]
    TooMany { transforms: usize },
}

/// Transforms that are expressions with a name.
const NAMED: [(&str, &str); 9] = [
    ("abs", "abs(x)"),
    ("celsius_to_fahrenheit", "x * 9 / 5 + 32"),
    ("celsius_to_kelvin", "x + 273.15"),
    ("fahrenheit_to_celsius", "(x - 32) * 5 / 9"),
    ("feet_to_meters", "x / 3.28084"),
    ("identity", "x"),
    ("kelvin_to_celsius", "x - 273.15"),
    ("log", "ln(x)"),
    ("meters_to_feet", "x * 3.28084"),
];

/// All other transforms.
const OTHERS: [&str; 13] = [
    "affine",
    "clamp",
    "delta",
    "ewma",
    "expr",
    "fill",
    "increase",
    "log_return",
    "moving",
    "rate",
    "resample",
    "returns",
    "shift",
];

const FACTOR: &str = "a factor and an offset, two numbers";
const BOUNDS: &str = "a lowest and a highest value, two numbers";
const AGGREGATION: &str = "an aggregation that does not depend on times, such as avg, and a span";
const SPAN: &str = "a span: a number of points up to 16384, or a duration with its unit, such as 5m";
const ALPHA: &str = "a weight from 0.01 to 1";
const STEP: &str = "a step: a duration above 0, in the series' unit or with its own, such as 1m";
const DISTANCE: &str = "a duration, in the series' unit or with its own, such as -1h";
const AGE: &str = "ASOF and the highest age: a duration, in the series' unit or with its own, such as 30s";
const KEY: &str = "a key";
const TEXT: &str = "an expression, such as 'x * 2'";

/// A transform, and the key that it reads beside.
pub(crate) type WordedTransform = Transform<Box<[u8]>>;

/// Parses transforms, whose durations are for times in `unit`. O(bytes).
/// Each comes with the position at which its words end.
pub(crate) fn transforms(words: &[&[u8]], unit: Unit) -> Result<Vec<(WordedTransform, usize)>, WordError> {
    let mut reader = Reader { words, unit };
    let mut transforms = Vec::new();
    while let Some(word) = reader.next() {
        let transform = reader.transform(word)?;
        transforms.push((transform, words.len() - reader.words.len()));
    }
    Ok(transforms)
}

/// Splits words into transforms and labels, which come behind the word `LABELS`. A key may have that name:
/// it stands behind an operator or `WITH`.
pub(super) fn split_labels<'w, 'a>(words: &'w [&'a [u8]]) -> (&'w [&'a [u8]], Option<&'w [&'a [u8]]>) {
    let is_key = |at: usize| {
        at > 0
            && (matches!(words[at - 1], b"+" | b"-" | b"*" | b"/")
                || words[at - 1].eq_ignore_ascii_case(b"with"))
    };
    let is_option = |at: &usize| words[*at].eq_ignore_ascii_case(b"labels") && !is_key(*at);
    match (0..words.len()).find(is_option) {
        Some(at) => (&words[..at], Some(&words[at + 1..])),
        None => (words, None),
    }
}

/// Returns the positions of the keys that words name beside a source: each is before `ASOF`.
pub(crate) fn key_positions(words: &[&[u8]]) -> impl Iterator<Item = usize> {
    let (words, _) = split_labels(words);
    (1..words.len()).filter(|at| words[*at].eq_ignore_ascii_case(b"asof")).map(|at| at - 1)
}

struct Reader<'w, 'a> {
    words: &'w [&'a [u8]],
    unit: Unit,
}

impl<'a> Reader<'_, 'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    /// Takes the next word if it is this one.
    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.first().is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }

    /// Takes the next word as what a transform needs.
    fn take<T>(
        &mut self,
        transform: &'static str,
        what: &'static str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, WordError> {
        let word = self.next().ok_or(WordError::Missing { transform, what })?;
        parse(word).ok_or_else(|| WordError::Invalid { transform, what, word: shown(word) })
    }

    fn transform(&mut self, word: &[u8]) -> Result<WordedTransform, WordError> {
        let name = String::from_utf8_lossy(word).to_ascii_lowercase();
        if let Some((_, text)) = NAMED.iter().find(|(named, _)| *named == name) {
            return Ok(Transform::Map(expression(text)?));
        }
        Ok(match &*name {
            "affine" => {
                let factor = self.take("affine", FACTOR, number)?;
                let offset = self.take("affine", FACTOR, number)?;
                Transform::Map(expression(&format!("x * ({factor:?}) + ({offset:?})"))?)
            }
            "clamp" => {
                let lowest = self.take("clamp", BOUNDS, number)?;
                let highest =
                    self.take("clamp", BOUNDS, |word| number(word).filter(|value| *value >= lowest))?;
                Transform::Map(expression(&format!("clamp(x, {lowest:?}, {highest:?})"))?)
            }
            "delta" => Transform::Difference(Difference::Delta),
            "increase" => Transform::Difference(Difference::Increase),
            "rate" => {
                let per = 1e9 / self.unit.nanoseconds() as f64;
                Transform::Difference(Difference::Rate { per })
            }
            "returns" => Transform::Difference(Difference::Return),
            "log_return" => Transform::Difference(Difference::LogReturn),
            "moving" => self.moving()?,
            "ewma" => {
                let in_range = |word: &[u8]| number(word).filter(|alpha| (0.01..=1.0).contains(alpha));
                Transform::Smooth { alpha: self.take("ewma", ALPHA, in_range)? }
            }
            "resample" => {
                let step = self.step("resample")?;
                let gap = if self.takes("linear") { Gap::Linear } else { self.previous() };
                Transform::Resample { step, gap }
            }
            "fill" => {
                let step = self.step("fill")?;
                let constant = self.words.first().and_then(|word| number(word));
                let gap = if let Some(value) = constant {
                    self.next();
                    Gap::Constant(value)
                } else if self.takes("linear") {
                    Gap::Linear
                } else {
                    self.previous()
                };
                Transform::Fill { step, gap }
            }
            "shift" => {
                let unit = self.unit;
                let distance = |word: &[u8]| match word.strip_prefix(b"-") {
                    Some(word) => unit.duration(word).map(|distance| -distance),
                    None => unit.duration(word),
                };
                Transform::Shift(self.take("shift", DISTANCE, distance)?)
            }
            "expr" => self.expression()?,
            "+" | "-" | "*" | "/" => {
                let expression = expression(&format!("x {name} y"))?;
                let (other, age) = self.second("an operator")?;
                Transform::Join { expression, other, age }
            }
            _ => return Err(WordError::Unknown { name: name.clone() }),
        })
    }

    /// Takes the word for the value before a gap, which may be left out.
    fn previous(&mut self) -> Gap {
        self.takes("previous");
        Gap::Previous
    }

    fn step(&mut self, transform: &'static str) -> Result<i64, WordError> {
        let unit = self.unit;
        self.take(transform, STEP, |word| unit.duration(word).filter(|step| *step > 0))
    }

    fn moving(&mut self) -> Result<WordedTransform, WordError> {
        let aggregation = self.take("moving", AGGREGATION, |word| {
            let aggregation: Aggregation = std::str::from_utf8(word).ok()?.parse().ok()?;
            Some(aggregation).filter(|aggregation| !aggregation.depends_on_time())
        })?;
        let unit = self.unit;
        let span = self.take("moving", SPAN, |word| {
            if word.iter().all(u8::is_ascii_digit) {
                let count: usize = std::str::from_utf8(word).ok()?.parse().ok()?;
                return (1..=1 << 14).contains(&count).then_some(Span::Points(count));
            }
            unit.duration(word).filter(|duration| *duration > 0).map(Span::Time)
        })?;
        Ok(Transform::Moving { aggregation, span })
    }

    fn expression(&mut self) -> Result<WordedTransform, WordError> {
        let text = self.take("expr", TEXT, |word| std::str::from_utf8(word).ok().map(str::to_owned))?;
        let expression = expression(&text)?;
        let has_second = self.takes("with");
        match (expression.uses_second(), has_second) {
            (false, false) => Ok(Transform::Map(expression)),
            (true, false) => Err(WordError::NoSecond),
            (false, true) => Err(WordError::UnusedSecond),
            (true, true) => {
                let (other, age) = self.second("WITH")?;
                Ok(Transform::Join { expression, other, age })
            }
        }
    }

    /// Takes a key and the highest age of its values.
    fn second(&mut self, transform: &'static str) -> Result<(Box<[u8]>, i64), WordError> {
        let key = self.take(transform, KEY, |word| Some(word.into()))?;
        if !self.takes("asof") {
            return Err(match self.next() {
                Some(word) => WordError::Invalid { transform, what: AGE, word: shown(word) },
                None => WordError::Missing { transform, what: AGE },
            });
        }
        let unit = self.unit;
        Ok((key, self.take(transform, AGE, |word| unit.duration(word))?))
    }
}

fn number(word: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    Some(number).filter(|number| number.is_finite())
}

fn expression(text: &str) -> Result<Expression, WordError> {
    text.parse().map_err(WordError::Expression)
}

/// Returns the names of all transforms but operators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(name, _)| *name).chain(OTHERS)
}

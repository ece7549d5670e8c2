//! One row of a table, as a point.

use super::TimeFormat;
use super::mapping::{Nulls, Plan};
use super::template::Piece;
use crate::time_text::{parse_decimal, parse_nanoseconds};
use crate::unit::Unit;

/// Labels with their values, in the order of their names, as one run of bytes: two are compared at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Vec<u8>);

/// Bytes of a length.
const LENGTH: usize = 4;

impl Labels {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    /// Returns the names and values one after the other.
    fn words(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk::<LENGTH>()?;
            let (word, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            rest = behind;
            Some(word)
        })
    }

    /// Returns the names with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut words = self.words();
        std::iter::from_fn(move || Some((words.next()?, words.next()?)))
    }
}

/// A point of a series.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Key of the series.
    pub key: Vec<u8>,
    /// Labels of the series.
    pub labels: Labels,
    /// Time, in the unit of the reader.
    pub time: i64,
    /// Value.
    pub value: f64,
}

/// What is wrong with a field.
#[derive(Debug)]
pub(super) struct FieldError {
    /// Wanted column.
    pub(super) column: Option<usize>,
    /// What is wrong.
    pub(super) reason: String,
}

impl FieldError {
    pub(super) fn of(column: usize, reason: impl Into<String>) -> Self {
        Self { column: Some(column), reason: reason.into() }
    }
}

/// Longest text that an error shows.
const SHOWN_BYTES: usize = 60;

/// Returns a text in quotes, on one line.
fn shown(text: &[u8]) -> String {
    if text.len() > SHOWN_BYTES {
        format!("\"{}…\"", text[..SHOWN_BYTES].escape_ascii())
    } else {
        format!("\"{}\"", text.escape_ascii())
    }
}

impl Row {
    /// Replaces key and labels. `text` returns that of a wanted column, which may have none.
    pub(super) fn name<'t>(
        &mut self,
        plan: &Plan,
        text: impl Fn(usize) -> Option<&'t [u8]>,
    ) -> Result<(), FieldError> {
        self.key.clear();
        for piece in &plan.key {
            match piece {
                Piece::Text(literal) => self.key.extend_from_slice(literal.as_bytes()),
                Piece::Column(column) => match text(*column).filter(|text| !text.is_empty()) {
                    Some(text) => self.key.extend_from_slice(text),
                    None => return Err(FieldError::of(*column, "it is empty, and the key needs it")),
                },
            }
        }
        self.labels.0.clear();
        for (name, pieces) in &plan.labels {
            // Most labels are one column.
            if let [Piece::Column(column)] = &**pieces {
                if let Some(value) = text(*column).filter(|text| !text.is_empty()) {
                    check_label(value, *column)?;
                    self.labels.push(name);
                    self.labels.push(value);
                }
                continue;
            }
            let (mut value, mut is_there, mut last) = (Vec::new(), true, 0);
            for piece in pieces {
                match piece {
                    Piece::Text(literal) => value.extend_from_slice(literal.as_bytes()),
                    Piece::Column(column) => {
                        last = *column;
                        match text(*column).filter(|text| !text.is_empty()) {
                            Some(text) => value.extend_from_slice(text),
                            None => is_there = false,
                        }
                    }
                }
            }
            if is_there && !value.is_empty() {
                check_label(&value, last)?;
                self.labels.push(name);
                self.labels.push(&value);
            }
        }
        Ok(())
    }

    /// Sets the value; `false` if the point is to be left out.
    pub(super) fn set_value(&mut self, plan: &Plan, value: Option<f64>) -> Result<bool, FieldError> {
        self.value = match (value, plan.nulls) {
            (Some(value), _) => value,
            (None, Nulls::Nan) => f64::NAN,
            (None, Nulls::Skip) => return Ok(false),
        };
        if self.value.is_infinite() {
            return Err(FieldError::of(
                plan.value,
                format!("{} is infinite; a series takes no infinity", self.value),
            ));
        }
        Ok(true)
    }

    /// Sets the time, which was counted in `from`.
    pub(super) fn set_time(
        &mut self,
        plan: &Plan,
        time: i64,
        from: Unit,
        unit: Unit,
    ) -> Result<(), FieldError> {
        if time < 0 {
            return Err(FieldError::of(plan.time, format!("{time} is before 1970; times begin at 0")));
        }
        self.time = from.convert(time, unit).ok_or_else(|| {
            FieldError::of(
                plan.time,
                format!("{time} {from} is no whole number of {unit}, or too late; give another unit"),
            )
        })?;
        Ok(())
    }

    /// Sets the time from a text.
    pub(super) fn set_time_text(&mut self, plan: &Plan, text: &[u8], unit: Unit) -> Result<(), FieldError> {
        let text = std::str::from_utf8(text.trim_ascii()).map_err(|_| wrong_time(plan, text))?;
        let nanoseconds = match plan.time_format {
            Some(TimeFormat::Unix(own)) => {
                if let Ok(time) = text.parse() {
                    return self.set_time(plan, time, own, unit);
                }
                parse_decimal(text, own)
            }
            Some(TimeFormat::Rfc3339) | None => parse_nanoseconds(text),
        };
        let nanoseconds = nanoseconds.ok_or_else(|| wrong_time(plan, text.as_bytes()))?;
        if nanoseconds < 0 {
            return Err(FieldError::of(plan.time, format!("{text} is before 1970; times begin at 0")));
        }
        self.time = unit.of_nanoseconds(nanoseconds).ok_or_else(|| {
            FieldError::of(
                plan.time,
                format!("{text} is no whole number of {unit}, or too late; give another unit"),
            )
        })?;
        Ok(())
    }
}

/// The server would refuse it: as a word of a filter, such a value could not be named.
fn check_label(value: &[u8], column: usize) -> Result<(), FieldError> {
    if value.iter().any(|byte| matches!(byte, b'(' | b')' | b',')) {
        let reason = format!("{} has a comma or a parenthesis, which labels cannot have", shown(value));
        return Err(FieldError::of(column, reason));
    }
    Ok(())
}

fn wrong_time(plan: &Plan, text: &[u8]) -> FieldError {
    let is = match plan.time_format {
        Some(TimeFormat::Unix(unit)) => format!("is no time in {unit} since 1970"),
        Some(TimeFormat::Rfc3339) => "is no time as RFC 3339 has it".to_owned(),
        None if text.iter().all(u8::is_ascii_digit) => "is a number; say what it counts".to_owned(),
        None => "is no time as RFC 3339 has it; say what it is".to_owned(),
    };
    FieldError::of(plan.time, format!("{} {is}", shown(text)))
}

/// Reads a value from a text.
pub(super) fn parse_value(plan: &Plan, text: &[u8]) -> Result<f64, FieldError> {
    let text = text.trim_ascii();
    let value = std::str::from_utf8(text).ok().and_then(|text| match text {
        "true" | "True" | "TRUE" => Some(1.0),
        "false" | "False" | "FALSE" => Some(0.0),
        number => number.parse().ok(),
    });
    value.ok_or_else(|| FieldError::of(plan.value, format!("{} is no number", shown(text))))
}

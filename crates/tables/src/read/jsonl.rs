//! JSON Lines.

use super::bounded::ROW_BYTES_MAX;
use super::mapping::{Mapping, Plan};
use super::row::{FieldError, parse_value};
use super::{ReadError, Row, RowReader, TimeFormat};
use crate::columns;
use crate::unit::Unit;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 17;

/// Opens a table of JSON Lines. The first line decides which column has the times.
pub fn open_jsonl(input: Box<dyn Read>, mapping: &Mapping) -> Result<Box<dyn RowReader>, ReadError> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, input);
    let (mut first, mut lines, mut bytes) = (Vec::new(), 0, 0);
    while first.trim_ascii().is_empty() {
        if !next_line(&mut input, &mut first, &mut bytes)? {
            return Err(ReadError::Table("it is empty".to_owned()));
        }
        lines += 1;
    }
    let fields = object(&first).map_err(|reason| ReadError::Table(format!("line {lines}: {reason}")))?;
    let names: Vec<&[u8]> = fields.iter().map(|(name, _)| name.as_bytes()).collect();
    let plan = Plan::new(mapping, &names)?;
    let own = match plan.time_format {
        Some(TimeFormat::Unix(unit)) => Some(unit),
        _ => None,
    };
    let unit = plan.unit(own);
    let (is_first, place) = (true, Vec::new());
    Ok(Box::new(JsonReader { input, line: first, lines, bytes, is_first, plan, unit, place }))
}

/// Replaces `line` by the next one; `false` at the end.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>, bytes: &mut u64) -> Result<bool, ReadError> {
    line.clear();
    let read = input.by_ref().take(ROW_BYTES_MAX as u64).read_until(b'\n', line)?;
    *bytes += read as u64;
    if read == ROW_BYTES_MAX {
        return Err(ReadError::Table(format!("a line has more than {} MiB", ROW_BYTES_MAX >> 20)));
    }
    Ok(read > 0)
}

/// Fields of an object in their order.
type Fields<'l> = Vec<(Cow<'l, str>, &'l RawValue)>;

struct FieldsVisitor;

impl<'l> Visitor<'l> for FieldsVisitor {
    type Value = Fields<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(8);
        while let Some(name) = map.next_key::<Name<'l>>()? {
            fields.push((name.0, map.next_value()?));
        }
        Ok(fields)
    }
}

/// A name, borrowed from the line unless it has escapes.
#[derive(serde::Deserialize)]
struct Name<'l>(#[serde(borrow)] Cow<'l, str>);

/// Reads the fields of an object; the error says what is wrong.
fn object(line: &[u8]) -> Result<Fields<'_>, String> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let fields = json.deserialize_map(FieldsVisitor).and_then(|fields| json.end().map(|()| fields));
    fields.map_err(|error| {
        // The line of the error is always the first.
        let text = error.to_string();
        let text = text.split(" at line ").next().unwrap_or_default();
        format!("it is not one JSON object: {text} at column {}", error.column())
    })
}

/// A value as text.
enum Cell<'l> {
    Null,
    Text(Cow<'l, str>),
    /// Number or truth value, as it is spelled.
    Bare(&'l str),
    /// Array or object.
    Other,
}

fn cell(value: &RawValue) -> Cell<'_> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Name<'_>>(text).map_or(Cell::Other, |name| Cell::Text(name.0)),
        Some(b'n') => Cell::Null,
        Some(b'[' | b'{') | None => Cell::Other,
        Some(_) => Cell::Bare(text),
    }
}

struct JsonReader {
    input: BufReader<Box<dyn Read>>,
    line: Vec<u8>,
    lines: u64,
    bytes: u64,
    /// Whether `line` is the first and not yet returned.
    is_first: bool,
    plan: Plan,
    unit: Unit,
    /// For each field of the last line, which wanted column it was: lines have the same fields in the same order.
    place: Vec<Option<usize>>,
}

impl JsonReader {
    fn fill(&mut self, row: &mut Row) -> Result<bool, FieldError> {
        let fields = object(&self.line).map_err(|reason| FieldError { column: None, reason })?;
        let plan = &mut self.plan;
        let mut cells: Vec<Cell<'_>> = plan.wanted.iter().map(|_| Cell::Null).collect();
        self.place.resize(fields.len(), None);
        for ((name, value), place) in fields.iter().zip(&mut self.place) {
            if place.is_none_or(|place| plan.wanted[place] != name.as_bytes()) {
                *place = plan.wanted.iter().position(|known| known == name.as_bytes());
                if place.is_none() && plan.finds_labels && name.starts_with(columns::LABEL) {
                    if !plan.add_label(name) {
                        return Err(FieldError {
                            column: None,
                            reason: "the table has too many labels".to_owned(),
                        });
                    }
                    // A label without a name is no column.
                    *place = plan.wanted.iter().position(|known| known == name.as_bytes());
                    cells.resize_with(plan.wanted.len(), || Cell::Null);
                }
            }
            if let Some(place) = *place {
                cells[place] = cell(value);
            }
        }
        if let Some(column) = cells.iter().position(|cell| matches!(cell, Cell::Other)) {
            return Err(FieldError::of(column, "it is an array or an object"));
        }
        let text = |column: usize| match &cells[column] {
            Cell::Text(text) => Some(text.as_bytes()),
            Cell::Bare(text) => Some(text.as_bytes()),
            Cell::Null | Cell::Other => None,
        };
        row.name(plan, text)?;
        row.set_time_text(plan, text(plan.time).unwrap_or_default(), self.unit)?;
        row.set_value(plan, text(plan.value).map(|text| parse_value(plan, text)).transpose()?)
    }
}

impl RowReader for JsonReader {
    fn next_row(&mut self, row: &mut Row) -> Result<bool, ReadError> {
        loop {
            if std::mem::take(&mut self.is_first) {
            } else if next_line(&mut self.input, &mut self.line, &mut self.bytes)? {
                self.lines += 1;
            } else {
                return Ok(false);
            }
            if self.line.trim_ascii().is_empty() {
                continue;
            }
            let filled = self.fill(row);
            if filled.map_err(|error| ReadError::of_row(self.place(), &self.plan.wanted, error))? {
                return Ok(true);
            }
        }
    }

    fn unit(&self) -> Unit {
        self.unit
    }

    fn place(&self) -> String {
        format!("line {}", self.lines)
    }

    fn position(&self) -> u64 {
        self.bytes
    }
}

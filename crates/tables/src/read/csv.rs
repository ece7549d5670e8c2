//! CSV with a header.

use super::bounded::{Bounded, Budget};
use super::mapping::{Mapping, Plan};
use super::row::parse_value;
use super::{BadRow, ReadError, Row, RowReader, TimeFormat};
use crate::unit::Unit;
use csv::{ByteRecord, ReaderBuilder};
use std::io::Read;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 17;

/// Opens a table of CSV, with this character between fields.
pub fn open_csv(
    input: Box<dyn Read>,
    delimiter: u8,
    mapping: &Mapping,
) -> Result<Box<dyn RowReader>, ReadError> {
    let (input, budget) = Bounded::new(input);
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .buffer_capacity(BUFFER_BYTES)
        .from_reader(input);
    let header = reader.byte_headers().map_err(failed)?.clone();
    if header.is_empty() {
        return Err(ReadError::Table("it is empty: the first line must name the columns".to_owned()));
    }
    let names: Vec<&[u8]> = header.iter().collect();
    let plan = Plan::new(mapping, &names)?;
    let places =
        plan.wanted.iter().map(|name| names.iter().position(|known| known == name)).collect::<Option<_>>();
    let places = places.ok_or_else(|| ReadError::Table("a column is missing".to_owned()))?;
    let own = match plan.time_format {
        Some(TimeFormat::Unix(unit)) => Some(unit),
        _ => None,
    };
    let unit = plan.unit(own);
    let record = ByteRecord::new();
    Ok(Box::new(CsvReader { reader, budget, fields: names.len(), plan, places, unit, record, line: 0 }))
}

struct CsvReader {
    reader: csv::Reader<Bounded<Box<dyn Read>>>,
    budget: Budget,
    /// Number of columns.
    fields: usize,
    plan: Plan,
    /// Places of the wanted columns.
    places: Vec<usize>,
    unit: Unit,
    record: ByteRecord,
    /// Line on which the record began.
    line: u64,
}

/// Returns the error of the file below, if that is what it is.
fn failed(error: csv::Error) -> ReadError {
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => ReadError::Io(error),
        _ => ReadError::Table(text),
    }
}

impl RowReader for CsvReader {
    fn next_row(&mut self, row: &mut Row) -> Result<bool, ReadError> {
        loop {
            self.budget.renew();
            if !self.reader.read_byte_record(&mut self.record).map_err(failed)? {
                return Ok(false);
            }
            self.line = self.record.position().map_or(0, csv::Position::line);
            if self.record.len() != self.fields {
                let (found, wanted) = (self.record.len(), self.fields);
                let reason = format!("it has {found} fields, and the header {wanted}");
                return Err(ReadError::Row(BadRow { place: self.place(), column: None, reason }));
            }
            let (record, places) = (&self.record, &self.places);
            let text = |column: usize| record.get(places[column]);
            let filled = row.name(&self.plan, text).and_then(|()| {
                row.set_time_text(&self.plan, text(self.plan.time).unwrap_or_default(), self.unit)?;
                let value = text(self.plan.value).map(<[u8]>::trim_ascii).filter(|text| !text.is_empty());
                row.set_value(&self.plan, value.map(|text| parse_value(&self.plan, text)).transpose()?)
            });
            if filled.map_err(|error| ReadError::of_row(self.place(), &self.plan.wanted, error))? {
                return Ok(true);
            }
        }
    }

    fn unit(&self) -> Unit {
        self.unit
    }

    fn place(&self) -> String {
        format!("line {}", self.line)
    }

    fn position(&self) -> u64 {
        self.reader.position().byte()
    }
}

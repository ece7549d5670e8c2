//! What CSV and JSON Lines share: rows of text between what is the same in all rows of a series.

use super::{Layout, Points, SeriesRow, WriteError};
use crate::time_text::TimeWriter;
use std::io::Write;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 18;

/// How a format spells the parts of a row.
pub(super) trait Spelling: Send {
    /// Replaces `before` and `after` by what is around the time and the values of each row of a series.
    fn around(&self, series: &SeriesRow, before: &mut Vec<u8>, after: &mut Vec<u8>)
    -> Result<(), WriteError>;

    /// Returns what is before the value of a column.
    fn before_value(&self, column: usize) -> &[u8];

    /// Appends a value that is not finite. `false` if the format has none.
    fn not_finite(&self, value: f64, into: &mut Vec<u8>) -> bool;

    /// Returns what is before and behind a time that is a text.
    fn quotes(&self) -> &[u8];
}

/// Writer of rows of text.
pub(super) struct TextWriter<S> {
    spelling: S,
    dates: Option<TimeWriter>,
    /// The series of the last rows, and what is around each of them.
    series: Option<SeriesRow>,
    before: Vec<u8>,
    after: Vec<u8>,
    buffer: Vec<u8>,
    output: Box<dyn Write + Send>,
}

impl<S: Spelling> TextWriter<S> {
    /// Makes a writer; `header` is the beginning of the file.
    pub(super) fn new(spelling: S, layout: &Layout, header: Vec<u8>, output: Box<dyn Write + Send>) -> Self {
        let dates = layout.dates.then(|| TimeWriter::new(layout.unit));
        Self { spelling, dates, series: None, before: Vec::new(), after: Vec::new(), buffer: header, output }
    }

    fn append_time(&mut self, series: &SeriesRow, time: i64) -> Result<(), WriteError> {
        let Some(dates) = &mut self.dates else {
            self.buffer.extend_from_slice(itoa::Buffer::new().format(time).as_bytes());
            return Ok(());
        };
        self.buffer.extend_from_slice(self.spelling.quotes());
        if !dates.append(time, &mut self.buffer) {
            return Err(WriteError::Year { key: series.key.clone(), time });
        }
        self.buffer.extend_from_slice(self.spelling.quotes());
        Ok(())
    }
}

impl<S: Spelling> super::TableWriter for TextWriter<S> {
    fn write(&mut self, series: &SeriesRow, points: &Points) -> Result<(), WriteError> {
        if self.series.as_ref() != Some(series) {
            self.spelling.around(series, &mut self.before, &mut self.after)?;
            self.series = Some(series.clone());
        }
        for (row, time) in points.times.iter().enumerate() {
            self.buffer.extend_from_slice(&self.before);
            self.append_time(series, *time)?;
            for (column, values) in points.columns.iter().enumerate() {
                self.buffer.extend_from_slice(self.spelling.before_value(column));
                let value = values[row];
                if value.is_finite() {
                    self.buffer.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
                } else if !self.spelling.not_finite(value, &mut self.buffer) {
                    return Err(WriteError::Infinite { key: series.key.clone(), time: *time });
                }
            }
            self.buffer.extend_from_slice(&self.after);
            if self.buffer.len() >= BUFFER_BYTES {
                self.output.write_all(&self.buffer)?;
                self.buffer.clear();
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        self.output.write_all(&self.buffer)?;
        Ok(self.output.flush()?)
    }
}

//! CSV as [RFC 4180](https://www.rfc-editor.org/rfc/rfc4180) has it, with `\n` at the end of lines.

use super::text::{Spelling, TextWriter};
use super::{Layout, SeriesRow, TableWriter, WriteError};
use crate::columns;
use std::io::Write;

/// Returns a writer of CSV.
#[must_use]
pub fn csv_writer(layout: &Layout, output: Box<dyn Write + Send>) -> Box<dyn TableWriter> {
    let time = layout.time_in_text();
    let mut header: Vec<Vec<u8>> = vec![columns::KEY.into(), time.into()];
    header.extend(layout.values.iter().map(|name| name.as_bytes().to_vec()));
    header.extend(layout.labels.iter().map(|name| [columns::LABEL.as_bytes(), name].concat()));
    let mut line = fields(header.iter().map(Vec::as_slice));
    line.push(b'\n');
    Box::new(TextWriter::new(CsvSpelling, layout, line, output))
}

struct CsvSpelling;

/// Quotes fields where that is necessary, with commas between them.
fn fields<'f>(fields: impl Iterator<Item = &'f [u8]>) -> Vec<u8> {
    let mut line = Vec::new();
    for (at, field) in fields.enumerate() {
        if at > 0 {
            line.push(b',');
        }
        // What begins or ends with a space is quoted for readers that trim.
        let is_plain = !field.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'))
            && field.trim_ascii().len() == field.len();
        if is_plain {
            line.extend_from_slice(field);
        } else {
            line.push(b'"');
            for byte in field {
                line.push(*byte);
                if *byte == b'"' {
                    line.push(b'"');
                }
            }
            line.push(b'"');
        }
    }
    line
}

impl Spelling for CsvSpelling {
    fn around(
        &self,
        series: &SeriesRow,
        before: &mut Vec<u8>,
        after: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        *before = fields([series.key.as_slice()].into_iter());
        before.push(b',');
        after.clear();
        if !series.labels.is_empty() {
            after.push(b',');
            after.extend(fields(series.labels.iter().map(|value| value.as_deref().unwrap_or_default())));
        }
        after.push(b'\n');
        Ok(())
    }

    fn before_value(&self, _: usize) -> &[u8] {
        b","
    }

    fn not_finite(&self, value: f64, into: &mut Vec<u8>) -> bool {
        into.extend_from_slice(match value {
            f64::INFINITY => b"inf",
            f64::NEG_INFINITY => b"-inf",
            _ => b"NaN",
        });
        true
    }

    fn quotes(&self) -> &[u8] {
        b""
    }
}

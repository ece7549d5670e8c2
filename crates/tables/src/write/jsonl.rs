//! JSON Lines: every row has every column, so readers that look at the first rows know all columns.

use super::text::{Spelling, TextWriter};
use super::{Layout, SeriesRow, TableWriter, WriteError, utf8};
use crate::columns;
use std::io::Write;

const NAME: &str = "jsonl";

/// Returns a writer of JSON Lines.
pub fn jsonl_writer(
    layout: &Layout,
    output: Box<dyn Write + Send>,
) -> Result<Box<dyn TableWriter>, WriteError> {
    let labels = layout
        .labels
        .iter()
        .map(|name| Ok(json(&format!("{}{}", columns::LABEL, utf8(name, "label", NAME)?))))
        .collect::<Result<_, WriteError>>()?;
    let spelling = JsonSpelling {
        time: format!(",{}:", json(&layout.time_in_text())).into_bytes(),
        values: layout.values.iter().map(|name| format!(",{}:", json(name)).into_bytes()).collect(),
        labels,
    };
    Ok(Box::new(TextWriter::new(spelling, layout, Vec::new(), output)))
}

struct JsonSpelling {
    time: Vec<u8>,
    values: Vec<Vec<u8>>,
    labels: Vec<String>,
}

/// Quotes a text.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Spelling for JsonSpelling {
    fn around(
        &self,
        series: &SeriesRow,
        before: &mut Vec<u8>,
        after: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        *before = format!("{{\"{}\":{}", columns::KEY, json(utf8(&series.key, "key", NAME)?)).into_bytes();
        before.extend_from_slice(&self.time);
        after.clear();
        for (name, value) in self.labels.iter().zip(&series.labels) {
            let value = match value {
                Some(value) => json(utf8(value, "label", NAME)?),
                None => "null".to_owned(),
            };
            after.extend_from_slice(format!(",{name}:{value}").as_bytes());
        }
        after.extend_from_slice(b"}\n");
        Ok(())
    }

    fn before_value(&self, column: usize) -> &[u8] {
        &self.values[column]
    }

    fn not_finite(&self, value: f64, into: &mut Vec<u8>) -> bool {
        into.extend_from_slice(b"null");
        value.is_nan()
    }

    fn quotes(&self) -> &[u8] {
        b"\""
    }
}

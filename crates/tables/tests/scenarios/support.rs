//! Tables in memory and in files.

use std::io::{Cursor, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};
use tidemark_tables::{
    Format, Layout, Mapping, Points, ReadError, Row, RowReader, SeriesRow, WriteError, csv_writer,
    jsonl_writer, open_csv, open_jsonl, open_parquet, parquet_writer,
};

/// Output that a test can look at.
#[derive(Clone, Default)]
pub(crate) struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes a table.
pub(crate) fn write(
    format: Format,
    layout: &Layout,
    table: &[(SeriesRow, Points)],
) -> Result<Vec<u8>, WriteError> {
    let output = Output::default();
    let boxed = Box::new(output.clone());
    let mut writer = match format {
        Format::Csv => csv_writer(layout, boxed),
        Format::Jsonl => jsonl_writer(layout, boxed)?,
        Format::Parquet => parquet_writer(layout, boxed)?,
    };
    for (series, points) in table {
        writer.write(series, points)?;
    }
    writer.finish()?;
    let bytes = output.0.lock().expect("no panic").clone();
    Ok(bytes)
}

/// Opens a table.
pub(crate) fn open(format: Format, bytes: &[u8], mapping: &Mapping) -> Result<Box<dyn RowReader>, ReadError> {
    match format {
        Format::Csv => open_csv(Box::new(Cursor::new(bytes.to_vec())), b',', mapping),
        Format::Jsonl => open_jsonl(Box::new(Cursor::new(bytes.to_vec())), mapping),
        Format::Parquet => {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(bytes).expect("a disk");
            file.seek(SeekFrom::Start(0)).expect("a file");
            open_parquet(file, mapping)
        }
    }
}

/// Reads all rows; the first error ends it.
pub(crate) fn rows(reader: &mut dyn RowReader) -> Result<Vec<Row>, ReadError> {
    let (mut rows, mut row) = (Vec::new(), Row::default());
    while reader.next_row(&mut row)? {
        rows.push(row.clone());
    }
    Ok(rows)
}

/// Reads CSV from a text; the error as text.
pub(crate) fn csv(text: &str, mapping: &Mapping) -> Result<Vec<Row>, String> {
    read(Format::Csv, text, mapping)
}

/// Reads JSON Lines from a text; the error as text.
pub(crate) fn jsonl(text: &str, mapping: &Mapping) -> Result<Vec<Row>, String> {
    read(Format::Jsonl, text, mapping)
}

fn read(format: Format, text: &str, mapping: &Mapping) -> Result<Vec<Row>, String> {
    let mut reader = open(format, text.as_bytes(), mapping).map_err(|error| error.to_string())?;
    rows(&mut *reader).map_err(|error| error.to_string())
}

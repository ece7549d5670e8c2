//! Parquet: row groups of up to a million rows, compressed with Zstandard.

use super::{Layout, Points, SeriesRow, TableWriter, WriteError, utf8};
use crate::columns;
use crate::unit::Unit;
use parquet::basic::{
    Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel,
};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::io::{self, Write};
use std::sync::Arc;

const NAME: &str = "parquet";
/// Rows of a row group: what is held in memory.
const GROUP_ROWS: usize = 1 << 20;
/// Most series of a row group.
const GROUP_SERIES: usize = 1 << 16;
/// Rows of key and label columns that are made at a time.
const CHUNK_ROWS: usize = 1 << 12;
/// Level of compression: the default of Zstandard.
const ZSTD_LEVEL: i32 = 3;

/// Returns a writer of Parquet.
pub fn parquet_writer(
    layout: &Layout,
    output: Box<dyn Write + Send>,
) -> Result<Box<dyn TableWriter>, WriteError> {
    let schema = schema(layout)?;
    let time = schema.get_fields()[1].name().to_owned();
    let time = ColumnPath::from(time);
    let properties = WriterProperties::builder()
        .set_created_by(concat!("tidemark version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).map_err(failed)?))
        .set_column_dictionary_enabled(time.clone(), false)
        .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
        .build();
    let file = SerializedFileWriter::new(output, schema, Arc::new(properties)).map_err(failed)?;
    let points = Points { times: Vec::new(), columns: vec![Vec::new(); layout.values.len()] };
    Ok(Box::new(ParquetWriter { file, labels: layout.labels.len(), runs: Vec::new(), points }))
}

/// Names the columns. Times have the type that says their unit; there is none for seconds, so the name says it.
fn schema(layout: &Layout) -> Result<Arc<Type>, WriteError> {
    let text = |name: &str, repetition| {
        Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String))
            .with_repetition(repetition)
            .build()
    };
    let unit = match layout.unit {
        Unit::Nanoseconds => Some(TimeUnit::NANOS),
        Unit::Microseconds => Some(TimeUnit::MICROS),
        Unit::Milliseconds => Some(TimeUnit::MILLIS),
        Unit::Seconds => None,
    };
    let name = unit.map_or_else(|| columns::time_in(layout.unit), |_| columns::TIME.to_owned());
    let time = Type::primitive_type_builder(&name, PhysicalType::INT64)
        .with_logical_type(unit.map(|unit| LogicalType::timestamp(true, unit)))
        .with_repetition(Repetition::REQUIRED)
        .build();
    let mut fields = vec![text(columns::KEY, Repetition::REQUIRED), time];
    fields.extend(layout.values.iter().map(|name| {
        Type::primitive_type_builder(name, PhysicalType::DOUBLE).with_repetition(Repetition::REQUIRED).build()
    }));
    for name in &layout.labels {
        let name = utf8(name, "label", NAME)?;
        fields.push(text(&format!("{}{name}", columns::LABEL), Repetition::OPTIONAL));
    }
    let fields =
        fields.into_iter().map(|field| field.map(Arc::new)).collect::<Result<_, _>>().map_err(failed)?;
    let schema = Type::group_type_builder("points").with_fields(fields).build().map_err(failed)?;
    Ok(Arc::new(schema))
}

/// The error of the file below, if that is what it is.
fn failed(error: ParquetError) -> WriteError {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(error) => WriteError::Io(*error),
            Err(other) => WriteError::Parquet(other.to_string()),
        },
        other => WriteError::Parquet(other.to_string()),
    }
}

struct ParquetWriter {
    file: SerializedFileWriter<Box<dyn Write + Send>>,
    labels: usize,
    /// The series of the rows in `points`, each with the number of its rows.
    runs: Vec<(SeriesRow, usize)>,
    points: Points,
}

impl ParquetWriter {
    fn flush(&mut self) -> Result<(), WriteError> {
        if self.points.times.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group().map_err(failed)?;
        write_texts(&mut group, &self.runs, true, |series| Some(&series.key))?;
        let mut column = next_column(&mut group)?;
        column.typed::<Int64Type>().write_batch(&self.points.times, None, None).map_err(failed)?;
        column.close().map_err(failed)?;
        for values in &self.points.columns {
            let mut column = next_column(&mut group)?;
            column.typed::<DoubleType>().write_batch(values, None, None).map_err(failed)?;
            column.close().map_err(failed)?;
        }
        for label in 0..self.labels {
            write_texts(&mut group, &self.runs, false, |series| series.labels[label].as_ref())?;
        }
        group.close().map_err(failed)?;
        self.runs.clear();
        self.points.times.clear();
        self.points.columns.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

type GroupWriter<'w> = SerializedRowGroupWriter<'w, Box<dyn Write + Send>>;

fn next_column<'g>(
    group: &'g mut GroupWriter<'_>,
) -> Result<parquet::file::writer::SerializedColumnWriter<'g>, WriteError> {
    let column = group.next_column().map_err(failed)?;
    column.ok_or_else(|| WriteError::Parquet("the schema has fewer columns than the rows".to_owned()))
}

/// Writes a column of texts, each of which many rows share.
fn write_texts<'s>(
    group: &mut GroupWriter<'_>,
    runs: &'s [(SeriesRow, usize)],
    is_required: bool,
    of: impl Fn(&'s SeriesRow) -> Option<&'s Vec<u8>>,
) -> Result<(), WriteError> {
    let mut column = next_column(group)?;
    let (mut texts, mut levels) = (Vec::with_capacity(CHUNK_ROWS), Vec::with_capacity(CHUNK_ROWS));
    for (series, rows) in runs {
        let text = of(series).map(|text| ByteArray::from(text.clone()));
        let mut left = *rows;
        while left > 0 {
            let taken = left.min(CHUNK_ROWS - levels.len());
            levels.resize(levels.len() + taken, i16::from(text.is_some()));
            if let Some(text) = &text {
                texts.resize(texts.len() + taken, text.clone());
            }
            left -= taken;
            if levels.len() == CHUNK_ROWS {
                write_chunk(&mut column, &mut texts, &mut levels, is_required)?;
            }
        }
    }
    write_chunk(&mut column, &mut texts, &mut levels, is_required)?;
    column.close().map_err(failed)
}

fn write_chunk(
    column: &mut parquet::file::writer::SerializedColumnWriter<'_>,
    texts: &mut Vec<ByteArray>,
    levels: &mut Vec<i16>,
    is_required: bool,
) -> Result<(), WriteError> {
    let definition = (!is_required).then_some(levels.as_slice());
    column.typed::<ByteArrayType>().write_batch(texts, definition, None).map_err(failed)?;
    texts.clear();
    levels.clear();
    Ok(())
}

impl TableWriter for ParquetWriter {
    fn write(&mut self, series: &SeriesRow, points: &Points) -> Result<(), WriteError> {
        let mut from = 0;
        while from < points.times.len() {
            match self.runs.last_mut() {
                Some((last, _)) if last == series => {}
                _ => {
                    utf8(&series.key, "key", NAME)?;
                    for value in series.labels.iter().flatten() {
                        utf8(value, "label", NAME)?;
                    }
                    self.runs.push((series.clone(), 0));
                }
            }
            let to = points.times.len().min(from + GROUP_ROWS - self.points.times.len());
            self.points.times.extend_from_slice(&points.times[from..to]);
            for (into, values) in self.points.columns.iter_mut().zip(&points.columns) {
                into.extend_from_slice(&values[from..to]);
            }
            if let Some((_, rows)) = self.runs.last_mut() {
                *rows += to - from;
            }
            from = to;
            if self.points.times.len() == GROUP_ROWS || self.runs.len() == GROUP_SERIES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        self.flush()?;
        self.file.finish().map_err(failed)?;
        self.file.inner_mut().flush()?;
        Ok(())
    }
}

//! Parquet: columns are read as they lie in the file, some thousand rows at a time.

use super::guard::guarded;
use super::mapping::{Mapping, Plan};
use super::row::FieldError;
use super::template::Piece;
use super::{ReadError, Row, RowReader, TimeFormat};
use crate::unit::Unit;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as PhysicalType};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;

/// Rows that are read at a time.
const BATCH_ROWS: usize = 1 << 12;
const DAY_NS: i128 = 86_400 * 1_000_000_000;
/// Julian day of 1970-01-01, from which the old timestamps count.
const EPOCH_DAY: i128 = 2_440_588;
/// Powers of ten up to this one are floats without rounding.
const EXACT_POWER: u32 = 22;
/// Whole numbers below this one are floats without rounding.
const EXACT_INTEGER: u64 = 1 << 53;

/// Opens a table of Parquet.
pub fn open_parquet(file: File, mapping: &Mapping) -> Result<Box<dyn RowReader>, ReadError> {
    let file = guarded(|| SerializedFileReader::new(file).map_err(failed))?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    // Of nested columns, only the outermost name is shown: none of them can be read.
    let names: Vec<&str> = schema
        .columns()
        .iter()
        .map(|column| column.path().parts().first().map_or("", String::as_str))
        .collect();
    let mut header: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    header.dedup();
    let plan = Plan::new(mapping, &header)?;
    let mut columns = Vec::new();
    for (at, wanted) in plan.wanted.iter().enumerate() {
        let place = names.iter().position(|name| name.as_bytes() == wanted);
        let place = place.ok_or_else(|| ReadError::Table("a column is missing".to_owned()))?;
        columns.push(
            Column::new(&plan, at, place, &schema.column(place))
                .map_err(|reason| ReadError::Table(format!("column {}: {reason}", names[place])))?,
        );
    }
    let own = match columns[plan.time].kind {
        Kind::Timestamp(unit) => Some(unit),
        Kind::OldTimestamp => Some(Unit::Nanoseconds),
        Kind::Date => Some(Unit::Seconds),
        _ => match plan.time_format {
            Some(TimeFormat::Unix(unit)) => Some(unit),
            _ => None,
        },
    };
    let unit = plan.unit(own);
    let groups = file.num_row_groups();
    let at = Place { group: 0, groups, row: 0, in_batch: 0, batch: 0, done: 0 };
    Ok(Box::new(ParquetReader { file, plan, columns, unit, at }))
}

/// Returns the error of the file below, if that is what it is.
fn failed(error: ParquetError) -> ReadError {
    match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(error) => ReadError::Io(*error),
            Err(other) => ReadError::Table(other.to_string()),
        },
        other => ReadError::Table(other.to_string()),
    }
}

/// What a column has.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Integer {
        is_signed: bool,
    },
    Boolean,
    Float,
    Decimal {
        scale: u32,
    },
    Timestamp(Unit),
    /// Nanoseconds of a Julian day, in 96 bits.
    OldTimestamp,
    /// Days since 1970.
    Date,
}

impl Kind {
    fn of(column: &ColumnDescriptor) -> Result<Self, String> {
        if column.path().parts().len() > 1 || column.max_rep_level() > 0 {
            return Err("it is nested; take out of it what you need".to_owned());
        }
        let converted = column.converted_type();
        let unit = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => Unit::Milliseconds,
            TimeUnit::MICROS => Unit::Microseconds,
            TimeUnit::NANOS => Unit::Nanoseconds,
        };
        let is_signed = !matches!(
            converted,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        );
        let refused = || {
            Err(format!("its type, {}, is neither text nor a number nor a time; cast it", type_of(column)))
        };
        Ok(match (column.physical_type(), column.logical_type_ref()) {
            (PhysicalType::BOOLEAN, _) => Self::Boolean,
            (PhysicalType::FLOAT | PhysicalType::DOUBLE, _) => Self::Float,
            (PhysicalType::INT96, _) => Self::OldTimestamp,
            (PhysicalType::INT64, Some(LogicalType::Timestamp(time))) => Self::Timestamp(unit(&time.unit)),
            (PhysicalType::INT32 | PhysicalType::INT64, _) => match converted {
                ConvertedType::TIMESTAMP_MILLIS => Self::Timestamp(Unit::Milliseconds),
                ConvertedType::TIMESTAMP_MICROS => Self::Timestamp(Unit::Microseconds),
                ConvertedType::DATE => Self::Date,
                ConvertedType::DECIMAL => match u32::try_from(column.type_scale()) {
                    Ok(scale) => Self::Decimal { scale },
                    Err(_) => return refused(),
                },
                ConvertedType::TIME_MILLIS | ConvertedType::TIME_MICROS => return refused(),
                _ if matches!(column.logical_type_ref(), Some(LogicalType::Time(_))) => return refused(),
                _ => Self::Integer { is_signed },
            },
            (PhysicalType::BYTE_ARRAY, _) if converted != ConvertedType::DECIMAL => Self::Text,
            _ => return refused(),
        })
    }
}

fn type_of(column: &ColumnDescriptor) -> String {
    match column.logical_type_ref() {
        Some(logical) => format!("{logical:?} in {}", column.physical_type()),
        None => column.physical_type().to_string(),
    }
}

/// Values of a batch.
enum Values {
    Texts(Vec<ByteArray>),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Old(Vec<Int96>),
}

/// A wanted column.
struct Column {
    /// Place in the file.
    place: usize,
    kind: Kind,
    /// Definition level of a value that is there; 0 if all are.
    level: i16,
    /// Whether its texts are wanted, and it has something else.
    is_spelled: bool,
    reader: Option<ColumnReader>,
    values: Values,
    levels: Vec<i16>,
    /// The next value in `values`, and that of the current row.
    next: usize,
    current: Option<usize>,
    /// The current value as text.
    text: Vec<u8>,
}

impl Column {
    fn new(plan: &Plan, at: usize, place: usize, column: &ColumnDescriptor) -> Result<Self, String> {
        let kind = Kind::of(column)?;
        let is_in = |pieces: &[Piece<usize>]| pieces.contains(&Piece::Column(at));
        let is_text_wanted = is_in(&plan.key) || plan.labels.iter().any(|(_, pieces)| is_in(pieces));
        let is_spelled = is_text_wanted && kind != Kind::Text;
        if is_spelled && !matches!(kind, Kind::Integer { .. } | Kind::Boolean) {
            return Err(format!("its type, {}, cannot be part of a key or a label", type_of(column)));
        }
        if at == plan.time {
            let is_number = matches!(kind, Kind::Integer { .. } | Kind::Float | Kind::Decimal { .. });
            if is_number && !matches!(plan.time_format, Some(TimeFormat::Unix(_))) {
                return Err("it has numbers; say what they count".to_owned());
            }
            if matches!(kind, Kind::Float | Kind::Decimal { .. } | Kind::Boolean) {
                return Err(format!(
                    "its type, {}, cannot be a time; cast it to a timestamp",
                    type_of(column)
                ));
            }
        }
        if at == plan.value && matches!(kind, Kind::Timestamp(_) | Kind::OldTimestamp | Kind::Date) {
            return Err(format!("its type, {}, is no value", type_of(column)));
        }
        let values = match kind {
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Float => Values::Floats(Vec::new()),
            Kind::OldTimestamp => Values::Old(Vec::new()),
            _ => Values::Integers(Vec::new()),
        };
        Ok(Self {
            place,
            kind,
            level: column.max_def_level(),
            is_spelled,
            reader: None,
            values,
            levels: Vec::new(),
            next: 0,
            current: None,
            text: Vec::new(),
        })
    }

    /// Reads the next rows; returns how many.
    fn read(&mut self) -> Result<usize, ParquetError> {
        self.levels.clear();
        self.next = 0;
        macro_rules! records {
            ($reader:expr, $values:expr) => {{
                let levels = (self.level > 0).then_some(&mut self.levels);
                $reader.read_records(BATCH_ROWS, levels, None, $values)?.0
            }};
        }
        macro_rules! converted {
            ($reader:expr, $into:expr, $with:expr) => {{
                let mut values = Vec::with_capacity(BATCH_ROWS);
                let rows = records!($reader, &mut values);
                $into.clear();
                $into.extend(values.into_iter().map($with));
                rows
            }};
        }
        let is_signed = self.kind != Kind::Integer { is_signed: false };
        Ok(match (&mut self.reader, &mut self.values) {
            (Some(ColumnReader::ByteArrayColumnReader(reader)), Values::Texts(values)) => {
                values.clear();
                records!(reader, values)
            }
            (Some(ColumnReader::Int64ColumnReader(reader)), Values::Integers(values)) => {
                values.clear();
                records!(reader, values)
            }
            (Some(ColumnReader::DoubleColumnReader(reader)), Values::Floats(values)) => {
                values.clear();
                records!(reader, values)
            }
            (Some(ColumnReader::Int96ColumnReader(reader)), Values::Old(values)) => {
                values.clear();
                records!(reader, values)
            }
            (Some(ColumnReader::Int32ColumnReader(reader)), Values::Integers(values)) => {
                converted!(reader, values, |value: i32| if is_signed {
                    i64::from(value)
                } else {
                    i64::from(value.cast_unsigned())
                })
            }
            (Some(ColumnReader::BoolColumnReader(reader)), Values::Integers(values)) => {
                converted!(reader, values, i64::from)
            }
            (Some(ColumnReader::FloatColumnReader(reader)), Values::Floats(values)) => {
                converted!(reader, values, f64::from)
            }
            _ => {
                return Err(ParquetError::General(
                    "a column has another type than the schema says".to_owned(),
                ));
            }
        })
    }

    /// Makes the next value the current one.
    fn advance(&mut self, row: usize) {
        let is_there = self.level == 0 || self.levels.get(row) == Some(&self.level);
        self.current = is_there.then_some(self.next);
        self.next += usize::from(is_there);
        if !self.is_spelled {
            return;
        }
        self.text.clear();
        if let Some(value) = self.integer() {
            match self.kind {
                Kind::Boolean => self.text.extend_from_slice(if value == 0 { b"false" } else { b"true" }),
                Kind::Integer { is_signed: false } => {
                    self.text.extend_from_slice(itoa::Buffer::new().format(value.cast_unsigned()).as_bytes());
                }
                _ => self.text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
            }
        }
    }

    fn integer(&self) -> Option<i64> {
        match &self.values {
            Values::Integers(values) => values.get(self.current?).copied(),
            _ => None,
        }
    }

    /// Returns the current value as text.
    fn text(&self) -> Option<&[u8]> {
        match &self.values {
            Values::Texts(values) => values.get(self.current?).map(ByteArray::data),
            _ => self.current.map(|_| &*self.text),
        }
    }

    /// Returns the current value as a number; `Err` if it is none.
    fn number(&self, plan: &Plan) -> Result<Option<f64>, FieldError> {
        let Some(current) = self.current else { return Ok(None) };
        Ok(match (&self.values, self.kind) {
            (Values::Floats(values), _) => values.get(current).copied(),
            (Values::Texts(_), _) => {
                match self.text().map(<[u8]>::trim_ascii).filter(|text| !text.is_empty()) {
                    Some(text) => Some(super::row::parse_value(plan, text)?),
                    None => None,
                }
            }
            (_, Kind::Decimal { scale }) => self.integer().map(|value| decimal(value, scale)),
            (_, Kind::Integer { is_signed: false }) => {
                self.integer().map(|value| value.cast_unsigned() as f64)
            }
            _ => self.integer().map(|value| value as f64),
        })
    }
}

/// Returns the float that is nearest to a decimal.
fn decimal(value: i64, scale: u32) -> f64 {
    if value.unsigned_abs() < EXACT_INTEGER && scale <= EXACT_POWER {
        // Both are exact, so the quotient is rounded once.
        return value as f64 / 10_f64.powi(scale.cast_signed());
    }
    format!("{value}e-{scale}").parse().unwrap_or(f64::NAN)
}

/// Where the reader is.
struct Place {
    /// Row group that is read next, or is being read if rows are left.
    group: usize,
    groups: usize,
    /// Rows of the group that are read.
    row: u64,
    /// Row of the batch that comes next, and how many it has.
    in_batch: usize,
    batch: usize,
    /// Rows that are read.
    done: u64,
}

struct ParquetReader {
    file: SerializedFileReader<File>,
    plan: Plan,
    columns: Vec<Column>,
    unit: Unit,
    at: Place,
}

impl ParquetReader {
    /// Reads the next batch; `false` at the end.
    fn read_batch(&mut self) -> Result<bool, ReadError> {
        loop {
            if self.columns.first().is_some_and(|column| column.reader.is_none()) {
                if self.at.group == self.at.groups {
                    return Ok(false);
                }
                let group = self.file.get_row_group(self.at.group).map_err(failed)?;
                for column in &mut self.columns {
                    column.reader = Some(group.get_column_reader(column.place).map_err(failed)?);
                }
                self.at.group += 1;
                self.at.row = 0;
            }
            let mut rows = None;
            for column in &mut self.columns {
                let read = column.read().map_err(failed)?;
                if *rows.get_or_insert(read) != read {
                    return Err(ReadError::Table("its columns have different numbers of rows".to_owned()));
                }
            }
            (self.at.in_batch, self.at.batch) = (0, rows.unwrap_or(0));
            if self.at.batch > 0 {
                return Ok(true);
            }
            self.columns.iter_mut().for_each(|column| column.reader = None);
        }
    }

    fn fill(&mut self, row: &mut Row) -> Result<bool, FieldError> {
        let (plan, columns) = (&self.plan, &self.columns);
        row.name(plan, |column| columns[column].text())?;
        let time = &columns[plan.time];
        if time.current.is_none() {
            return Err(FieldError::of(plan.time, "it is null"));
        }
        match (time.kind, &time.values) {
            (Kind::Text, _) => row.set_time_text(plan, time.text().unwrap_or_default(), self.unit)?,
            (Kind::OldTimestamp, Values::Old(values)) => {
                let parts = time.current.and_then(|at| values.get(at)).map_or([0; 3], |value| {
                    let data = value.data();
                    [data[0], data[1], data[2]]
                });
                let nanoseconds = i128::from(parts[0]) | i128::from(parts[1]) << 32;
                let nanoseconds = nanoseconds + (i128::from(parts[2]) - EPOCH_DAY) * DAY_NS;
                let time = i64::try_from(nanoseconds)
                    .map_err(|_| FieldError::of(plan.time, format!("{nanoseconds} ns is too late")))?;
                row.set_time(plan, time, Unit::Nanoseconds, self.unit)?;
            }
            (Kind::Date, _) => {
                let seconds = time.integer().unwrap_or_default() * 86_400;
                row.set_time(plan, seconds, Unit::Seconds, self.unit)?;
            }
            (kind, _) => {
                let own = match (kind, plan.time_format) {
                    (Kind::Timestamp(unit), _) | (_, Some(TimeFormat::Unix(unit))) => unit,
                    _ => self.unit,
                };
                row.set_time(plan, time.integer().unwrap_or_default(), own, self.unit)?;
            }
        }
        let value = columns[plan.value].number(plan)?;
        row.set_value(plan, value)
    }
}

impl RowReader for ParquetReader {
    fn next_row(&mut self, row: &mut Row) -> Result<bool, ReadError> {
        loop {
            if self.at.in_batch == self.at.batch && !guarded(|| self.read_batch())? {
                return Ok(false);
            }
            for column in &mut self.columns {
                column.advance(self.at.in_batch);
            }
            self.at.in_batch += 1;
            self.at.row += 1;
            self.at.done += 1;
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
        format!("row {} of row group {}", self.at.row, self.at.group)
    }

    fn position(&self) -> u64 {
        self.at.done
    }

    fn total(&self) -> Option<u64> {
        u64::try_from(self.file.metadata().file_metadata().num_rows()).ok()
    }
}

//! Reading of tables.

mod bounded;
mod csv;
mod guard;
mod jsonl;
mod mapping;
mod parquet;
mod row;
mod template;

pub use csv::open_csv;
pub use jsonl::open_jsonl;
pub use mapping::{Mapping, Nulls};
pub use parquet::open_parquet;
pub use row::{Labels, Row};
pub use template::{Template, TemplateError};

use crate::unit::Unit;
use row::FieldError;
use std::fmt;
use std::io;
use std::str::FromStr;

/// What a column of times has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFormat {
    /// Numbers of a unit since 1970.
    Unix(Unit),
    /// Dates and times of day.
    Rfc3339,
}

impl FromStr for TimeFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "rfc3339" {
            return Ok(Self::Rfc3339);
        }
        let unit = text.strip_prefix("unix-").and_then(|unit| unit.parse().ok());
        unit.map(Self::Unix).ok_or("it must be unix-s, unix-ms, unix-us, unix-ns or rfc3339")
    }
}

/// A row that cannot be read. The rows behind it can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// Place in the file: `line 7`, `row 12 of row group 3`.
    pub place: String,
    /// Column, if one is to blame.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if let Some(column) = &self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Why a table cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What the table is, or how it is laid out: nothing of it, or nothing more, can be read.
    #[error("{0}")]
    Table(String),
    /// One row.
    #[error("{0}")]
    Row(BadRow),
}

impl ReadError {
    /// Returns the error of the row at `place`, whose columns are numbered as the wanted ones.
    fn of_row(place: String, wanted: &[Vec<u8>], FieldError { column, reason }: FieldError) -> Self {
        let column = column.and_then(|column| wanted.get(column));
        Self::Row(BadRow { place, column: column.map(|name| name.escape_ascii().to_string()), reason })
    }
}

/// Reads a table row by row.
pub trait RowReader {
    /// Replaces the row by the next one; `false` at the end. After [`ReadError::Row`], the next call reads the row behind.
    fn next_row(&mut self, row: &mut Row) -> Result<bool, ReadError>;

    /// Returns the unit of the rows' times.
    fn unit(&self) -> Unit;

    /// Returns where the last row was, for messages.
    fn place(&self) -> String;

    /// Returns how much of the file was read: bytes of a text, rows of Parquet.
    fn position(&self) -> u64;

    /// Returns where the end is, in what [`RowReader::position`] counts, if the table says it.
    fn total(&self) -> Option<u64> {
        None
    }
}

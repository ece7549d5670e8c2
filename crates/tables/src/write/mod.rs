//! Writing of tables.

mod csv;
mod jsonl;
mod parquet;
mod text;

pub use csv::csv_writer;
pub use jsonl::jsonl_writer;
pub use parquet::parquet_writer;

use crate::columns;
use crate::unit::Unit;
use std::io;

/// The columns of a table.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Unit of the times.
    pub unit: Unit,
    /// Whether texts have times as RFC 3339 instead of whole numbers.
    pub dates: bool,
    /// Names of the labels, each of which gets a column.
    pub labels: Vec<Vec<u8>>,
    /// Names of the columns of values.
    pub values: Vec<String>,
}

impl Layout {
    /// Names the column of values if there is one only.
    #[must_use]
    pub fn one_value() -> Vec<String> {
        vec![columns::VALUE.to_owned()]
    }

    /// Returns the name of the column of times in a text.
    fn time_in_text(&self) -> String {
        if self.dates { columns::TIME.to_owned() } else { columns::time_in(self.unit) }
    }
}

/// What the rows of a series have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRow {
    /// Key.
    pub key: Vec<u8>,
    /// Value of each label of the layout, in its order.
    pub labels: Vec<Option<Vec<u8>>>,
}

/// Points of a series.
#[derive(Debug, Clone, Default)]
pub struct Points {
    /// Times.
    pub times: Vec<i64>,
    /// For each column of values, one value for each time.
    pub columns: Vec<Vec<f64>>,
}

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The format cannot hold this text.
    #[error("the {what} \"{}\" is not UTF-8, which {format} cannot hold: use csv", text.escape_ascii())]
    NotUtf8 {
        /// What it is.
        what: &'static str,
        /// The text.
        text: Vec<u8>,
        /// Format that is written.
        format: &'static str,
    },
    /// The format cannot hold infinity.
    #[error("the series \"{}\" is infinite at {time}, which JSON cannot hold: use csv or parquet", key.escape_ascii())]
    Infinite {
        /// Key of the series.
        key: Vec<u8>,
        /// Time of the value.
        time: i64,
    },
    /// A time beyond the years that RFC 3339 can write.
    #[error("the series \"{}\" has a point at {time}, which RFC 3339 cannot write: write numbers", key.escape_ascii())]
    Year {
        /// Key of the series.
        key: Vec<u8>,
        /// The time.
        time: i64,
    },
    /// The writer of Parquet.
    #[error("cannot write Parquet: {0}")]
    Parquet(String),
}

/// Writes a table: points of one series after the other.
pub trait TableWriter: Send {
    /// Writes points, at least none. Rows of a series need not follow each other.
    fn write(&mut self, series: &SeriesRow, points: &Points) -> Result<(), WriteError>;

    /// Writes what is left and the end of the file.
    fn finish(self: Box<Self>) -> Result<(), WriteError>;
}

/// Reads bytes as text.
fn utf8<'t>(bytes: &'t [u8], what: &'static str, format: &'static str) -> Result<&'t str, WriteError> {
    std::str::from_utf8(bytes).map_err(|_| WriteError::NotUtf8 { what, text: bytes.to_vec(), format })
}

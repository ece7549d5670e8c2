//! The formats of files.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

/// A name that is none of a format.
#[derive(Debug, thiserror::Error)]
#[error("the format must be parquet, csv or jsonl")]
pub struct UnknownFormat;

impl Format {
    /// Returns the format that a file's extension names: `parquet`, `pq`, `csv`, `jsonl`, `ndjson`.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "parquet" | "pq" => Some(Self::Parquet),
            "csv" => Some(Self::Csv),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
        })
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        [Self::Parquet, Self::Csv, Self::Jsonl]
            .into_iter()
            .find(|format| format.to_string() == text)
            .ok_or(UnknownFormat)
    }
}

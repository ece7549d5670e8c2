#![doc = include_str!("../README.md")]
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | units and texts of times | `unit`, `time_text` |
//! | the names of columns | `columns` |
//! | how a series is written | `write` |
//! | which columns of a table are the key, the time, the value and the labels | `read::mapping`, `read::template` |
//! | how rows are read | `read` |

#![cfg_attr(test, allow(clippy::float_cmp, reason = "values are kept to the bit"))]

mod columns;
mod format;
mod read;
mod time_text;
mod unit;
mod write;

pub use format::{Format, UnknownFormat};
pub use read::{
    BadRow, Labels, Mapping, Nulls, ReadError, Row, RowReader, Template, TemplateError, TimeFormat, open_csv,
    open_jsonl, open_parquet,
};
pub use time_text::parse_nanoseconds;
pub use unit::Unit;
pub use write::{
    Layout, Points, SeriesRow, TableWriter, WriteError, csv_writer, jsonl_writer, parquet_writer,
};

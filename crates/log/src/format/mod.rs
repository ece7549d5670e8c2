//! Record formats: the encodings of records and segment headers.

mod binary;
mod codec;
mod jsonl;
mod lines;
pub(crate) mod raw;
mod text;

use std::fmt;
use std::str::FromStr;

pub(crate) use raw::Marker;

pub(crate) use codec::{Codec, MARKER_BYTES_MAX, Step};

/// Encoding of records on disk. Every format stores LSN and checksum with each record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Compact frames in preallocated files; the default.
    #[default]
    Binary,
    /// One JSON object per line.
    Jsonl,
    /// One line of plain text per record.
    Text,
}

impl Format {
    /// Every format, in the order in which a reader tries them.
    pub const ALL: [Self; 3] = [Self::Binary, Self::Jsonl, Self::Text];

    pub(crate) fn codec(self) -> &'static dyn Codec {
        match self {
            Self::Binary => &binary::Binary,
            Self::Jsonl => &lines::Lines(jsonl::Jsonl),
            Self::Text => &lines::Lines(text::Text),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::Jsonl => "jsonl",
            Self::Text => "text",
        })
    }
}

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(text: &str) -> Result<Self, ParseFormatError> {
        Self::ALL
            .into_iter()
            .find(|format| format.to_string() == text)
            .ok_or_else(|| ParseFormatError { text: text.to_owned() })
    }
}

/// Error for a text that is no record format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown record format '{text}'; use binary, jsonl or text")]
pub struct ParseFormatError {
    text: String,
}

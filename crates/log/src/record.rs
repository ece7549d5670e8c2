//! A record as it is read back.

use crate::Lsn;

/// One record of the log, borrowed from the buffer that it was read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// LSN of the record.
    pub lsn: Lsn,
    /// Wall clock at admission, microseconds since 1970-01-01 UTC.
    pub time_us: u64,
    /// Type of the payload; opaque to the log, never 0.
    pub kind: u8,
    /// Bytes that the appender wrote.
    pub payload: &'a [u8],
}

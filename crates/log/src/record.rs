//! One record as it is read back.

use crate::Lsn;

/// One record of the log, borrowed from the buffer that it was read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Position in the log.
    pub lsn: Lsn,
    /// Wall clock at admission, microseconds since 1970-01-01 UTC.
    pub time_us: u64,
    /// What the payload is; opaque to the log, never 0.
    pub kind: u8,
    /// The bytes that the appender wrote.
    pub payload: &'a [u8],
}

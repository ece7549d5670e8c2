//! Positions in the original's log.

use std::fmt;

/// Position of a byte in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// Number of the file: 7 for `wal.007`.
    pub file: u64,
    /// Offset from the beginning of the file, header included.
    pub offset: u64,
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wal.{:03} at byte {}", self.file, self.offset)
    }
}

/// Returns the number of a file of the log: 7 for `wal.007`. `None` if the name is not one of a log
/// file.
///
/// ```
/// use tidemark_pool::original::file_number;
///
/// assert_eq!(file_number("wal.007"), Some(7));
/// assert_eq!(file_number("wal.1000"), Some(1000));
/// assert_eq!(file_number("snapshot.json"), None);
/// ```
pub fn file_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("wal.")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

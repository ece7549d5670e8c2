//! Why bytes are no value in Redis's format, or a value has none.

use crate::error::CommandError;

/// Why bytes are no value in Redis's format, or a value has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RdbError {
    /// The payload's version is too new, or its checksum is wrong.
    #[error("ERR DUMP payload version or checksum are wrong")]
    NoPayload,
    /// The content is not what its type says.
    #[error("ERR Bad data format: {0}")]
    Malformed(&'static str),
    /// The type exists in Redis and not here.
    #[error("ERR Bad data format: {0} cannot be restored")]
    Unsupported(&'static str),
    /// The value expands to far more memory than its payload has.
    #[error("ERR Bad data format: the value expands to more than 512 MiB and 64 times its payload")]
    Expands,
    /// The type has no form in Redis, or none.
    #[error("ERR a {0} cannot be dumped: DUMP takes strings, lists, hashes, sets, sorted sets and streams")]
    Foreign(&'static str),
    /// The payload would be longer than a string can be.
    #[error("ERR the payload would be longer than 512 MiB, which no RESTORE takes")]
    TooLong,
}

impl RdbError {
    /// Returns the error with which a command is refused: of malformed content in Redis's words, which do
    /// not say what is wrong.
    pub fn refusal(self) -> CommandError {
        match self {
            Self::Malformed(_) => CommandError::text("ERR Bad data format"),
            other => CommandError::Text(other.to_string().into()),
        }
    }
}

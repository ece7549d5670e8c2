//! Why a record of the log cannot be applied.

/// Why a record could not be applied: the log was written by another version, or is not what its checksum says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The record's kind is unknown.
    #[error("record kind {0} is unknown: the log was written by a newer version; start that version")]
    UnknownKind(u8),
    /// The command's number is unknown.
    #[error("command number {0} is unknown: the log was written by a newer version; start that version")]
    UnknownCommand(u16),
    /// The payload is not of the record's form.
    #[error("the record's payload does not have the form of its kind")]
    Malformed,
    /// Parts of large values are missing in a snapshot.
    #[error("parts of {values} large values are missing")]
    Incomplete {
        /// Of how many.
        values: usize,
    },
    /// The command failed, though it had succeeded when it was logged.
    #[error("command '{name}' had succeeded when it was logged and now answers: {answer}")]
    Refused {
        /// The command.
        name: &'static str,
        /// Its answer.
        answer: String,
    },
}

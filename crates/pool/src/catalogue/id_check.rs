//! Check of the ids of items and of the names of tables.

use crate::catalogue::item::ID_BYTES_MAX;

/// Reason why an id is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvalidId {
    /// It is empty.
    Empty,
    /// It is longer than [`ID_BYTES_MAX`].
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It contains a line break, a tab or another control character.
    ControlCharacter,
}

/// Checks that an id is allowed in answers, logs and files.
pub(crate) fn check_id(id: &str) -> Result<(), InvalidId> {
    if id.is_empty() {
        return Err(InvalidId::Empty);
    }
    if id.len() > ID_BYTES_MAX {
        return Err(InvalidId::TooLong { bytes: id.len() });
    }
    if id.chars().any(char::is_control) {
        return Err(InvalidId::ControlCharacter);
    }
    Ok(())
}

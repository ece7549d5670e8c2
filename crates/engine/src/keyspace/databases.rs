//! Databases, as many as Redis has by default, and some that no client can select.

/// Number of databases that clients can select.
pub const DATABASES: usize = 16;

/// Number of the database of the [sessions](crate::value::OnceSession) of `ONCE`.
pub(crate) const SESSIONS: u8 = DATABASES as u8;

/// Number of the database of the libraries of functions: their texts, by their names.
pub(crate) const LIBRARIES: u8 = SESSIONS + 1;

/// Number of all databases.
pub(crate) const ALL_DATABASES: usize = DATABASES + 2;

/// Whether no client sees the keys of a database.
pub(crate) fn is_internal(db: u8) -> bool {
    usize::from(db) >= DATABASES
}

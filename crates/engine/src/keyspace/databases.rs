//! Databases, as many as Redis has by default, and one that no client can select.

/// Number of databases that clients can select.
pub const DATABASES: usize = 16;

/// Number of the database of the [sessions](crate::value::OnceSession) of `ONCE`.
pub(crate) const SESSIONS: u8 = DATABASES as u8;

/// Number of all databases.
pub(crate) const ALL_DATABASES: usize = DATABASES + 1;

//! The number of databases.

/// Number of databases that `SELECT` can choose from.
pub const DATABASES: usize = 16;

//! How many databases there are.

/// Number of databases that `SELECT` can choose from.
pub const DATABASES: usize = 16;

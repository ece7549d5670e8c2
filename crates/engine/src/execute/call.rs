//! A command to run, and the terms on which it runs.

use crate::command::Command;

/// One command to run.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Row of the command; [`crate::command::resolve`] has checked the number of arguments.
    pub command: &'static Command,
    /// Arguments, starting with the command name.
    pub args: &'a [&'a [u8]],
    /// Selected database, below [`crate::keyspace::DATABASES`].
    pub db: u8,
    /// Time of admission, in microseconds since 1970.
    pub now_us: u64,
}

/// Terms on which commands run, in addition to their arguments.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    /// Whether a change is published only when it is durable.
    pub durable: bool,
    /// Tracker whose client caches what is read, to be notified when it changes.
    pub reader: Option<u64>,
    /// Tracker whose client is not notified of this change.
    pub spared: Option<u64>,
}

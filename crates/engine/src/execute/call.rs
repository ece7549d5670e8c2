//! A command on its way in, and the terms on which it runs.

use crate::command::Command;

/// One command on its way in.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Its row; [`crate::command::resolve`] has checked the number of arguments.
    pub command: &'static Command,
    /// Arguments, the name first.
    pub args: &'a [&'a [u8]],
    /// Selected database, below [`crate::keyspace::DATABASES`].
    pub db: u8,
    /// Time of admission, in microseconds since 1970.
    pub now_us: u64,
}

/// On what terms commands run, beside what they say themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    /// Nobody is to be told of a change before it is durable.
    pub durable: bool,
    /// The tracker whose client keeps what is read, and is to be told when it changes.
    pub reader: Option<u64>,
    /// The tracker whose client is not to be told of what is changed now.
    pub spared: Option<u64>,
}

//! The levels of what the log can have. A build applies everything up to [`NEWEST`]; a cluster whose members have
//! different builds writes no more than all of them apply.
//!
//! A new kind of record, a new form of a snapshot, and a new command that the log has, also as a watched read,
//! take a level that no released build knows. The command that makes them states it: see
//! [`Command::at_level`]. Tests list what is
//! of the first level.
//!
//! [`Command::at_level`]: crate::command::Command::at_level

/// Everything that no other level has.
pub const FIRST: u8 = 1;
/// Numbered commands: `once.note`.
pub const ONCE: u8 = 2;
/// Streams: the records of their commands and of watched reads of them, and their form in snapshots.
pub const STREAMS: u8 = 3;
/// HyperLogLogs, watched reads of points on the earth, and values restored from dumps.
pub const VALUES: u8 = 4;
/// Libraries of functions: `library.set`, `library.delete`.
pub const FUNCTIONS: u8 = 5;
/// Hashes with fields that expire: their commands, their form in snapshots, and `hash.expire`; streams and newer
/// forms among values restored from dumps.
pub const FIELD_TIMES: u8 = 6;
/// The highest.
pub const NEWEST: u8 = FIELD_TIMES;

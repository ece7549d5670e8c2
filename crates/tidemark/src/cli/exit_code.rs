//! Exit codes for errors that were already reported.

/// A command got an error reply.
pub(super) const EXIT_ERROR_REPLY: u8 = 1;
/// The command line, or a line of the input, is wrong.
pub(super) const EXIT_USAGE: u8 = 2;
/// The server cannot be reached, or closed the connection.
pub(super) const EXIT_NO_SERVER: u8 = 3;

//! What the process ends with when something went wrong that was told already.

/// Some command was answered with an error.
pub(super) const EXIT_ERROR_REPLY: u8 = 1;
/// The command line, or a line of the input, is wrong.
pub(super) const EXIT_USAGE: u8 = 2;
/// There is no server, or no longer.
pub(super) const EXIT_NO_SERVER: u8 = 3;

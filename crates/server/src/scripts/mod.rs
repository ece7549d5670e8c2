//! Scripts: what they use of the server, their commands, and the wait for one that takes long.

pub(crate) mod host;
pub(crate) mod script_command;

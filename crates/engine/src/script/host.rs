//! What scripts need of the process around the engine.

use super::publication::Publication;
use crate::command::Command;
use crate::error::CommandError;
use crate::wire::reply::Reply;
use std::time::Instant;

/// The process around the engine, as scripts use it.
pub trait ScriptHost: Send + Sync {
    /// Finds a command that the engine does not have.
    ///
    /// # Errors
    /// There is none, or it does not take so many arguments.
    fn resolve(&self, args: &[&[u8]]) -> Result<&'static Command, CommandError>;

    /// Runs a command that the engine does not have, at a time in microseconds since 1970. Returns `false`
    /// if scripts may not run it.
    fn run(&self, command: &'static Command, args: &[&[u8]], now_us: u64, reply: &mut Reply) -> bool;

    /// Returns the number of clients that a message would reach; `None` if the command publishes nothing.
    fn receivers(&self, command: &'static Command, args: &[&[u8]]) -> Option<(Publication, usize)>;

    /// Writes a line to the server's log. `level` is 0 for debug to 3 for warnings.
    fn log(&self, level: u8, message: &[u8]);

    /// The time of the clock that measures durations.
    fn now(&self) -> Instant;
}

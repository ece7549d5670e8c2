//! What is refused before anything changes.

use crate::command::{Command, flags};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::MAX_BYTES;
use tidemark_log::Health;
use tidemark_log::Room;

/// Most bytes of one command or transaction that changes something, so that its record fits in the log.
pub(crate) const MAX_COMMAND_BYTES: usize = 768 << 20;

/// What an argument's length takes in a record, at most.
pub(crate) const ARGUMENT_OVERHEAD: usize = 5;

impl Engine {
    /// Refuses changes while the log cannot take them, and arguments that no key and no value can hold: handlers rely on
    /// it. `room` becomes that for the record of the change.
    #[inline]
    pub(crate) fn admit<'e>(
        &'e self,
        command: &Command,
        args: &[&[u8]],
        room: &mut Room<'e>,
    ) -> Result<(), CommandError> {
        if command.is(flags::WRITE) { self.admit_change(args, room) } else { Ok(()) }
    }

    /// Lets a command that was refused for this reason run all the same: one that takes no memory, such as `DEL`, while the log is full
    /// and has room for it, because it makes space; one whose changes are volatile, while the log is full or its storage does not
    /// answer, which gets the refusal for the case that it needs the log. A log that has failed, and memory that is ahead of it,
    /// allow nothing.
    #[cold]
    pub(crate) fn tolerate(
        &self,
        command: &Command,
        args: &[&[u8]],
        refusal: CommandError,
    ) -> Result<Option<Box<CommandError>>, CommandError> {
        let is_passing = matches!(self.log().health(), Health::Full(_) | Health::Stalled(_));
        if !is_passing || self.is_ahead_of_log() {
            Err(refusal)
        } else if command.is(flags::VOLATILE) {
            Ok(Some(Box::new(refusal)))
        } else if !command.is(flags::DENYOOM) && self.log().has_last_room_for(Self::record_bytes(args)) {
            Ok(None)
        } else {
            Err(refusal)
        }
    }

    /// How many bytes the record of a command takes at most, as far as its arguments say.
    pub fn record_bytes(args: &[&[u8]]) -> usize {
        args.iter().map(|arg| arg.len() + ARGUMENT_OVERHEAD).sum()
    }

    fn admit_change<'e>(&'e self, args: &[&[u8]], room: &mut Room<'e>) -> Result<(), CommandError> {
        self.check_writable()?;
        let bytes = Self::record_bytes(args);
        if bytes > MAX_BYTES && args.iter().any(|arg| arg.len() > MAX_BYTES) {
            return Err(CommandError::TooLong);
        }
        if bytes > MAX_COMMAND_BYTES {
            return Err(CommandError::Text(
                format!("ERR command of {bytes} bytes exceeds the limit of {MAX_COMMAND_BYTES} bytes").into(),
            ));
        }
        self.make_room(bytes, room)
    }

    /// Asks once more under the locks: while this command waited for them another may have changed the same keys and
    /// found no place in the log, and nothing may build on that.
    #[inline]
    pub(crate) fn admit_under_locks(&self, command: &Command) -> Result<(), CommandError> {
        if command.is(flags::WRITE) { self.check_writable() } else { Ok(()) }
    }
}

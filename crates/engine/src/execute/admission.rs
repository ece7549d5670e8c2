//! Checks that refuse a command before anything changes.

use crate::command::{Command, flags};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::MAX_BYTES;
use crate::persist::level;
use tidemark_log::Health;
use tidemark_log::Room;

/// Maximum bytes of one writing command or transaction, so that its record fits in the log.
const MAX_COMMAND_BYTES: usize = 768 << 20;
/// The same in a group, where a record is sent to the other members while heartbeats go on.
const MAX_GROUP_COMMAND_BYTES: usize = 64 << 20;

/// Maximum bytes that the length prefix of an argument takes in a record.
pub(crate) const ARGUMENT_OVERHEAD: usize = 5;

impl Engine {
    /// Refuses changes while the log cannot take them, and arguments that exceed the size of a key
    /// or value; handlers rely on both. Sets `room` to the reserved log space for the record.
    #[inline]
    pub(crate) fn admit<'e>(
        &'e self,
        command: &Command,
        args: &[&[u8]],
        room: &mut Room<'e>,
    ) -> Result<(), CommandError> {
        if command.is(flags::WRITE) { self.admit_change(command, args, room) } else { Ok(()) }
    }

    /// Allows a refused command to run in two cases, while the log is full or its storage does not
    /// answer. A command that takes no memory, such as `DEL`, runs if the log has reserve space for
    /// its record, because it frees space. A command with volatile changes runs with the refusal
    /// attached, to be returned if it needs the log. Nothing is allowed after the log has failed,
    /// while memory is ahead of it or during a pause.
    #[cold]
    pub(crate) fn tolerate(
        &self,
        command: &Command,
        args: &[&[u8]],
        refusal: CommandError,
    ) -> Result<Option<Box<CommandError>>, CommandError> {
        let is_passing = matches!(self.log().health(), Health::Full(_) | Health::Stalled(_));
        if !is_passing || self.is_ahead_of_log() || self.is_paused() {
            Err(refusal)
        } else if command.is(flags::VOLATILE) {
            Ok(Some(Box::new(refusal)))
        } else if !command.is(flags::DENYOOM) && self.log().has_last_room_for(Self::record_bytes(args)) {
            Ok(None)
        } else {
            Err(refusal)
        }
    }

    /// Upper bound of the bytes of a command's record, from its arguments.
    pub fn record_bytes(args: &[&[u8]]) -> usize {
        args.iter().map(|arg| arg.len() + ARGUMENT_OVERHEAD).sum()
    }

    fn admit_change<'e>(
        &'e self,
        command: &Command,
        args: &[&[u8]],
        room: &mut Room<'e>,
    ) -> Result<(), CommandError> {
        self.check_writable_by(command)?;
        self.check_level_for(command, args)?;
        let bytes = Self::record_bytes(args);
        if bytes > MAX_BYTES && args.iter().any(|arg| arg.len() > MAX_BYTES) {
            return Err(CommandError::TooLong);
        }
        self.check_size("command", bytes)?;
        self.make_room(bytes, room)
    }

    /// As [`Engine::check_level`], of a command or watched read.
    #[inline]
    pub(crate) fn check_level_of(&self, command: &Command) -> Result<(), CommandError> {
        if command.level == level::FIRST { Ok(()) } else { self.check_level(command.level, command.called()) }
    }

    /// As [`Engine::check_level_of`], for given arguments. Only commands beyond the first level have a level by
    /// them: see [`Command::at_level_of`].
    #[inline]
    pub(crate) fn check_level_for(&self, command: &Command, args: &[&[u8]]) -> Result<(), CommandError> {
        if command.level == level::FIRST { Ok(()) } else { self.check_higher_level(command, args) }
    }

    #[inline(never)]
    fn check_higher_level(&self, command: &Command, args: &[&[u8]]) -> Result<(), CommandError> {
        let by_arguments = command.level_of.map_or(level::FIRST, |level_of| level_of(args));
        self.check_level(command.level.max(by_arguments), command.called())
    }

    /// Refuses a command whose record a member of the group may be unable to apply.
    #[inline]
    pub(crate) fn check_level(&self, needed: u8, name: &str) -> Result<(), CommandError> {
        if needed == level::FIRST || needed <= self.level() {
            return Ok(());
        }
        Err(self.above_level(needed, name))
    }

    #[cold]
    fn above_level(&self, needed: u8, name: &str) -> CommandError {
        let error = format!(
            "ERR '{name}' needs records of level {needed}, and the cluster writes them up to level {}, because a \
             member may know no more: upgrade all members; tidemark cluster status names those that are older",
            self.level()
        );
        CommandError::Text(error.into())
    }

    /// Refuses changes whose record would be too large.
    #[inline]
    pub(crate) fn check_size(&self, what: &str, bytes: usize) -> Result<(), CommandError> {
        // Most need no look at the group.
        if bytes <= MAX_GROUP_COMMAND_BYTES { Ok(()) } else { self.check_large(what, bytes) }
    }

    #[cold]
    fn check_large(&self, what: &str, bytes: usize) -> Result<(), CommandError> {
        let (limit, place) = if self.is_in_group() {
            (MAX_GROUP_COMMAND_BYTES, " in a cluster")
        } else {
            (MAX_COMMAND_BYTES, "")
        };
        if bytes <= limit {
            return Ok(());
        }
        let error = format!("ERR {what} of {bytes} bytes exceeds the limit of {limit} bytes{place}");
        Err(CommandError::Text(error.into()))
    }

    /// Checks again under the locks: while this command waited for them, another may have changed
    /// the same keys and failed to log that, and no change may build on such a state; or a pause has begun,
    /// which waits only for those that hold locks.
    #[inline]
    pub(crate) fn admit_under_locks(&self, command: &Command) -> Result<(), CommandError> {
        if command.is(flags::WRITE) { self.check_writable_by(command) } else { Ok(()) }
    }
}

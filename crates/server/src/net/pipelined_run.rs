//! Commands of one client that may run together, borrowed from its input.

use smallvec::SmallVec;
use tidemark_engine::Command;

/// Most commands of a run: few enough that their locks are held for a fraction of a turn.
pub(crate) const RUN_COMMANDS: usize = 128;

/// Arguments of a run that need no allocation.
const USUAL_ARGUMENTS: usize = 4 * RUN_COMMANDS;

/// A command of a run, and its arguments.
pub(crate) type RunCommand<'a> = (&'static Command, &'a [&'a [u8]]);

/// Commands of one client that may run together.
#[derive(Default)]
pub(crate) struct PipelinedRun<'a> {
    args: SmallVec<[&'a [u8]; USUAL_ARGUMENTS]>,
    /// Each command, and where its arguments end.
    commands: SmallVec<[(&'static Command, usize); RUN_COMMANDS]>,
}

impl<'a> PipelinedRun<'a> {
    /// Adds a command whose arguments are at `ranges` of `frame`.
    pub(crate) fn add(&mut self, command: &'static Command, frame: &'a [u8], ranges: &[(u32, u32)]) {
        self.args.extend(ranges.iter().map(|(start, end)| &frame[*start as usize..*end as usize]));
        self.commands.push((command, self.args.len()));
    }

    /// Returns the arguments of the first command.
    pub(crate) fn first(&self) -> &[&'a [u8]] {
        &self.args[..self.commands.first().map_or(0, |(_, end)| *end)]
    }

    /// Returns the number of commands.
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns the commands.
    pub(crate) fn commands(&self) -> SmallVec<[RunCommand<'_>; RUN_COMMANDS]> {
        let mut start = 0;
        let with_args = |(command, end): &(&'static Command, usize)| {
            let args = &self.args[std::mem::replace(&mut start, *end)..*end];
            (*command, args)
        };
        self.commands.iter().map(with_args).collect()
    }
}

//! What a row of the command table is.

use super::connection_command::ConnectionCommand;
use super::group::Group;
use super::key_spec::KeySpec;
use crate::context::Context;
use crate::error::CommandError;
use crate::watch::part::{Part, PartOf};

/// Runs a command on keys whose shards are locked. `args[0]` is the command's name; their number fits the arity.
pub type Handler = fn(&mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError>;

/// Serves a client that a command has let wait: takes from `key`, which holds a non-empty value of the type waited for, and
/// writes the blocked client's answer.
/// The arguments are those of the blocked command.
pub type Serve = fn(&mut Context<'_, '_>, key: &[u8], args: &[&[u8]]) -> Result<(), CommandError>;

/// Who carries a command out.
#[derive(Clone, Copy)]
pub enum Run {
    /// The engine, on keys.
    Keys(Handler),
    /// The server, which knows connections.
    Connection(ConnectionCommand),
    /// One of the subcommands, chosen by the first argument.
    Container,
}

/// One row of the table.
pub struct Command {
    /// Its number in the log; unique, and never changed.
    pub id: u16,
    /// Lower-case name; of a subcommand, its own part.
    pub name: &'static str,
    /// Number of arguments with the name; negative: at least so many.
    pub arity: i16,
    /// Bits of [`crate::command::flags`].
    pub flags: u32,
    /// Where its keys are.
    pub keys: KeySpec,
    /// Its chapter.
    pub group: Group,
    /// The Redis version that introduced it, or `tidemark 0.1.0` for our own.
    pub since: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// What it costs.
    pub complexity: &'static str,
    /// Its arguments: `key value [NX | XX] [EX seconds]`.
    pub syntax: &'static str,
    /// Who carries it out.
    pub run: Run,
    /// Subcommands, if `run` is [`Run::Container`].
    pub subcommands: &'static [Command],
    /// How a client that it has let wait is served, if it lets clients wait.
    pub(crate) serve: Option<Serve>,
    /// What it looks at of the value of its key, if it reads one.
    pub(crate) part: PartOf,
}

impl Command {
    /// A row without its documentation, which [`Command::doc`] adds.
    pub const fn new(
        group: Group,
        id: u16,
        name: &'static str,
        arity: i16,
        flags: u32,
        keys: KeySpec,
        run: Run,
    ) -> Self {
        Self {
            id,
            name,
            arity,
            flags,
            keys,
            group,
            since: "",
            summary: "",
            complexity: "",
            syntax: "",
            run,
            subcommands: &[],
            serve: None,
            part: |_| Part::Everything,
        }
    }

    /// Adds what the reference says.
    #[must_use]
    pub const fn doc(
        mut self,
        since: &'static str,
        complexity: &'static str,
        syntax: &'static str,
        summary: &'static str,
    ) -> Self {
        self.since = since;
        self.complexity = complexity;
        self.syntax = syntax;
        self.summary = summary;
        self
    }

    /// Adds subcommands.
    #[must_use]
    pub const fn with(mut self, subcommands: &'static [Self]) -> Self {
        self.subcommands = subcommands;
        self
    }

    /// Says how a client is served once one of the keys has something that it waits for.
    #[must_use]
    pub(crate) const fn serving(mut self, serve: Serve) -> Self {
        self.serve = Some(serve);
        self
    }

    /// Says what a read of one key looks at, so that watched it is answered anew only behind changes that may concern it.
    #[must_use]
    pub(crate) const fn looking_at(mut self, part: PartOf) -> Self {
        self.part = part;
        self
    }

    /// Whether a flag is set.
    #[inline]
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether so many arguments, the name included, fit.
    #[inline]
    pub fn takes(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if self.arity >= 0 { count == i64::from(self.arity) } else { count >= -i64::from(self.arity) }
    }
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

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

/// What the reply of a read depends on, and its order: whether and how the read can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Not said, which only a command that is no read of keys may do.
    Unsaid,
    /// It depends on chance, on the time, or on how a value is stored, which the log does not say: it cannot be watched.
    Unrepeatable,
    /// Equal states have equal replies.
    Ordered,
    /// In the order of a hash table: so many items are an element.
    Unordered(usize),
    /// A part at a time, and where to go on: so many items are an element.
    Iterated(usize),
}

/// Where a command writes in a string beyond its end, which makes the string longer than its arguments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Nowhere: the value grows by the arguments at most.
    None,
    /// At the byte that the second argument names.
    Byte,
    /// At the bit that the second argument names.
    Bit,
    /// At fields of bits, which several arguments may name.
    BitField,
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
    /// What it does with its first key and, if that differs, with all further ones (for `SORT`: with keys that its arguments do not
    /// name, and with the destination), in the words of Redis's key specifications: see [`crate::command::key_uses_of`].
    pub key_uses: &'static [&'static str],
    /// Where it writes beyond the end of a value.
    pub(crate) extension: Extension,
    /// What its reply depends on, if it reads keys.
    pub(crate) answer: Answer,
    /// Whether it looks at all elements of its keys, or at all keys. A command on a range takes as long as the range, and is not one.
    pub visits_all: bool,
    /// Categories of access rules that do not follow from its flags and group.
    pub categories: &'static [&'static str],
    /// Categories that would follow, and that it is not in.
    pub excluded_categories: &'static [&'static str],
    /// Tips for proxies and clients of clusters, as Redis has them.
    pub tips: &'static [&'static str],
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
            key_uses: &[],
            extension: Extension::None,
            answer: Answer::Unsaid,
            visits_all: false,
            categories: &[],
            excluded_categories: &[],
            tips: &[],
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

    /// Says what it does with its keys. Every command with keys must.
    #[must_use]
    pub(crate) const fn using(mut self, key_uses: &'static [&'static str]) -> Self {
        self.key_uses = key_uses;
        self
    }

    /// Says that it can write beyond the end of its key's value.
    #[must_use]
    pub(crate) const fn extending(mut self, extension: Extension) -> Self {
        self.extension = extension;
        self
    }

    /// Says what its reply depends on. Every read of keys must.
    #[must_use]
    pub(crate) const fn answering(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    /// Says that it looks at all elements of its keys, or at all keys: with many of them it runs beside the event loops.
    #[must_use]
    pub(crate) const fn visiting_all(mut self) -> Self {
        self.visits_all = true;
        self
    }

    /// Says where its categories are not those of its flags and group.
    #[must_use]
    pub(crate) const fn in_categories(
        mut self,
        added: &'static [&'static str],
        excluded: &'static [&'static str],
    ) -> Self {
        self.categories = added;
        self.excluded_categories = excluded;
        self
    }

    /// Adds tips for proxies and clients of clusters.
    #[must_use]
    pub(crate) const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    /// Whether it makes its values of those of other keys.
    pub(crate) fn copies_keys(&self) -> bool {
        self.is(super::flags::WRITE) && self.key_uses.contains(&"RO access")
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

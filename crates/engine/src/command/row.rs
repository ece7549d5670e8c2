//! Rows of the command table.

use super::flags::DENYOOM;
use super::group::Group;
use super::key_spec::KeySpec;
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::persist::level;
use crate::value::{LabelFilter, Object};
use crate::watch::part::{Part, PartOf};

/// Executes a command on keys whose shards are locked. `args[0]` is the command's name; the arity
/// has been checked.
pub type Handler = fn(&mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError>;

/// Returns the level of the records that a command may need with its arguments: see [`crate::record::level`].
pub(crate) type LevelOf = fn(args: &[&[u8]]) -> u8;

/// Serves a client that a command has blocked: takes from `key`, which holds a non-empty value of
/// the awaited type, and writes the client's answer. `args` are those of the blocked command.
pub type Serve = fn(&mut Context<'_, '_>, key: &[u8], args: &[&[u8]]) -> Result<(), CommandError>;

/// Decides whether a client waits no longer that a command has blocked which takes nothing. The shards of
/// all keys that are read with the key are locked.
pub(crate) type IsReady = fn(&Keys<'_>, key: &[u8], args: &[&[u8]]) -> bool;

/// What a command does with scripts or functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptAction {
    /// Runs the script whose text is the first argument.
    Text,
    /// Runs the script with the SHA-1 in the first argument.
    Id,
    /// Runs the function that the first argument names.
    Function,
    /// Changes or shows the libraries of functions.
    Libraries(LibraryAction),
}

/// What a command does with the libraries of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryAction {
    /// Adds one, or replaces it.
    Load,
    /// Removes one.
    Delete,
    /// Removes all.
    Flush,
    /// Shows them.
    List,
    /// Returns all of them as bytes.
    Dump,
    /// Adds those that bytes have.
    Restore,
}

/// What executes a command.
#[derive(Clone, Copy)]
pub enum Run {
    /// The engine, on keys.
    Keys(Handler),
    /// The engine, as a script or function that the arguments name, or on the libraries of functions.
    Script(ScriptAction),
    /// Another crate, which knows the command by this number of its own.
    Outside(u16),
    /// A subcommand, chosen by the first argument.
    Container,
}

/// What the reply of a read depends on, and its order, which decide how the read can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Not declared; only for commands that are not reads of keys.
    Unsaid,
    /// Random, or dependent on the time or on a value's encoding, which the log does not have:
    /// cannot be watched.
    Unrepeatable,
    /// Equal states have equal replies.
    Ordered,
    /// In hash-table order, in groups of this many items.
    Unordered(usize),
    /// An iteration with a cursor, in groups of this many items.
    Iterated(usize),
    /// Rows of a range of time, the newest first or the oldest: see [`crate::watch::Watchable`].
    Rows { newest_first: bool },
    /// Rows of several series, by their names.
    RowsOfSeveral { newest_first: bool },
}

/// Where a command writes beyond the end of a string, which then grows by more than the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extension {
    /// Nowhere: the value grows at most by the arguments.
    None,
    /// At the byte in the second argument.
    Byte,
    /// At the bit in the second argument.
    Bit,
    /// At bit fields, in any of the arguments.
    BitField,
}

/// What a write changes beyond the values of its keys, each of which may depend on all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteReach {
    /// Nothing.
    Keys,
    /// Less: each of its keys is changed independently of the others.
    EachKey,
    /// A key of another database.
    OtherDatabase,
    /// All keys of its database, whatever they hold.
    Database,
    /// All keys of several databases, whatever they hold.
    Databases,
}

/// Which absent keys of a command are misses, as in Redis's notifications of key misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misses {
    /// Those that it only reads.
    OfReads,
    /// Also those that it changes, because it returns their values.
    OfWrites,
    /// None: it inspects keys without using them.
    None,
}

/// Returns how a command with options uses its keys for given arguments.
pub(crate) type KeyUsesOf = fn(&[&[u8]]) -> &'static [&'static str];

/// Returns how many elements a command visits in the value of its key, for given arguments.
pub(crate) type EffortOf = fn(&Object, &[&[u8]]) -> usize;

/// Returns the labels of the series that a command reads, for given arguments; `None` if they are none.
pub(crate) type SelectionOf = fn(&[&[u8]]) -> Option<LabelFilter>;

/// A row of the command table.
pub struct Command {
    /// Number in the log; unique and permanent.
    pub id: u16,
    /// Name in lower case; for a subcommand, its own part.
    pub name: &'static str,
    /// Number of arguments including the name; negative: the least number.
    pub arity: i16,
    /// Bits of [`crate::command::flags`].
    pub flags: u32,
    /// Level of the records that it may need: see [`crate::record::level`].
    pub level: u8,
    /// Returns the level for given arguments, if that may be a higher one.
    pub(crate) level_of: Option<LevelOf>,
    /// Positions of its keys.
    pub keys: KeySpec,
    /// Chapter of the reference.
    pub group: Group,
    /// Redis version that introduced it, or `tidemark 0.1.0` for our own.
    pub since: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its cost.
    pub complexity: &'static str,
    /// Arguments: `key value [NX | XX] [EX seconds]`.
    pub syntax: &'static str,
    /// What executes it.
    pub run: Run,
    /// Subcommands, if `run` is [`Run::Container`].
    pub subcommands: &'static [Command],
    /// Serves a client that it has blocked, if it blocks clients.
    pub(crate) serve: Option<Serve>,
    /// Whether a client that it has blocked is ready, if it takes nothing.
    pub(crate) is_ready: Option<IsReady>,
    /// Part of its key's value that it reads, if it reads one key.
    pub(crate) part: PartOf,
    /// Returns the labels of the series that it reads, if it reads the series that have some.
    pub(crate) selection: Option<SelectionOf>,
    /// Use of its first key and, if different, of all others, in the terms of Redis's key
    /// specifications: see [`crate::command::key_uses_of`]. For `SORT`: of keys that its arguments
    /// do not name, and of the destination.
    pub key_uses: &'static [&'static str],
    /// Returns the uses for given arguments, if options decide them.
    pub(crate) key_uses_of: Option<KeyUsesOf>,
    /// Which of its keys are misses if they are absent.
    pub(crate) misses: Misses,
    /// What it changes beyond its keys, if it is a write.
    pub(crate) reach: WriteReach,
    /// Where it writes beyond the end of a value.
    pub(crate) extension: Extension,
    /// What its reply depends on, if it reads keys.
    pub(crate) answer: Answer,
    /// Whether it may visit many elements: all of its keys', those in a range that `effort_of`
    /// estimates, or all keys. False for other commands on a range, whose cost is that of the range.
    pub visits_all: bool,
    /// Whether it may visit each byte of its arguments.
    pub(crate) visits_arguments: bool,
    /// Returns how many elements it visits, if its arguments decide that.
    pub(crate) effort_of: Option<EffortOf>,
    /// Access categories besides those of its flags and group.
    pub categories: &'static [&'static str],
    /// Access categories of its flags and group that it is not in.
    pub excluded_categories: &'static [&'static str],
    /// Tips for proxies and cluster clients, as in Redis.
    pub tips: &'static [&'static str],
}

impl Command {
    /// Creates a row without documentation, which [`Command::doc`] adds.
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
            level: level::FIRST,
            level_of: None,
            keys,
            group,
            since: "",
            summary: "",
            complexity: "",
            syntax: "",
            run,
            subcommands: &[],
            serve: None,
            is_ready: None,
            part: |_| Part::Everything,
            selection: None,
            key_uses: &[],
            key_uses_of: None,
            misses: Misses::OfReads,
            reach: WriteReach::Keys,
            extension: Extension::None,
            answer: Answer::Unsaid,
            visits_all: false,
            visits_arguments: false,
            effort_of: None,
            categories: &[],
            excluded_categories: &[],
            tips: &[],
        }
    }

    /// Adds the documentation for the reference.
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

    /// Whether it may read keys that a value links to.
    #[inline]
    pub(crate) fn follows_links(&self) -> bool {
        self.group.follows_links() || self.group == Group::Scripting
    }

    /// Whether it may bring a series or a lens to one of its keys that had none, or other labels.
    pub(crate) fn may_bring_series(&self) -> bool {
        match self.group {
            Group::Series | Group::Lens => self.is(DENYOOM),
            group if group.value_type().is_some() => false,
            _ => {
                self.key_uses.is_empty()
                    || self.reach == WriteReach::OtherDatabase
                    || self.key_uses.iter().any(|key_use| key_use.starts_with("OW"))
            }
        }
    }

    /// Sets the level of the records that it may need. Required for a command that the log has, also as a
    /// watched read, unless the first builds had it.
    #[must_use]
    pub const fn at_level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    /// Sets the level for given arguments, if those may need a higher one.
    #[must_use]
    pub(crate) const fn at_level_of(mut self, level_of: LevelOf) -> Self {
        assert!(self.level > level::FIRST, "a command of the first level is not asked for another");
        self.level_of = Some(level_of);
        self
    }

    /// Adds subcommands.
    #[must_use]
    pub const fn with(mut self, subcommands: &'static [Self]) -> Self {
        self.subcommands = subcommands;
        self
    }

    /// Sets the function that serves a blocked client when one of its keys has an element.
    #[must_use]
    pub(crate) const fn serving(mut self, serve: Serve) -> Self {
        self.serve = Some(serve);
        self
    }

    /// Sets when a blocked client is ready, for a command that takes nothing.
    #[must_use]
    pub(crate) const fn ready_when(mut self, is_ready: IsReady) -> Self {
        self.is_ready = Some(is_ready);
        self
    }

    /// Sets the part of its key that a read uses. A watched read is evaluated only after changes of
    /// that part.
    #[must_use]
    pub(crate) const fn looking_at(mut self, part: PartOf) -> Self {
        self.part = part;
        self
    }

    /// Declares that a read reads nothing but the series with some labels, which `selection` returns. A
    /// watched read is evaluated only after changes of those.
    #[must_use]
    pub(crate) const fn selecting(mut self, selection: SelectionOf) -> Self {
        self.selection = Some(selection);
        self
    }

    /// Sets the use of its keys. Required for every command with keys.
    #[must_use]
    pub const fn using(mut self, key_uses: &'static [&'static str]) -> Self {
        self.key_uses = key_uses;
        self
    }

    /// Sets the use of its keys for given arguments, if options decide it.
    #[must_use]
    pub(crate) const fn using_by_options(mut self, key_uses_of: KeyUsesOf) -> Self {
        self.key_uses_of = Some(key_uses_of);
        self
    }

    /// Sets which of its keys are misses if they are absent.
    #[must_use]
    pub(crate) const fn missing(mut self, misses: Misses) -> Self {
        self.misses = misses;
        self
    }

    /// Sets what it changes beyond its keys.
    #[must_use]
    pub(crate) const fn reaching(mut self, reach: WriteReach) -> Self {
        self.reach = reach;
        self
    }

    /// Sets where it writes beyond the end of its key's value.
    #[must_use]
    pub(crate) const fn extending(mut self, extension: Extension) -> Self {
        self.extension = extension;
        self
    }

    /// Sets what its reply depends on. Required for every read of keys.
    #[must_use]
    pub(crate) const fn answering(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    /// Marks it as visiting all elements of its keys, or all keys.
    /// With many of them it is offloaded.
    #[must_use]
    pub(crate) const fn visiting_all(mut self) -> Self {
        self.visits_all = true;
        self
    }

    /// Marks it as visiting what its arguments say, which may be many elements. With many of them it
    /// is offloaded; one that may concern every key always is.
    #[must_use]
    pub(crate) const fn visiting(mut self, effort_of: EffortOf) -> Self {
        self.visits_all = true;
        self.effort_of = Some(effort_of);
        self
    }

    /// Marks it as visiting each byte of its arguments, which may be elements. With many of them it is
    /// offloaded.
    #[must_use]
    pub(crate) const fn visiting_arguments(mut self) -> Self {
        self.visits_all = true;
        self.visits_arguments = true;
        self
    }

    /// Sets how its access categories differ from those of its flags and group.
    #[must_use]
    pub const fn in_categories(
        mut self,
        added: &'static [&'static str],
        excluded: &'static [&'static str],
    ) -> Self {
        self.categories = added;
        self.excluded_categories = excluded;
        self
    }

    /// Adds tips for proxies and cluster clients.
    #[must_use]
    pub const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    /// Returns whether it derives values from those of other keys.
    pub(crate) fn copies_keys(&self) -> bool {
        self.is(super::flags::WRITE) && self.key_uses.contains(&"RO access")
    }

    /// Returns whether a flag is set.
    #[inline]
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether a call may block its client: `XREADGROUP` only does with an option.
    pub fn may_wait(&self, args: &[&[u8]]) -> bool {
        let has_option = || {
            let mut options = args.iter().take_while(|arg| !super::parse::is(arg, "STREAMS"));
            options.any(|arg| super::parse::is(arg, "BLOCK"))
        };
        self.is(super::flags::BLOCKING) && (self.keys != KeySpec::Streams || has_option())
    }

    /// Returns whether the arity allows `count` arguments, including the name.
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

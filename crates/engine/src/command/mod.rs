//! The command table: one row per command, from which the dispatcher, `COMMAND`, `COMMAND DOCS`, the reference in the
//! book and the client's hints are derived.
//!
//! To add a command: write a handler beside its kin, give it a row with the next free id of its file's range, and name
//! its keys. Ids stand in the log; they are never changed or given to another command.

mod bits;
mod connection;
mod first_of;
mod hashes;
mod hexadecimal;
mod key_use;
mod keys;
mod keyspace_wide;
mod lists;
mod members;
pub mod parse;
mod sets;
mod sort;
pub(crate) mod sorted_sets;
mod strings;
pub mod syntax;
pub mod watching;

pub use connection::ConnectionCommand;
pub use key_use::{key_uses, key_uses_of};

use crate::context::Context;
use crate::error::CommandError;
use crate::part::{Part, PartOf};
use std::sync::LazyLock;

/// Runs a command on keys whose shards are locked. `args[0]` is the command's name; their number fits the arity.
pub type Handler = fn(&mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError>;

/// Properties of a command, as bits.
pub mod flags {
    /// May change keys.
    pub const WRITE: u32 = 1;
    /// Only reads keys.
    pub const READONLY: u32 = 1 << 1;
    /// May use more memory, so that it is refused when there is none.
    pub const DENYOOM: u32 = 1 << 2;
    /// For administrators.
    pub const ADMIN: u32 = 1 << 3;
    /// Has to do with pub/sub.
    pub const PUBSUB: u32 = 1 << 4;
    /// Not for scripts.
    pub const NOSCRIPT: u32 = 1 << 5;
    /// May let the client wait.
    pub const BLOCKING: u32 = 1 << 6;
    /// Allowed while data is loaded.
    pub const LOADING: u32 = 1 << 7;
    /// Allowed on a replica that lost its leader.
    pub const STALE: u32 = 1 << 8;
    /// O(1) or O(log n).
    pub const FAST: u32 = 1 << 9;
    /// Allowed before authentication.
    pub const NO_AUTH: u32 = 1 << 10;
    /// Not allowed in a transaction.
    pub const NO_MULTI: u32 = 1 << 11;
    /// Keys are found by reading the arguments, not by position alone.
    pub const MOVABLE_KEYS: u32 = 1 << 12;

    /// Bits with the names that `COMMAND` uses.
    pub const NAMES: [(u32, &str); 13] = [
        (WRITE, "write"),
        (READONLY, "readonly"),
        (DENYOOM, "denyoom"),
        (ADMIN, "admin"),
        (PUBSUB, "pubsub"),
        (NOSCRIPT, "noscript"),
        (BLOCKING, "blocking"),
        (LOADING, "loading"),
        (STALE, "stale"),
        (FAST, "fast"),
        (NO_AUTH, "no_auth"),
        (NO_MULTI, "no_multi"),
        (MOVABLE_KEYS, "movablekeys"),
    ];
}

/// The chapter of the reference that a command belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Strings and counters.
    String,
    /// Bits of strings.
    Bitmap,
    /// Keys of any type.
    Generic,
    /// Lists.
    List,
    /// Hashes.
    Hash,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Transactions.
    Transactions,
    /// Publish and subscribe.
    PubSub,
    /// The connection itself.
    Connection,
    /// The server.
    Server,
}

impl Group {
    /// The name that `COMMAND DOCS` uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Bitmap => "bitmap",
            Self::Generic => "generic",
            Self::List => "list",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Transactions => "transactions",
            Self::PubSub => "pubsub",
            Self::Connection => "connection",
            Self::Server => "server",
        }
    }
}

/// Where the keys stand among the arguments (the name is argument 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySpec {
    /// There are none.
    None,
    /// From `first` to `last` (negative: counted from the end), every `step`-th argument.
    Range {
        /// First key.
        first: i16,
        /// Last key.
        last: i16,
        /// Distance from key to key.
        step: i16,
    },
    /// A number of keys at `at`, and the keys right behind it.
    Counted {
        /// Where the number stands.
        at: u8,
    },
    /// One key at 1, and further keys behind their number at `at`.
    OneAndCounted {
        /// Where the number stands.
        at: u8,
    },
    /// One key at 1, one behind the word `STORE`, and any others where an argument has an asterisk: `SORT`.
    OneAndAny,
    /// The command concerns every key, all at one moment.
    All,
    /// The command concerns every key, but needs no two shards at one moment: it visits one after the other. In a
    /// transaction it is as `All`.
    Each,
}

impl KeySpec {
    /// The first argument is the key.
    pub const ONE: Self = Self::Range { first: 1, last: 1, step: 1 };
    /// The first two arguments are keys.
    pub const TWO: Self = Self::Range { first: 1, last: 2, step: 1 };
    /// Every argument is a key.
    pub const REST: Self = Self::Range { first: 1, last: -1, step: 1 };
    /// Keys and values alternate.
    pub const PAIRS: Self = Self::Range { first: 1, last: -1, step: 2 };

    /// The keys among `args`. A number of keys that does not fit yields none; the handler reports it.
    pub fn keys<'a>(self, args: &[&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
        let (extra, first, last, step) = self.bounds(args);
        let indices = extra.into_iter().chain((first..last).step_by(step));
        indices.filter_map(|index| args.get(index).copied()).collect::<Vec<_>>().into_iter()
    }

    /// Whether the command may concern keys that `args` do not name.
    pub fn concerns_all(self, args: &[&[u8]]) -> bool {
        match self {
            Self::All | Self::Each => true,
            Self::OneAndAny => args.iter().skip(2).any(|arg| arg.contains(&b'*')),
            _ => false,
        }
    }

    /// The positions of the keys among `args`.
    pub fn positions(self, args: &[&[u8]]) -> Vec<usize> {
        let (extra, first, last, step) = self.bounds(args);
        extra.into_iter().chain((first..last).step_by(step)).filter(|&index| index < args.len()).collect()
    }

    fn bounds(self, args: &[&[u8]]) -> (Option<usize>, usize, usize, usize) {
        let counted = |at: u8| {
            let first = at as usize + 1;
            let count = args.get(at as usize).and_then(|arg| parse::canonical_integer(arg)).unwrap_or(0);
            let count = usize::try_from(count).unwrap_or(0).min(args.len().saturating_sub(first));
            (first, first + count)
        };
        match self {
            Self::None | Self::All | Self::Each => (None, 0, 0, 1),
            Self::Range { first, last, step } => {
                let last = if last < 0 { args.len() as i64 + i64::from(last) } else { i64::from(last) };
                (None, first as usize, usize::try_from(last + 1).unwrap_or(0), step as usize)
            }
            Self::Counted { at } => {
                let (first, last) = counted(at);
                (None, first, last, 1)
            }
            Self::OneAndCounted { at } => {
                let (first, last) = counted(at);
                (Some(1), first, last, 1)
            }
            Self::OneAndAny => {
                let stored = sort::destination(args);
                (Some(1), stored.unwrap_or(0), stored.map_or(0, |at| at + 1), 1)
            }
        }
    }
}

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
    /// Bits of [`flags`].
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

    /// The full name: `object|encoding` for a subcommand, whose parent is found in the table.
    pub fn full_name(&self) -> String {
        // Rows are constants, which a build may place several times: numbers tell them apart, addresses do not.
        let parent = all().find(|parent| parent.subcommands.iter().any(|row| row.id == self.id));
        match parent {
            Some(parent) => format!("{}|{}", parent.name, self.name),
            None => self.name.to_owned(),
        }
    }
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// All rows, in the order of their chapters; those that watch reads come last.
pub fn all() -> impl Iterator<Item = &'static Command> {
    rows().chain(watching::COMMANDS.iter())
}

/// The rows that are written down, in the order of their chapters.
fn rows() -> impl Iterator<Item = &'static Command> {
    [
        strings::COMMANDS,
        bits::COMMANDS,
        keys::COMMANDS,
        sort::COMMANDS,
        keyspace_wide::COMMANDS,
        lists::COMMANDS,
        hashes::COMMANDS,
        sets::COMMANDS,
        sorted_sets::COMMANDS,
        connection::COMMANDS,
    ]
    .into_iter()
    .flatten()
}

/// Slots of the table of names: a power of two, several times the number of rows.
const NAME_SLOTS: usize = 2048;

/// Rows by their names: open addressing, so sparse that a name is mostly where it is looked for first.
static BY_NAME: LazyLock<[Option<&'static Command>; NAME_SLOTS]> = LazyLock::new(|| {
    let mut slots = [None; NAME_SLOTS];
    for row in all() {
        let mut slot = first_slot(row.name.as_bytes());
        while slots[slot].is_some() {
            slot = (slot + 1) % NAME_SLOTS;
        }
        slots[slot] = Some(row);
    }
    slots
});

static BY_ID: LazyLock<Vec<Option<&'static Command>>> = LazyLock::new(|| {
    let rows: Vec<_> = all().flat_map(|row| std::iter::once(row).chain(row.subcommands)).collect();
    let mut by_id = vec![None; rows.iter().map(|row| row.id as usize + 1).max().unwrap_or(0)];
    for row in rows {
        by_id[row.id as usize] = Some(row);
    }
    by_id
});

/// The row of a command by its name, in whatever case. Of a container, the container's row: see [`resolve`].
#[inline]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let by_name = &*BY_NAME;
    let mut slot = first_slot(name);
    while let Some(row) = by_name[slot] {
        if name.eq_ignore_ascii_case(row.name.as_bytes()) {
            return Some(row);
        }
        slot = (slot + 1) % NAME_SLOTS;
    }
    None
}

/// Where a name is looked for first: a multiplicative hash of its first eight bytes, in lower case, and its length.
#[inline]
fn first_slot(name: &[u8]) -> usize {
    let mut head = [0; 8];
    for (into, byte) in head.iter_mut().zip(name) {
        // Equal for both cases of a letter, which is all that is asked of it.
        *into = byte | 0x20;
    }
    let mixed = (u64::from_le_bytes(head) ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - NAME_SLOTS.ilog2())) as usize
}

/// The row of a command by its number in the log.
#[inline]
pub fn by_id(id: u16) -> Option<&'static Command> {
    BY_ID.get(id as usize).copied().flatten()
}

/// The row that carries out these arguments: the command, or its subcommand. Checks that the number of arguments fits.
#[inline]
pub fn resolve(args: &[&[u8]]) -> Result<&'static Command, CommandError> {
    let name = args.first().copied().unwrap_or_default();
    let command = find(name).ok_or_else(|| unknown_command(args))?;
    if let (false, Some(name)) = (command.subcommands.is_empty(), args.get(1)) {
        return resolve_subcommand(command, name, args);
    }
    if command.takes(args.len()) { Ok(command) } else { Err(CommandError::Arity(command.name.into())) }
}

fn resolve_subcommand(
    command: &'static Command,
    name: &[u8],
    args: &[&[u8]],
) -> Result<&'static Command, CommandError> {
    let found = command.subcommands.iter().find(|row| name.eq_ignore_ascii_case(row.name.as_bytes()));
    match found {
        Some(row) if row.takes(args.len()) => Ok(row),
        Some(row) => Err(CommandError::Arity(row.full_name().into())),
        None => Err(CommandError::Text(
            format!(
                "ERR unknown subcommand '{}'. Try {} HELP.",
                String::from_utf8_lossy(&name[..name.len().min(128)]),
                command.name.to_ascii_uppercase()
            )
            .into(),
        )),
    }
}

/// The text for a name that is not in the table: Redis's, which names the first arguments, and below it what may have
/// been meant.
fn unknown_command(args: &[&[u8]]) -> CommandError {
    let show = |arg: &[u8]| String::from_utf8_lossy(&arg[..arg.len().min(128)]).into_owned();
    let name = args.first().map(|arg| show(arg)).unwrap_or_default();
    let mut beginning = String::new();
    for arg in args.iter().skip(1) {
        if beginning.len() >= 128 {
            break;
        }
        beginning.extend(["'", &show(arg), "' "]);
    }
    let mut text = format!("ERR unknown command '{name}', with args beginning with: {beginning}");
    let close = nearest(&name);
    if !close.is_empty() {
        text.extend(["(did you mean ", &close.join(" or "), "?)"]);
    }
    CommandError::Text(text.into())
}

/// Answers a container's HELP: one line of usage and one of summary for each subcommand.
pub fn reply_help(reply: &mut crate::reply::Reply, name: &str, subcommands: &[Command]) {
    reply.array(1 + subcommands.len() * 2);
    reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for row in subcommands {
        let usage = format!("{} {}", row.name.to_ascii_uppercase(), row.syntax);
        reply.simple(usage.trim_end());
        reply.simple(&format!("    {}", row.summary));
    }
}

/// Names of commands that differ from `name` by a slip or two.
pub fn nearest(name: &str) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let allowed = if name.len() <= 4 { 1 } else { 2 };
    let mut close: Vec<(usize, &str)> = all()
        .map(|row| (strsim::osa_distance(&name, row.name), row.name))
        .filter(|&(distance, _)| distance <= allowed)
        .collect();
    close.sort_unstable();
    close.into_iter().take(3).map(|(_, name)| name.to_ascii_uppercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_and_names_are_unique() {
        let mut ids = HashSet::new();
        let mut names = HashSet::new();
        for row in all() {
            assert!(names.insert(row.name), "two rows named {}", row.name);
            for row in std::iter::once(row).chain(row.subcommands) {
                assert!(ids.insert(row.id), "two rows with id {}: {}", row.id, row.name);
            }
        }
    }

    #[test]
    fn every_row_is_documented() {
        for row in all().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            assert!(!row.since.is_empty() && !row.complexity.is_empty(), "{}", row.name);
            assert!(row.summary.ends_with('.'), "{}: {}", row.name, row.summary);
            assert_eq!(row.name, row.name.to_ascii_lowercase());
        }
    }

    /// A record holds the number of the row and all arguments but the first: see `Engine::log_effects`.
    #[test]
    fn no_subcommand_changes_keys() {
        for row in all().flat_map(|row| row.subcommands) {
            let changes = row.is(flags::WRITE) && matches!(row.run, Run::Keys(_));
            assert!(!changes, "{}", row.full_name());
        }
    }

    #[test]
    fn a_subcommand_is_named_with_its_container() {
        for row in all().filter(|row| !row.subcommands.is_empty()) {
            for subcommand in row.subcommands {
                assert_eq!(subcommand.full_name(), format!("{}|{}", row.name, subcommand.name));
            }
            assert_eq!(row.full_name(), row.name);
        }
    }

    #[test]
    fn keys_are_found_where_the_specification_says() {
        let args: Vec<&[u8]> = b"c a 2 b d e".split(|&byte| byte == b' ').collect();
        let keys = |spec: KeySpec| spec.keys(&args).map(|key| key[0] as char).collect::<String>();
        assert_eq!(keys(KeySpec::ONE), "a");
        assert_eq!(keys(KeySpec::REST), "a2bde");
        assert_eq!(keys(KeySpec::PAIRS), "abe");
        assert_eq!(keys(KeySpec::Counted { at: 2 }), "bd");
        assert_eq!(keys(KeySpec::OneAndCounted { at: 2 }), "abd");
        assert_eq!(keys(KeySpec::None), "");
        let args: Vec<&[u8]> =
            b"sort a by store get store store x limit store 1 STORE y".split(|&byte| byte == b' ').collect();
        assert_eq!(KeySpec::OneAndAny.keys(&args).collect::<Vec<_>>(), [b"a", b"y"]);
        assert_eq!(KeySpec::OneAndAny.positions(&args[..4]), [1]);
        assert!(
            !KeySpec::OneAndAny.concerns_all(&args)
                && KeySpec::OneAndAny.concerns_all(&[b"sort", b"a", b"*"])
        );
    }

    #[test]
    fn names_are_found_in_any_case_and_nothing_else_is() {
        assert!(all().count() * 4 <= NAME_SLOTS, "the table of names must stay sparse");
        for row in all() {
            let id = |name: &[u8]| find(name).map(|row| row.id);
            let mixed: Vec<u8> =
                row.name.bytes().map(|byte| if byte % 2 == 0 { byte ^ 0x20 } else { byte }).collect();
            assert_eq!(id(row.name.as_bytes()), Some(row.id));
            assert_eq!(id(row.name.to_ascii_uppercase().as_bytes()), Some(row.id));
            if row.name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                assert_eq!(id(&mixed), Some(row.id));
            }
            assert_eq!(id(format!("{}\0", row.name).as_bytes()), None);
        }
        assert!(find(b"").is_none() && find(&[0xff; 1000]).is_none());
        // Equal in the bits that the hash looks at, and still another word.
        assert!(find(b"GET").is_some() && find(b"gE").is_none());
    }

    #[test]
    fn a_slip_is_answered_with_what_was_meant() {
        let error = resolve(&[b"GTE", b"x"]).expect_err("no such command").to_string();
        assert_eq!(error, "ERR unknown command 'GTE', with args beginning with: 'x' (did you mean GET?)");
    }
}

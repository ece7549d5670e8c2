//! Tables of rows, by name and by id.

use super::missing;
use super::row::Command;
use super::rows::{logged_rows, rows};
use super::similar::similar;
use crate::error::CommandError;
use std::iter;
use std::sync::LazyLock;

/// Slots of the table of names: a power of two, several times the number of rows.
const NAME_SLOTS: usize = 2048;

/// A command table: rows by name and by id.
pub struct CommandTable {
    /// In the order of their chapters.
    rows: Vec<&'static Command>,
    /// By name, with open addressing. So sparse that most names are in their first slot.
    by_name: Box<[Option<&'static Command>; NAME_SLOTS]>,
    /// By id, with subcommands.
    by_id: Vec<Option<&'static Command>>,
}

/// The rows of the engine's own commands.
static ENGINE: LazyLock<CommandTable> = LazyLock::new(|| CommandTable::new(rows()));

/// Rows by their id in the log: those of the engine, and those that only the log has.
static LOGGED: LazyLock<Vec<Option<&'static Command>>> = LazyLock::new(|| {
    by_id_of(rows().flat_map(|row| iter::once(row).chain(row.subcommands)).chain(logged_rows()))
});

/// Names of the containers of subcommands, by the subcommand's id.
static CONTAINERS: LazyLock<Vec<Option<&'static str>>> = LazyLock::new(|| {
    let mut names = Vec::new();
    for (row, container) in rows().flat_map(|row| row.subcommands.iter().map(move |sub| (sub, row.name))) {
        let id = usize::from(row.id);
        names.resize(names.len().max(id + 1), None);
        names[id] = Some(container);
    }
    names
});

fn by_id_of(rows: impl Iterator<Item = &'static Command>) -> Vec<Option<&'static Command>> {
    let mut by_id = Vec::new();
    for row in rows {
        let id = usize::from(row.id);
        by_id.resize(by_id.len().max(id + 1), None);
        if let Some(other) = by_id[id].replace(row) {
            panic!("the commands {} and {} have the id {id}", other.name, row.name);
        }
    }
    by_id
}

impl CommandTable {
    /// Creates a table of rows, in the order of their chapters. O(rows).
    ///
    /// # Panics
    /// Two rows have the same name or id, or the rows are too many for the table of names.
    pub fn new(rows: impl Iterator<Item = &'static Command>) -> Self {
        let rows: Vec<&'static Command> = rows.collect();
        assert!(rows.len() * 4 <= NAME_SLOTS, "{} commands are too many for {NAME_SLOTS} slots", rows.len());
        let mut by_name = Box::new([None; NAME_SLOTS]);
        for row in &rows {
            let mut slot = first_slot(row.name.as_bytes());
            while let Some(other) = by_name[slot] {
                let other: &Command = other;
                assert!(other.name != row.name, "two commands have the name {}", row.name);
                slot = (slot + 1) % NAME_SLOTS;
            }
            by_name[slot] = Some(*row);
        }
        let by_id = by_id_of(rows.iter().flat_map(|row| iter::once(*row).chain(row.subcommands)));
        Self { rows, by_name, by_id }
    }

    /// Returns all rows, in the order of their chapters.
    pub fn all(&self) -> impl Iterator<Item = &'static Command> {
        self.rows.iter().copied()
    }

    /// Returns the row of a command by its name, ignoring case. For a container, the container's
    /// row: see [`CommandTable::resolve`]. O(1).
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&'static Command> {
        let mut slot = first_slot(name);
        while let Some(row) = self.by_name[slot] {
            if is_same_name(name, row.name.as_bytes()) {
                return Some(row);
            }
            slot = (slot + 1) % NAME_SLOTS;
        }
        None
    }

    /// Returns the row of a command or subcommand by its id. O(1).
    #[inline]
    pub fn by_id(&self, id: u16) -> Option<&'static Command> {
        self.by_id.get(usize::from(id)).copied().flatten()
    }

    /// Returns the row that executes these arguments: the command's, or its subcommand's.
    ///
    /// # Errors
    /// There is no such command, or the number of arguments does not fit.
    #[inline]
    pub fn resolve(&self, args: &[&[u8]]) -> Result<&'static Command, CommandError> {
        let name = args.first().copied().unwrap_or_default();
        let command = self.find(name).ok_or_else(|| self.unknown_command(args))?;
        if let (false, Some(name)) = (command.subcommands.is_empty(), args.get(1)) {
            return self.resolve_subcommand(command, name, args);
        }
        if command.takes(args.len()) { Ok(command) } else { Err(CommandError::Arity(command.name.into())) }
    }

    fn resolve_subcommand(
        &self,
        command: &'static Command,
        name: &[u8],
        args: &[&[u8]],
    ) -> Result<&'static Command, CommandError> {
        let found = command.subcommands.iter().find(|row| name.eq_ignore_ascii_case(row.name.as_bytes()));
        match found {
            Some(row) if row.takes(args.len()) => Ok(row),
            Some(row) => Err(CommandError::Arity(self.full_name(row).into())),
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

    /// Returns the error for an unknown name: Redis's text with the first arguments, then what is
    /// missing, or similar names.
    #[cold]
    fn unknown_command(&self, args: &[&[u8]]) -> CommandError {
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
        let close = self.nearest(&name);
        if let Some(family) = missing::family_of(&name) {
            text.extend(["(", family, " not supported yet: see docs/compatibility.md)"]);
        } else if !close.is_empty() {
            text.extend(["(did you mean ", &close.join(" or "), "?)"]);
        }
        CommandError::Text(text.into())
    }

    /// Returns the names of at most three commands that are similar to `name`. O(rows).
    pub fn nearest(&self, name: &str) -> Vec<String> {
        let names = self.all().map(|row| row.name);
        similar(&name.to_ascii_lowercase(), names).into_iter().map(str::to_ascii_uppercase).collect()
    }

    /// Returns a row's full name, for a subcommand with its container: `object|encoding`. O(rows).
    pub fn full_name(&self, row: &Command) -> String {
        // Compare ids: a build may place constant rows several times, at different addresses.
        let parent = self.all().find(|parent| parent.subcommands.iter().any(|other| other.id == row.id));
        match parent {
            Some(parent) => format!("{}|{}", parent.name, row.name),
            None => row.name.to_owned(),
        }
    }
}

/// Returns all rows of the engine, in the order of their chapters.
pub fn all() -> impl Iterator<Item = &'static Command> {
    ENGINE.all()
}

/// Returns the row of a command of the engine: see [`CommandTable::find`].
#[inline]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    ENGINE.find(name)
}

/// Returns the row that executes these arguments: see [`CommandTable::resolve`].
///
/// # Errors
/// The engine has no such command, or the number of arguments does not fit.
#[inline]
pub fn resolve(args: &[&[u8]]) -> Result<&'static Command, CommandError> {
    ENGINE.resolve(args)
}

/// Returns the row of a command by its id in the log.
#[inline]
pub fn by_id(id: u16) -> Option<&'static Command> {
    LOGGED.get(usize::from(id)).copied().flatten()
}

/// Does the same as [`find`] for an exact name, including rows that only the log has.
pub(crate) fn find_logged(name: &'static str) -> Option<&'static Command> {
    find(name.as_bytes()).or_else(|| logged_rows().find(|row| row.name == name))
}

/// Returns whether two names are equal, ignoring case. Compares eight bytes at a time, where
/// [`<[u8]>::eq_ignore_ascii_case`] compares one.
#[inline]
fn is_same_name(name: &[u8], other: &[u8]) -> bool {
    if name.len() != other.len() {
        return false;
    }
    let is_same = |(one, other): (&[u8; 8], &[u8; 8])| {
        is_same_word(u64::from_le_bytes(*one), u64::from_le_bytes(*other))
    };
    match name.last_chunk().zip(other.last_chunk()) {
        // The last eight may overlap the chunks before.
        Some(ends) => name.as_chunks().0.iter().zip(other.as_chunks().0).chain([ends]).all(is_same),
        None => name.eq_ignore_ascii_case(other),
    }
}

/// Returns whether two words of eight bytes are equal, ignoring case.
#[inline]
fn is_same_word(word: u64, other: u64) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    // No sum of two bytes below 0x80 reaches the next byte.
    let lower = (word | (0x20 * EACH)) & !HIGH;
    let from_a = lower + u64::from(0x80 - b'a') * EACH;
    let beyond_z = lower + u64::from(0x80 - b'z' - 1) * EACH;
    let letters = from_a & !beyond_z & !word & HIGH;
    // The bit that distinguishes a letter's cases.
    (word ^ other) & !(letters >> 2) == 0
}

/// Returns the first slot of a name: a multiplicative hash of its first and last eight bytes, in
/// lower case, and its length.
#[inline]
fn first_slot(name: &[u8]) -> usize {
    let mut head = folded(name);
    if let Some(tail) = name.last_chunk::<8>().filter(|_| name.len() > 8) {
        // Names of one family begin alike.
        head ^= folded(tail).rotate_left(29);
    }
    let mixed = (head ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - NAME_SLOTS.ilog2())) as usize
}

/// Returns the first eight bytes as a number, equal for both cases of a letter. Other bytes may
/// collide.
#[inline]
fn folded(bytes: &[u8]) -> u64 {
    let mut folded = [0; 8];
    for (into, byte) in folded.iter_mut().zip(bytes) {
        *into = byte | 0x20;
    }
    u64::from_le_bytes(folded)
}

impl Command {
    /// Returns the name with which a call of the command begins: for a subcommand, that of its container.
    pub fn called(&self) -> &'static str {
        CONTAINERS.get(usize::from(self.id)).copied().flatten().unwrap_or(self.name)
    }

    /// Returns the full name of a row of the engine: see [`CommandTable::full_name`].
    pub(crate) fn full_name(&self) -> String {
        ENGINE.full_name(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Run, flags};
    use crate::persist::level;
    use crate::watch::watchable;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::ops::RangeInclusive;

    #[test]
    fn ids_and_names_are_unique() {
        let mut ids = HashSet::new();
        let mut names = HashSet::new();
        for row in all().chain(logged_rows()) {
            assert!(names.insert(row.name), "two rows named {}", row.name);
            for row in std::iter::once(row).chain(row.subcommands) {
                assert!(ids.insert(row.id), "two rows with id {}: {}", row.id, row.name);
            }
        }
    }

    /// Commands that the first builds had: they apply the records of these. Nothing is added: a new command
    /// states a level that no released build knows, unless it is logged as older ones.
    const OF_FIRST_LEVEL: [RangeInclusive<u16>; 21] = [
        1..=22,
        60..=66,
        100..=118,
        120..=124,
        140..=146,
        150..=151,
        200..=221,
        250..=265,
        300..=316,
        350..=384,
        // Logged as commands on keys and sorted sets.
        390..=390,
        394..=394,
        396..=396,
        399..=399,
        400..=411,
        450..=461,
        466..=466,
        500..=518,
        520..=521,
        550..=571,
        600..=604,
    ];

    #[test]
    fn every_command_that_the_log_has_states_its_level() {
        let is_logged = |row: &&Command| {
            let changes = row.is(flags::WRITE) && matches!(row.run, Run::Keys(_));
            changes || watchable(row).is_some()
        };
        let rows = all().flat_map(|row| std::iter::once(row).chain(row.subcommands)).chain(logged_rows());
        for row in rows.filter(is_logged) {
            let is_first = OF_FIRST_LEVEL.iter().any(|range| range.contains(&row.id));
            let (name, id, level) = (row.name, row.id, row.level);
            assert!((level::FIRST..=level::NEWEST).contains(&level), "{name} has level {level}");
            assert_eq!(
                level == level::FIRST,
                is_first,
                "{name} ({id}) has level {level}: see Command::at_level"
            );
        }
    }

    proptest! {
        #[test]
        fn names_are_the_same_but_for_the_case_of_letters(
            name in prop::collection::vec(any::<u8>(), 0..20),
            flips in prop::collection::vec(prop_oneof![3 => Just(0x20_u8), 1 => any::<u8>()], 20),
            which in any::<u32>(),
        ) {
            let other: Vec<u8> = name
                .iter()
                .zip(flips)
                .enumerate()
                .map(|(at, (byte, flip))| if which >> at & 1 == 1 { byte ^ flip } else { *byte })
                .collect();
            prop_assert_eq!(is_same_name(&name, &other), name.eq_ignore_ascii_case(&other));
            prop_assert!(is_same_name(&name, &name.to_ascii_uppercase()));
        }
    }

    #[test]
    fn any_two_bytes_are_compared_as_one_by_one() {
        for (one, other) in (0..=u8::MAX).flat_map(|one| (0..=u8::MAX).map(move |other| (one, other))) {
            let is_same =
                is_same_name(&[b"a name\x00", &[one][..]].concat(), &[b"A name\x00", &[other][..]].concat());
            assert_eq!(is_same, one.eq_ignore_ascii_case(&other), "{one} and {other}");
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

    /// A record holds the row's id and all arguments but the first: see `Engine::log_effects`. So the name of
    /// a subcommand is an argument in it.
    #[test]
    fn a_subcommand_is_called_by_its_container() {
        for row in all() {
            assert_eq!(row.called(), row.name);
            assert!(row.subcommands.iter().all(|sub| sub.called() == row.name), "{}", row.name);
        }
    }

    #[test]
    fn a_blocking_command_states_how_clients_are_served() {
        for row in all().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            let waits = row.is(flags::BLOCKING) && matches!(row.run, Run::Keys(_));
            assert_eq!(row.serve.is_some(), waits, "{}", row.full_name());
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
        // Equal in the bits that the hash uses, but a different word.
        assert!(find(b"GET").is_some() && find(b"gE").is_none());
    }

    #[test]
    fn a_slip_is_answered_with_what_was_meant() {
        let error = resolve(&[b"GTE", b"x"]).expect_err("no such command").to_string();
        assert_eq!(error, "ERR unknown command 'GTE', with args beginning with: 'x' (did you mean GET?)");
    }

    #[test]
    fn what_redis_has_and_is_missing_is_said() {
        let error = resolve(&[b"ACL", b"s"]).expect_err("no such command").to_string();
        let expected = "ERR unknown command 'ACL', with args beginning with: 's' \
                        (users with rights are not supported yet: see docs/compatibility.md)";
        assert_eq!(error, expected);
    }
}

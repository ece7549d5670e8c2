//! The keys that the answers of a watched read depend on: those that it names, and those that
//! commands in the log made them from.
//!
//! Keys are identified by name, in any database, so that `MOVE`, `COPY` to another database and
//! `SWAPDB` stay within a scope. Names are identified by hash, so that long names take no more
//! memory. A collision only makes a scope larger than necessary.

use crate::command::{self, Command, KeySpec, WriteReach};
use crate::keyspace::{Keyspace, hash};
use crate::persist::added_points::AddedPoints;
use crate::persist::apply_error::ApplyError;
use crate::persist::change::{Change, Changes};
use crate::persist::record::kind;
use crate::watch::reach::Reach;
use crate::watch::read::Read;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use tidemark_log::Record;

/// A set of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    /// Keys with names of these hashes.
    Names(HashSet<u64>),
}

/// Relation of a record to a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::watch) enum Concern {
    /// It changes no key in the scope.
    Nothing,
    /// Its changes of keys in the scope depend only on keys in the scope.
    Within,
    /// It changes keys in the scope depending on others.
    Beyond,
}

/// Dependencies that a command creates between its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    /// None: it treats each key alike.
    None,
    /// Each key that it writes depends on all. The flags say whether it writes the first key and
    /// the others.
    Writes { first: bool, others: bool },
}

/// By command id.
static CONNECTIONS: LazyLock<Vec<Connection>> = LazyLock::new(|| {
    let rows: Vec<_> = command::all().flat_map(|row| std::iter::once(row).chain(row.subcommands)).collect();
    let len = rows.iter().map(|row| usize::from(row.id) + 1).max().unwrap_or(0);
    let mut connections = vec![Connection::Writes { first: true, others: true }; len];
    for row in rows {
        connections[usize::from(row.id)] = Connection::of_row(row);
    }
    connections
});

impl Connection {
    fn of_row(row: &Command) -> Self {
        if row.reach == WriteReach::EachKey {
            return Self::None;
        }
        let uses = row.key_uses;
        // A key that is not declared read-only counts as written.
        let writes = |key_use: Option<&&str>| key_use.is_none_or(|key_use| !key_use.starts_with("RO"));
        Self::Writes { first: writes(uses.first()), others: writes(uses.last()) }
    }

    fn of(command: &Command) -> Self {
        let unknown = Self::Writes { first: true, others: true };
        CONNECTIONS.get(usize::from(command.id)).copied().unwrap_or(unknown)
    }
}

/// The hashes of a command's keys, and which of them it writes.
struct Touched {
    keys: SmallVec<[u64; 4]>,
    first_is_written: bool,
    others_are_written: bool,
    /// Whether it reads keys that it does not name.
    reads_any: bool,
}

impl Touched {
    fn of(command: &Command, args: &[&[u8]], first: bool, others: bool) -> Self {
        let keys = command.keys.keys(args).map(hash).collect();
        let reads_any = command.keys.concerns_all(args);
        Self { keys, first_is_written: first, others_are_written: others, reads_any }
    }

    fn written(&self) -> impl Iterator<Item = u64> {
        self.keys.iter().enumerate().filter_map(|(at, key)| {
            let is_written = if at == 0 { self.first_is_written } else { self.others_are_written };
            is_written.then_some(*key)
        })
    }
}

impl Scope {
    /// Returns the keys that a read names.
    pub(in crate::watch) fn of(read: &Read, keyspace: &Keyspace) -> Self {
        if read.reach(keyspace) == Reach::All {
            return Self::Everything;
        }
        Self::Names(read.keys().into_iter().map(hash).collect())
    }

    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        match self {
            Self::Everything => true,
            Self::Names(names) => names.contains(&hash(key)),
        }
    }

    /// Returns the keys of this name, in any database.
    pub(in crate::watch) fn named(key: &[u8]) -> Self {
        Self::Names(HashSet::from([hash(key)]))
    }

    /// Returns the relation of a change record to the scope. O(its arguments).
    pub(in crate::watch) fn concern(&self, record: &Record<'_>) -> Result<Concern, ApplyError> {
        if *self == Self::Everything {
            return Ok(Concern::Within);
        }
        let mut concern = Concern::Nothing;
        for_each_command(record, |_, command, args| concern = concern.max(self.concern_of(command, args)))?;
        if record.kind == kind::EXPIRY {
            // Expired keys out of scope are absent, so their removal does nothing.
            concern = Concern::Within;
        }
        Ok(concern)
    }

    fn concern_of(&self, command: &Command, args: &[&[u8]]) -> Concern {
        let Self::Names(names) = self else { return Concern::Within };
        if concerns_all_alike(command) {
            return Concern::Within;
        }
        let Connection::Writes { first, others } = Connection::of(command) else {
            let concerns = command.keys.keys(args).any(|key| self.contains(key));
            return if concerns { Concern::Within } else { Concern::Nothing };
        };
        let touched = Touched::of(command, args, first, others);
        if !touched.written().any(|key| names.contains(&key)) {
            Concern::Nothing
        } else if !touched.reads_any && touched.keys.iter().all(|key| names.contains(key)) {
            Concern::Within
        } else {
            Concern::Beyond
        }
    }

    /// Reduces `args` to the keys in the scope, if the command treats each key alike. Returns
    /// whether to run the command.
    pub(crate) fn narrow(&self, command: &Command, args: &mut Vec<&[u8]>) -> bool {
        if *self == Self::Everything {
            return true;
        }
        let KeySpec::Range { first, last: -1, step } = command.keys else {
            return self.concern_of(command, args) != Concern::Nothing;
        };
        if Connection::of(command) != Connection::None {
            return self.concern_of(command, args) != Concern::Nothing;
        }
        let (first, step) = (first as usize, step as usize);
        let mut at = first;
        let options = if step > 2 { (args.len() - first) % step } else { 0 };
        while at + options < args.len() {
            if self.contains(args[at]) {
                at += step;
            } else {
                args.drain(at..args.len().min(at + step));
            }
        }
        args.len() > first + options
    }
}

/// Returns whether a command affects all keys of a database independently of their values: it
/// empties or swaps the database.
fn concerns_all_alike(command: &Command) -> bool {
    matches!(command.reach, WriteReach::Database | WriteReach::Databases)
}

/// Visits the commands of a record, each with its database.
pub(in crate::watch) fn for_each_command(
    record: &Record<'_>,
    mut visit: impl FnMut(u8, &'static Command, &[&[u8]]),
) -> Result<(), ApplyError> {
    for change in Changes::of(record).into_iter().flatten() {
        match change.map_err(|error| error.in_record(record.lsn))? {
            Change::Command { command, db, args } => visit(db, command, &args),
            Change::Points(points) => {
                let command = AddedPoints::command();
                visit(points.db(), command, &[command.name.as_bytes(), points.key()]);
            }
            Change::Expired { .. } | Change::Acknowledged { .. } => {}
        }
    }
    Ok(())
}

/// Dependencies between names, in a part of the log.
#[derive(Debug)]
pub(in crate::watch) struct Dependencies {
    /// From a written name to one that it depends on.
    edges: HashSet<(u64, u64)>,
    /// Written names that depend on keys that the command does not name.
    of_any: HashSet<u64>,
    /// Most edges. Beyond it, everything depends on everything.
    most: usize,
}

/// Approximate bytes of an edge.
const EDGE_BYTES: usize = 48;

impl Dependencies {
    /// Creates an empty set limited to `bytes`.
    pub(in crate::watch) fn new(bytes: usize) -> Self {
        Self { edges: HashSet::new(), of_any: HashSet::new(), most: (bytes / EDGE_BYTES).max(1) }
    }

    /// Adds the dependencies of a record.
    pub(in crate::watch) fn note(&mut self, record: &Record<'_>) -> Result<(), ApplyError> {
        for_each_command(record, |_, command, args| self.note_command(command, args))
    }

    fn note_command(&mut self, command: &Command, args: &[&[u8]]) {
        if self.is_full() || concerns_all_alike(command) {
            return;
        }
        let Connection::Writes { first, others } = Connection::of(command) else { return };
        let touched = Touched::of(command, args, first, others);
        let Some(hub) = touched.written().next() else { return };
        if touched.reads_any {
            self.of_any.extend(touched.written());
        }
        // Every written key depends on all keys. The edges go through the first written key, to
        // keep their number linear.
        for written in touched.written().filter(|written| *written != hub) {
            self.edges.insert((written, hub));
        }
        for key in touched.keys.iter().filter(|key| **key != hub) {
            self.edges.insert((hub, *key));
        }
    }

    /// Adds a link between the values of two keys: each may be changed with the other, or read for it.
    pub(in crate::watch) fn note_link(&mut self, one: &[u8], other: &[u8]) {
        if !self.is_full() {
            let (one, other) = (hash(one), hash(other));
            self.edges.extend([(one, other), (other, one)]);
        }
    }

    fn is_full(&self) -> bool {
        self.edges.len() + self.of_any.len() > self.most
    }

    /// Returns a scope with all that it depends on.
    pub(in crate::watch) fn close(&self, scope: &Scope) -> Scope {
        let Scope::Names(names) = scope else { return Scope::Everything };
        if self.is_full() {
            return Scope::Everything;
        }
        let mut from: HashMap<u64, Vec<u64>> = HashMap::new();
        for (written, needed) in &self.edges {
            from.entry(*written).or_default().push(*needed);
        }
        let (mut closed, mut unseen) = (names.clone(), names.iter().copied().collect::<Vec<_>>());
        while let Some(name) = unseen.pop() {
            if self.of_any.contains(&name) {
                return Scope::Everything;
            }
            let needed = from.get(&name).into_iter().flatten();
            unseen.extend(needed.filter(|needed| closed.insert(**needed)));
        }
        Scope::Names(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(line: &str) -> (&'static Command, Vec<&[u8]>) {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        (command::resolve(&args).expect("a command"), args)
    }

    fn scope(names: &[&str]) -> Scope {
        Scope::Names(names.iter().map(|name| hash(name.as_bytes())).collect())
    }

    fn concern(names: &[&str], line: &str) -> Concern {
        let (command, args) = call(line);
        scope(names).concern_of(command, &args)
    }

    #[test]
    fn a_command_concerns_what_it_writes_and_needs_what_it_reads() {
        for (line, expected) in [
            ("SET a 1", Concern::Within),
            ("SET x 1", Concern::Nothing),
            ("MSET x 1 a 2", Concern::Within),
            ("DEL x y", Concern::Nothing),
            ("MSETNX x 1 a 2", Concern::Beyond),
            ("RENAME a x", Concern::Beyond),
            ("RENAME a b", Concern::Within),
            ("COPY a x", Concern::Nothing),
            ("COPY x a", Concern::Beyond),
            ("MOVE a 3", Concern::Within),
            ("SUNIONSTORE a b", Concern::Within),
            ("SUNIONSTORE x a b", Concern::Nothing),
            ("ZUNIONSTORE a 2 b x", Concern::Beyond),
            ("LMOVE x a LEFT LEFT", Concern::Beyond),
            ("SORT x STORE a", Concern::Beyond),
            ("SORT a STORE b", Concern::Within),
            ("SORT a BY w* STORE b", Concern::Beyond),
            ("SORT a BY w* STORE x", Concern::Nothing),
            ("FLUSHALL", Concern::Within),
            ("SWAPDB 0 1", Concern::Within),
        ] {
            assert_eq!(concern(&["a", "b"], line), expected, "{line}");
        }
        let (command, args) = call("SORT a BY w* STORE b");
        assert_eq!(Scope::Everything.concern_of(command, &args), Concern::Within);
    }

    #[test]
    fn what_is_done_to_each_key_alone_is_done_to_those_that_matter() {
        let narrowed = |line: &str| {
            let (command, mut args) = call(line);
            let is_run = scope(&["a", "b"]).narrow(command, &mut args);
            is_run.then(|| args.iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>().join(" "))
        };
        for (line, expected) in [
            ("MSET x 1 a 2 y 3 b 4", Some("MSET a 2 b 4")),
            ("TS.MADD x 1 2 a 3 4 y 5 6 b 7 8", Some("TS.MADD a 3 4 b 7 8")),
            ("TS.MADD x 1 2 a 3 4 y 5 6 CREATE", Some("TS.MADD a 3 4 CREATE")),
            ("TS.MADD x 1 2 y 5 6 CREATE", None),
            ("DEL a x b", Some("DEL a b")),
            ("UNLINK x y", None),
            ("MSETNX a 1 b 2", Some("MSETNX a 1 b 2")),
            ("SET x 1", None),
            ("SADD a x y", Some("SADD a x y")),
            ("BITOP OR a a b", Some("BITOP OR a a b")),
        ] {
            assert_eq!(narrowed(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_scope_is_closed_over_what_its_keys_are_made_of() {
        let closed = |lines: &[&str], bytes: usize| {
            let mut dependencies = Dependencies::new(bytes);
            for line in lines {
                let (command, args) = call(line);
                dependencies.note_command(command, &args);
            }
            dependencies.close(&scope(&["a"]))
        };
        let lines =
            ["RENAME b a", "SUNIONSTORE b c d", "SUNIONSTORE x a", "MSET a 1 y 2", "COPY e d", "FLUSHALL"];
        assert_eq!(closed(&lines, 1 << 20), scope(&["a", "b", "c", "d", "e"]));
        assert_eq!(closed(&["SORT l BY w* STORE x"], 1 << 20), scope(&["a"]));
        assert_eq!(closed(&["RENAME x a", "SORT l BY w* STORE x"], 1 << 20), Scope::Everything);
        // Beyond the limit, everything may depend on everything.
        assert_eq!(closed(&lines, EDGE_BYTES), Scope::Everything);
    }
}

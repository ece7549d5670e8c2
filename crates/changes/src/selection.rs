//! Which changes a follower gets.

use tidemark_engine::AddedPoints;
use tidemark_engine::change::Change;
use tidemark_engine::command::parse;
use tidemark_engine::keyspace::DATABASES;
use tidemark_engine::value::Type;

/// Most prefixes of one selection: each change is compared with all of them.
const PREFIXES_MAX: usize = 256;
/// Most bytes of all prefixes of a selection together.
const PREFIX_BYTES_MAX: usize = 64 * 1024;

/// Why a selection is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotSelected {
    /// There is no such type.
    #[error("the type must be {}", type_names())]
    Type,
    /// There is no such database.
    #[error("the database must be a number from 0 to {max}", max = DATABASES - 1)]
    Database,
    /// There are too many prefixes.
    #[error("at most {PREFIXES_MAX} prefixes can be given")]
    Prefixes,
    /// The prefixes are too long together.
    #[error("all prefixes together can be at most {PREFIX_BYTES_MAX} bytes")]
    PrefixBytes,
}

/// Returns all type names, as in "string, list or hash".
fn type_names() -> String {
    let mut names: Vec<&str> = Type::of_clients().map(Type::name).collect();
    let last = names.pop().unwrap_or_default();
    format!("{} or {last}", names.join(", "))
}

/// A selection of changes: those that match all three criteria. An empty criterion matches
/// everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    prefixes: Vec<Box<[u8]>>,
    types: Vec<Type>,
    /// One bit for each database.
    databases: u64,
}

const _: () = assert!(DATABASES <= u64::BITS as usize, "each database has its bit");

impl Selection {
    /// Selects keys that start with `prefix`.
    pub fn add_prefix(&mut self, prefix: &[u8]) -> Result<(), NotSelected> {
        if self.prefixes.len() >= PREFIXES_MAX {
            return Err(NotSelected::Prefixes);
        }
        if self.prefixes.iter().map(|known| known.len()).sum::<usize>() + prefix.len() > PREFIX_BYTES_MAX {
            return Err(NotSelected::PrefixBytes);
        }
        self.prefixes.push(prefix.into());
        Ok(())
    }

    /// Selects commands on a type; commands on keys of any type always match.
    pub fn add_type(&mut self, name: &[u8]) -> Result<(), NotSelected> {
        let known = Type::of_clients().find(|known| parse::is(name, known.name()));
        let wanted = known.ok_or(NotSelected::Type)?;
        if !self.types.contains(&wanted) {
            self.types.push(wanted);
        }
        Ok(())
    }

    /// Selects a database.
    pub fn add_database(&mut self, number: &[u8]) -> Result<(), NotSelected> {
        let number = parse::canonical_integer(number).and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|&number| number < DATABASES).ok_or(NotSelected::Database)?;
        self.databases |= 1 << number;
        Ok(())
    }

    /// Returns whether everything is selected.
    pub fn is_everything(&self) -> bool {
        *self == Selection::default()
    }

    /// Returns the selected part of a change: a command as a whole or not at all, of expired keys
    /// the matching ones.
    pub fn select<'a>(&self, mut change: Change<'a>) -> Option<Change<'a>> {
        if !self.takes_database(&change) || !self.takes_type(&change) {
            return None;
        }
        if self.prefixes.is_empty() {
            return Some(change);
        }
        if let Change::Expired { keys, .. } = &mut change {
            keys.retain(|key| self.takes_key(key));
        }
        change.touches(|key| self.takes_key(key)).then_some(change)
    }

    fn takes_database(&self, change: &Change<'_>) -> bool {
        self.databases == 0 || self.databases & (1 << change.db()) != 0 || change.reaches_other_databases()
    }

    fn takes_type(&self, change: &Change<'_>) -> bool {
        let about = match change {
            Change::Command { command, .. } => command.group.value_type(),
            Change::Points(_) => AddedPoints::command().group.value_type(),
            Change::Expired { .. } | Change::Acknowledged { .. } => None,
        };
        self.types.is_empty() || about.is_none_or(|about| self.types.contains(&about))
    }

    fn takes_key(&self, key: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| key.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_engine::command::find;

    fn selection(line: &str) -> Selection {
        let mut selection = Selection::default();
        for word in line.split_whitespace() {
            match word.split_once('=').expect("criterion=value") {
                ("prefix", prefix) => selection.add_prefix(prefix.as_bytes()),
                ("type", name) => selection.add_type(name.as_bytes()),
                (_, number) => selection.add_database(number.as_bytes()),
            }
            .expect("it can be selected");
        }
        selection
    }

    fn takes(selected: &str, db: u8, line: &str) -> bool {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let change = Change::Command { command: find(args[0]).expect("a command"), db, args };
        selection(selected).select(change).is_some()
    }

    #[test]
    fn without_a_criterion_everything_is_wanted() {
        assert!(selection("").is_everything() && takes("", 9, "SET k v"));
        assert!(!selection("db=0").is_everything());
    }

    #[test]
    fn each_criterion_must_fit_and_one_of_its_values() {
        assert!(takes("prefix=a prefix=b", 0, "SET b1 v"));
        assert!(!takes("prefix=a prefix=b", 0, "SET c v"));
        assert!(takes("type=hash type=zset", 0, "ZADD z 1 a") && !takes("type=hash", 0, "ZADD z 1 a"));
        assert!(takes("db=3", 3, "SET k v") && !takes("db=3 db=4", 5, "SET k v"));
        assert!(!takes("prefix=k type=list db=0", 0, "SET k v"));
        assert!(takes("prefix=k type=list db=0", 0, "LPUSH k v"));
    }

    #[test]
    fn what_may_concern_a_wanted_key_is_wanted() {
        assert!(takes("type=list", 0, "DEL k"), "a key of any type");
        assert!(takes("type=string", 0, "SETBIT k 1 1"));
        assert!(takes("prefix=a", 0, "FLUSHDB") && !takes("db=1", 0, "FLUSHDB"));
        assert!(takes("db=1", 0, "SWAPDB 1 2") && takes("db=1", 0, "MOVE k 1"));
    }

    #[test]
    fn what_a_rule_writes_is_in_the_changes_of_its_source() {
        assert!(
            takes("prefix=source", 0, "TS.DEL source 1 2") && !takes("prefix=dest", 0, "TS.DEL source 1 2")
        );
        for line in ["TS.CREATERULE source dest AGGREGATION avg 10", "TS.DELETERULE source dest"] {
            assert!(takes("prefix=source", 0, line) && takes("prefix=dest", 0, line), "{line}");
        }
        assert!(takes("type=TSDB-TYPE", 0, "TS.DEL source 1 2"));
    }

    #[test]
    fn expired_keys_that_match_are_selected() {
        let change = Change::Expired { db: 0, keys: vec![b"a1", b"b1", b"a2"] };
        let selected = selection("prefix=a type=list").select(change.clone());
        let Some(Change::Expired { keys, .. }) = selected else { panic!("some of them fit") };
        assert_eq!(keys, [b"a1", b"a2"]);
        assert!(selection("prefix=c").select(change).is_none());
    }

    #[test]
    fn what_does_not_exist_cannot_be_selected() {
        let mut selection = Selection::default();
        assert_eq!(selection.add_type(b"streams"), Err(NotSelected::Type));
        assert_eq!(
            NotSelected::Type.to_string(),
            "the type must be string, list, hash, set, zset, counter, limit, pool, TSDB-TYPE, lens or stream"
        );
        for number in ["16", "-1", "x", ""] {
            assert_eq!(selection.add_database(number.as_bytes()), Err(NotSelected::Database), "{number}");
        }
        for _ in 0..PREFIXES_MAX {
            assert_eq!(selection.add_prefix(b"p"), Ok(()));
        }
        assert_eq!(selection.add_prefix(b"p"), Err(NotSelected::Prefixes));
    }
}

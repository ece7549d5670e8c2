//! How commands use their keys, in the terms of Redis's key specifications. `COMMAND INFO` and
//! `COMMAND GETKEYSANDFLAGS` report it to clients and proxies.
//!
//! The first word is `RO` (reads), `RW` (reads and writes), `OW` (overwrites) or `RM` (removes the
//! key). Where applicable it is followed by `access` (the value is returned) and by the change of
//! the value: `update`, `insert` or `delete`.

use super::Command;

/// Returns how a command uses its first key and, if different, all others, for given arguments.
/// [`Command::key_uses`] has the strongest use that its options allow.
pub fn key_uses_of(command: &Command, args: &[&[u8]]) -> &'static [&'static str] {
    command.key_uses_of.map_or(command.key_uses, |of| of(args))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{KeySpec, all, find};

    #[test]
    fn every_command_with_keys_says_what_it_does_with_them() {
        for row in all().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            let has_keys = !matches!(row.keys, KeySpec::None | KeySpec::All | KeySpec::Each);
            assert_eq!(has_keys, !row.key_uses.is_empty(), "{}", row.full_name());
        }
    }

    #[test]
    fn options_decide_what_is_done_with_a_key() {
        let uses = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            key_uses_of(find(args[0]).expect("a command"), &args).join(", ")
        };
        assert_eq!(uses("SET a get"), "OW update");
        assert_eq!(uses("SET a b get"), "RW access update");
        assert_eq!(uses("BITFIELD a GET u8 0"), "RO access");
        assert_eq!(uses("BITFIELD a GET u8 0 incrby u8 0 1"), "RW access update");
        assert_eq!(uses("LMOVE a b LEFT LEFT"), "RW access delete, RW insert");
    }
}

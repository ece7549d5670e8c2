//! Rows `x.watch` for every read `x` that can be watched, derived from the read's row.

use super::ConnectionCommand;
use std::sync::LazyLock;
use tidemark_engine::command::{self, flags};
use tidemark_engine::watch::watchable;
use tidemark_engine::{Command, Run};

/// Suffix of a watched read's name.
const SUFFIX: &str = ".watch";

/// Difference between the ids of these rows and those of their reads.
const ID_OFFSET: u16 = 2000;

/// The rows. Names and summaries are leaked once, so they are static as in other rows.
pub(super) static COMMANDS: LazyLock<Vec<Command>> =
    LazyLock::new(|| command::all().filter(|row| watchable(row).is_some()).map(watching).collect());

fn watching(read: &'static Command) -> Command {
    let name = format!("{}{SUFFIX}", read.name).leak();
    let upper = read.name.to_ascii_uppercase();
    let syntax = format!("{} [| option ...]", read.syntax).leak();
    let summary = format!("Replies like {upper}, and sends the new answer whenever it changes.").leak();
    let movable = read.flags & flags::MOVABLE_KEYS;
    // Options may follow the read's arguments.
    let arity = -read.arity.abs();
    let flags = flags::READONLY | flags::NOSCRIPT | flags::NO_MULTI | flags::WHILE_SUBSCRIBED | movable;
    let run = Run::Outside(ConnectionCommand::WatchRead as u16);
    Command::new(read.group, read.id + ID_OFFSET, name, arity, flags, read.keys, run)
        .using(read.key_uses)
        .doc("tidemark 0.1.0", read.complexity, syntax.trim_start(), summary)
}

/// Returns the name of the read that a row watches.
pub fn read_of(row: &Command) -> &str {
    row.name.strip_suffix(SUFFIX).unwrap_or(row.name)
}

/// Returns whether a row is that of a watched read.
pub fn is_watching(row: &Command) -> bool {
    super::connection_command_of(row) == Some(ConnectionCommand::WatchRead)
}

#[cfg(test)]
mod tests {
    use crate::command::rows::command_table;

    #[test]
    fn whatever_only_reads_keys_can_be_watched() {
        for name in
            ["get", "mget", "hgetall", "lrange", "smembers", "zrange", "zrank", "scan", "dbsize", "lcs"]
        {
            let watching = command_table().find(format!("{name}.WATCH").as_bytes()).expect(name);
            let read = command_table().find(name.as_bytes()).expect("it exists");
            assert!(
                watching.arity <= -read.arity.abs()
                    && watching.keys.positions(&[b"", b"a", b"b"]) == read.keys.positions(&[b"", b"a", b"b"])
            );
        }
        for name in ["set", "randomkey", "ttl", "object", "ping", "publish"] {
            assert!(command_table().find(format!("{name}.watch").as_bytes()).is_none(), "{name}");
        }
        assert!(command_table().all().filter(|row| row.name.ends_with(super::SUFFIX)).count() > 50);
    }
}

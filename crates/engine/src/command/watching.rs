//! Rows `x.watch` for every read `x` that can be watched, derived from the read's row.

use super::rows::rows;
use super::{Command, ConnectionCommand, Run, flags};
use crate::watch::watchable;
use std::sync::LazyLock;

/// Suffix of a watched read's name.
pub const SUFFIX: &str = ".watch";

/// Difference between the ids of these rows and those of their reads.
const ID_OFFSET: u16 = 2000;

/// The rows. Names and summaries are leaked once, so they are static as in other rows.
pub(super) static COMMANDS: LazyLock<Vec<Command>> =
    LazyLock::new(|| rows().filter(|row| watchable(row).is_some()).map(watching).collect());

fn watching(read: &'static Command) -> Command {
    let name = format!("{}{SUFFIX}", read.name).leak();
    let upper = read.name.to_ascii_uppercase();
    let syntax = format!("{} [| option ...]", read.syntax).leak();
    let summary = format!("Replies like {upper}, and sends the new answer whenever it changes.").leak();
    let movable = read.flags & flags::MOVABLE_KEYS;
    // Options may follow the read's arguments.
    let arity = -read.arity.abs();
    let flags = flags::READONLY | flags::NOSCRIPT | flags::NO_MULTI | movable;
    let run = Run::Connection(ConnectionCommand::WatchRead);
    Command::new(read.group, read.id + ID_OFFSET, name, arity, flags, read.keys, run)
        .using(read.key_uses)
        .doc("tidemark 0.1.0", read.complexity, syntax.trim_start(), summary)
}

/// Returns the name of the read that a row watches.
pub fn read_of(row: &Command) -> &str {
    row.name.strip_suffix(SUFFIX).unwrap_or(row.name)
}

#[cfg(test)]
mod tests {
    use crate::command::{all, find};

    #[test]
    fn whatever_only_reads_keys_can_be_watched() {
        for name in
            ["get", "mget", "hgetall", "lrange", "smembers", "zrange", "zrank", "scan", "dbsize", "lcs"]
        {
            let watching = find(format!("{name}.WATCH").as_bytes()).expect(name);
            let read = find(name.as_bytes()).expect("it exists");
            assert!(
                watching.arity <= -read.arity.abs()
                    && watching.keys.positions(&[b"", b"a", b"b"]) == read.keys.positions(&[b"", b"a", b"b"])
            );
        }
        for name in ["set", "randomkey", "ttl", "object", "ping", "publish"] {
            assert!(find(format!("{name}.watch").as_bytes()).is_none(), "{name}");
        }
        assert!(all().filter(|row| row.name.ends_with(super::SUFFIX)).count() > 50);
    }
}

//! Which commands can be watched, and how.

use crate::command::{Command, Run, flags};

/// How a read is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watchable {
    /// The answer as the command returns it.
    Ordered,
    /// The answer has hash-table order; its elements are sorted, in groups of `0`.
    Unordered(usize),
    /// The command iterates over a collection with a cursor. The whole collection is watched, its
    /// elements sorted in groups of `0`.
    Iterated(usize),
}

/// Returns how a command can be watched; `None` if it cannot. A watchable command only reads keys,
/// and equal states have equal answers.
pub fn watchable(command: &Command) -> Option<Watchable> {
    if !command.is(flags::READONLY) || !matches!(command.run, Run::Keys(_)) {
        return None;
    }
    match command.name {
        // Counters and pools are listed for watching by `SCAN 0 TYPE counter` and
        // `SCAN 0 TYPE pool`. The next four commands answer at random. TTL, PTTL, LIMIT.PEEK and
        // LIMIT.PEEKALL answer a remaining time or number of units, which changes without a record;
        // EXPIRETIME, PEXPIRETIME and LIMIT.STATE can be watched instead. The others answer
        // encodings and access times, which the log does not have.
        "counter.list" | "pool.list" | "randomkey" | "srandmember" | "hrandfield" | "zrandmember" | "ttl"
        | "pttl" | "limit.peek" | "limit.peekall" | "encoding" | "freq" | "idletime" | "refcount" => None,
        "smembers" | "sunion" | "sinter" | "sdiff" | "hkeys" | "hvals" | "keys" => {
            Some(Watchable::Unordered(1))
        }
        "hgetall" => Some(Watchable::Unordered(2)),
        "scan" | "sscan" => Some(Watchable::Iterated(1)),
        "hscan" | "zscan" => Some(Watchable::Iterated(2)),
        _ => Some(Watchable::Ordered),
    }
}

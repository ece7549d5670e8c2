//! Which commands can be watched, and how.

use crate::command::{Command, Run, flags};

/// How a read is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watchable {
    /// As it answers.
    Ordered,
    /// Its answer has the order of a hash table; it is brought into the order of its elements, taken `0` at a time.
    Unordered(usize),
    /// It answers a part of a long list at a time, and where to go on. The whole is watched, in the order of its elements,
    /// taken `0` at a time.
    Iterated(usize),
}

/// Whether and how a command can be watched: it only reads keys, and equal states have equal answers.
pub fn watchable(command: &Command) -> Option<Watchable> {
    if !command.is(flags::READONLY) || !matches!(command.run, Run::Keys(_)) {
        return None;
    }
    match command.name {
        // The first four answer at random. The next answer how much time or how many units are left, which changes by itself:
        // EXPIRETIME and PEXPIRETIME answer until when; so do LIMIT.PEEK and LIMIT.PEEKALL, where LIMIT.STATE does not. The others answer how a
        // value is kept, or when it was last read, which the log does not say. Which keys are counters or pools `SCAN 0 TYPE
        // counter` and `SCAN 0 TYPE pool` answer, and can be watched.
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

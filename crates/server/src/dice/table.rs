//! The commands of the protocol, with how each is run and the body of its answer.

use super::body::{Body, Shape};

/// How a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// Like Redis's command of that name.
    Plain,
    /// With the announcements that wait for authentication.
    Auth,
    /// With integer scores.
    Zadd,
    /// With ranks counted from 1.
    Zrange,
    /// With the score.
    Zrank,
    /// With ranks as they were before the removal.
    Zpop {
        from_end: bool,
    },
    Hello,
    Handshake,
    /// A watched read: the row of the same name without [`WATCH_SUFFIX`].
    Watch,
    Unwatch,
    EmitReconnect,
    EmitAck,
}

/// A command of the protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) plan: Plan,
    pub(super) body: Body,
}

/// Suffix of a read's name when it is watched.
pub(super) const WATCH_SUFFIX: &str = ".WATCH";

/// Longest name, in bytes.
const LONGEST_NAME: usize = 16;

const fn row(name: &'static str, field: u32, shape: Shape) -> Row {
    Row { name, plan: Plan::Plain, body: Body { field, shape } }
}

const fn planned(name: &'static str, field: u32, shape: Shape, plan: Plan) -> Row {
    Row { name, plan, body: Body { field, shape } }
}

/// All commands, sorted by name.
static ROWS: [Row; 44] = [
    // DiceDB has no such command; it serves servers with a password.
    planned("AUTH", 0, Shape::None, Plan::Auth),
    row("DECR", 24, Shape::Number),
    row("DECRBY", 26, Shape::Number),
    row("DEL", 18, Shape::Number),
    row("ECHO", 13, Shape::Text),
    planned("EMITACK", 0, Shape::None, Plan::EmitAck),
    planned("EMITRECONNECT", 0, Shape::None, Plan::EmitReconnect),
    row("EXISTS", 15, Shape::Number),
    row("EXPIRE", 28, Shape::Truth),
    row("EXPIREAT", 29, Shape::Truth),
    row("EXPIRETIME", 30, Shape::Number),
    row("FLUSHDB", 27, Shape::Empty),
    row("GET", 16, Shape::Text),
    planned("GET.WATCH", 16, Shape::Text, Plan::Watch),
    row("GETDEL", 20, Shape::Text),
    row("GETEX", 21, Shape::Text),
    row("GETSET", 22, Shape::Text),
    planned("HANDSHAKE", 14, Shape::Empty, Plan::Handshake),
    planned("HELLO", 0, Shape::None, Plan::Hello),
    row("HGET", 34, Shape::Text),
    planned("HGET.WATCH", 34, Shape::Text, Plan::Watch),
    row("HGETALL", 36, Shape::Pairs),
    planned("HGETALL.WATCH", 36, Shape::Pairs, Plan::Watch),
    row("HSET", 35, Shape::Number),
    row("INCR", 23, Shape::Number),
    row("INCRBY", 25, Shape::Number),
    row("KEYS", 19, Shape::Texts),
    row("PING", 12, Shape::Pong),
    row("SET", 17, Shape::Empty),
    row("TTL", 31, Shape::Number),
    row("TYPE", 11, Shape::Text),
    planned("UNWATCH", 33, Shape::Empty, Plan::Unwatch),
    planned("ZADD", 39, Shape::Number, Plan::Zadd),
    row("ZCARD", 46, Shape::Number),
    planned("ZCARD.WATCH", 46, Shape::Number, Plan::Watch),
    row("ZCOUNT", 40, Shape::Number),
    planned("ZCOUNT.WATCH", 40, Shape::Number, Plan::Watch),
    planned("ZPOPMAX", 42, Shape::Elements, Plan::Zpop { from_end: true }),
    planned("ZPOPMIN", 44, Shape::Elements, Plan::Zpop { from_end: false }),
    planned("ZRANGE", 41, Shape::Elements, Plan::Zrange),
    planned("ZRANGE.WATCH", 41, Shape::Elements, Plan::Watch),
    planned("ZRANK", 45, Shape::Element, Plan::Zrank),
    planned("ZRANK.WATCH", 45, Shape::Element, Plan::Watch),
    row("ZREM", 43, Shape::Number),
];

/// Finds a command by name, ignoring case.
pub(super) fn find(name: &[u8]) -> Option<&'static Row> {
    let mut upper = [0; LONGEST_NAME];
    let upper = upper.get_mut(..name.len())?;
    upper.copy_from_slice(name);
    upper.make_ascii_uppercase();
    let index = ROWS.binary_search_by(|row| row.name.as_bytes().cmp(upper)).ok()?;
    ROWS.get(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_found_in_any_case() {
        assert!(ROWS.is_sorted_by_key(|row| row.name));
        for row in &ROWS {
            assert!(row.name.len() <= LONGEST_NAME, "{}", row.name);
            for name in [row.name.to_owned(), row.name.to_lowercase()] {
                assert_eq!(find(name.as_bytes()).map(|found| found.name), Some(row.name));
            }
        }
        for name in ["", "G", "GETT", "MGET", "A LONGER NAME THAN ANY OF OURS"] {
            assert!(find(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn bodies_have_fields_of_their_own() {
        let has_own = |row: &&Row| row.body.shape != Shape::None && row.plan != Plan::Watch;
        let bodies: Vec<&Row> = ROWS.iter().filter(has_own).collect();
        let fields: BTreeSet<u32> = bodies.iter().map(|row| row.body.field).collect();
        assert_eq!(fields.len(), bodies.len());
        assert!(fields.iter().all(|field| (11..=50).contains(field)));
    }

    #[test]
    fn a_watched_read_is_answered_as_the_read() {
        let subscription: Vec<&Row> = ROWS.iter().filter(|row| row.plan == Plan::Watch).collect();
        assert_eq!(subscription.len(), 7);
        for row in subscription {
            let read = row.name.strip_suffix(WATCH_SUFFIX).and_then(|name| find(name.as_bytes()));
            assert_eq!(read.map(|read| read.body), Some(row.body), "{}", row.name);
        }
        // DiceDB's commands, and AUTH.
        assert_eq!(ROWS.len(), 43 + 1);
    }
}

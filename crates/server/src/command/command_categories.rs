//! Access categories and tips that `COMMAND` reports, as in Redis 7.0. What flags and groups do not
//! imply is listed here; a test compares both with Redis.

use tidemark_engine::command::{Group, flags};
use tidemark_engine::{Command, Run};

/// Categories implied by a flag.
const OF_FLAGS: [(u32, &str); 6] = [
    (flags::WRITE, "@write"),
    (flags::READONLY, "@read"),
    (flags::ADMIN, "@admin"),
    (flags::ADMIN, "@dangerous"),
    (flags::BLOCKING, "@blocking"),
    (flags::PUBSUB, "@pubsub"),
];

/// The categories of a command.
pub(super) fn categories(row: &Command) -> Vec<&'static str> {
    // A container and its help do nothing themselves.
    let is_container = matches!(row.run, Run::Container);
    let mut categories = Vec::new();
    if !is_container && row.name != "help" {
        let of_flags = OF_FLAGS.iter().filter(|(flag, _)| row.is(*flag));
        categories.extend(of_flags.map(|(_, category)| *category));
    }
    categories.push(if row.is(flags::FAST) { "@fast" } else { "@slow" });
    if !is_container {
        categories.extend(of_group(row.group));
    }
    let name = row.full_name();
    match name.as_str() {
        "dbsize" => categories.push("@keyspace"),
        "flushall" | "flushdb" | "swapdb" => categories.extend(["@keyspace", "@dangerous"]),
        "function|flush" => categories.push("@write"),
        "info" | "keys" => categories.push("@dangerous"),
        "debug" | "lastsave" => categories.extend(["@admin", "@dangerous"]),
        "sort" | "sort_ro" => {
            categories.retain(|category| *category != "@keyspace");
            categories.extend(["@set", "@sortedset", "@list", "@dangerous"]);
        }
        "wait" | "waitaof" => {
            categories.retain(|category| *category != "@blocking");
            categories.push("@connection");
        }
        _ if name == "command" || name.starts_with("command|") => categories.push("@connection"),
        _ => {}
    }
    categories
}

fn of_group(group: Group) -> Option<&'static str> {
    Some(match group {
        Group::String => "@string",
        Group::Bitmap => "@bitmap",
        Group::Generic => "@keyspace",
        Group::List => "@list",
        Group::Hash => "@hash",
        Group::Set => "@set",
        Group::SortedSet => "@sortedset",
        Group::Counter => "@counter",
        Group::Scripting => "@scripting",
        Group::Transactions => "@transaction",
        Group::Connection => "@connection",
        Group::Limit | Group::Pool | Group::PubSub | Group::Server => return None,
    })
}

/// The tips of a command.
pub(super) fn tips(row: &Command) -> &'static [&'static str] {
    match row.full_name().as_str() {
        "client|info" | "client|list" | "hrandfield" | "hscan" | "lastsave" | "object|encoding"
        | "object|freq" | "object|idletime" | "object|refcount" | "pttl" | "spop" | "srandmember"
        | "sscan" | "time" | "ttl" | "zrandmember" | "zscan" => &["nondeterministic_output"],
        "command" | "command|docs" | "command|info" | "command|list" | "hgetall" | "hkeys" | "hvals"
        | "sdiff" | "sinter" | "smembers" | "sunion" => &["nondeterministic_output_order"],
        "config|set" => &["request_policy:all_nodes", "response_policy:all_succeeded"],
        "dbsize" => &["request_policy:all_shards", "response_policy:agg_sum"],
        "del" | "exists" | "touch" | "unlink" => &["request_policy:multi_shard", "response_policy:agg_sum"],
        "flushall" | "flushdb" | "function|flush" | "ping" => {
            &["request_policy:all_shards", "response_policy:all_succeeded"]
        }
        "info" => &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        "keys" => &["request_policy:all_shards", "nondeterministic_output_order"],
        "mget" => &["request_policy:multi_shard"],
        "mset" => &["request_policy:multi_shard", "response_policy:all_succeeded"],
        "msetnx" => &["request_policy:multi_shard", "response_policy:agg_min"],
        "randomkey" => &["request_policy:all_shards", "nondeterministic_output"],
        "scan" => &["nondeterministic_output", "request_policy:special"],
        "wait" => &["request_policy:all_shards", "response_policy:agg_min"],
        _ => &[],
    }
}

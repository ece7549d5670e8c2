//! How commands use their keys, in the terms of Redis's key specifications. `COMMAND INFO` and
//! `COMMAND GETKEYSANDFLAGS` report it to clients and proxies.
//!
//! The first word is `RO` (reads), `RW` (reads and writes), `OW` (overwrites) or `RM` (removes the
//! key). Where applicable it is followed by `access` (the value is returned) and by the change of
//! the value: `update`, `insert` or `delete`.

use super::{Command, parse, watching};

/// Use of the first key and, if different, of all others, with the commands that have it. For
/// `SORT`: of keys that its arguments do not name, and of the destination.
const USES: &[(&[&str], &str)] = &[
    (&["RO access", "RO access", "OW update"], "sort"),
    (&["RO access", "RO access"], "sort_ro"),
    (&["OW insert"], "msetnx pool.create setnx"),
    (&["OW update"], "mset pool.load psetex setex"),
    (
        &["OW update", "RO access"],
        "bitop sdiffstore sunionstore zdiffstore zinterstore zrangestore zunionstore",
    ),
    (&["RM delete"], "counter.drop del pool.drop unlink"),
    (
        &["RO"],
        "exists hexists hlen hstrlen limit.peek limit.peekall llen object|encoding object|freq object|idletime \
         object|refcount scard sismember strlen touch type watch zcard",
    ),
    (
        &["RO access"],
        "bitcount bitfield_ro bitpos counter.get counter.state expiretime get getbit getrange hget \
         hgetall hkeys hmget hrandfield hscan hvals lcs limit.leases limit.state lindex lpos lrange mget pexpiretime \
         pool.history pool.odds pool.reservations pool.reveal pool.schedule pool.state pool.user \
         pttl sdiff sinter sintercard \
         smembers smismember srandmember sscan substr sunion ttl zcount zdiff zinter zintercard \
         zlexcount zmscore zrandmember zrange zrangebylex zrangebyscore zrank zrevrange \
         zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion",
    ),
    (&["RO access", "OW update"], "copy"),
    (
        &["RW access delete"],
        "blmpop blpop brpop bzmpop bzpopmax bzpopmin getdel lmpop lpop rpop spop zmpop zpopmax \
         zpopmin",
    ),
    (&["RW access delete", "OW insert"], "renamenx"),
    (&["RW access delete", "OW update"], "rename"),
    (&["RW access delete", "RW insert"], "blmove brpoplpush lmove rpoplpush smove"),
    (
        &["RW access update"],
        "bitfield cl.throttle counter.add counter.commit counter.create counter.limit counter.refund counter.settle \
         counter.take decr decrby getex getset hincrby hincrbyfloat incr incrby incrbyfloat limit.check \
         limit.acquire limit.checkall limit.refund limit.renew move pool.cancel pool.confirm pool.draw pool.epoch pool.expire \
         pool.reserve pool.restock pool.return pool.step pool.update set \
         setbit zincrby",
    ),
    (
        &["RW delete"],
        "hdel limit.release limit.reset lrem ltrim srem zrem zremrangebylex zremrangebyrank zremrangebyscore",
    ),
    (&["RW insert"], "append hsetnx linsert lpush lpushx rpush rpushx sadd"),
    (&["RW update"], "expire expireat hmset hset limit.create lset persist pexpire pexpireat setrange zadd"),
    (&["RW update", "RO access"], "sinterstore"),
];

/// Returns how a command uses its first key and, if different, all others. Empty for a command
/// without keys. If options matter, the strongest use is returned.
pub fn key_uses(command: &Command) -> &'static [&'static str] {
    let name = command.full_name();
    let name = name.strip_suffix(watching::SUFFIX).unwrap_or(&name);
    let uses = USES.iter().find(|(_, names)| names.split(' ').any(|other| other == name));
    uses.map_or(&[], |(uses, _)| uses)
}

/// Returns the same as [`key_uses`], for given arguments.
pub fn key_uses_of(command: &Command, args: &[&[u8]]) -> &'static [&'static str] {
    let any = |words: &[&str]| args.iter().skip(2).any(|arg| words.iter().any(|word| parse::is(arg, word)));
    match command.name {
        "set" if !args.iter().skip(3).any(|arg| parse::is(arg, "GET")) => &["OW update"],
        "sort" => &["RO access", "OW update"],
        "bitfield" if !any(&["SET", "INCRBY"]) => &["RO access"],
        _ => key_uses(command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{KeySpec, all, find};

    #[test]
    fn every_command_with_keys_says_what_it_does_with_them() {
        for row in all().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            let has_keys = !matches!(row.keys, KeySpec::None | KeySpec::All | KeySpec::Each);
            assert_eq!(has_keys, !key_uses(row).is_empty(), "{}", row.full_name());
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

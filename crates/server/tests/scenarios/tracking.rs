//! Client-side caching: the server sends invalidations to clients that cache what they read.

use crate::common::{Client, TestServer, eventually};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidemark_log::{Durability, ManualClock};

type Connection = Client<TcpStream>;

const OK: &str = "+OK\r\n";

fn resp3(server: &TestServer) -> Connection {
    let mut client = server.client();
    client.command(&["HELLO", "3"]);
    while client.line() != "*0" {}
    client
}

/// Connects a RESP3 client with tracking on.
fn tracking(server: &TestServer, options: &str) -> Connection {
    let mut client = resp3(server);
    client.ask(format!("CLIENT TRACKING ON {options}").trim_end(), OK);
    client
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn array(texts: &[&str]) -> String {
    format!("*{}\r\n{}", texts.len(), texts.iter().map(|text| bulk(text)).collect::<String>())
}

/// Returns an invalidation as a RESP3 client receives it.
fn stale(keys: &[&str]) -> String {
    format!(">2\r\n{}{}", bulk("invalidate"), array(keys))
}

fn all_stale() -> String {
    format!(">2\r\n{}_\r\n", bulk("invalidate"))
}

/// Returns an invalidation as a RESP2 subscriber receives it.
fn stale_message(keys: &[&str]) -> String {
    format!("*3\r\n{}{}{}", bulk("message"), bulk("__redis__:invalidate"), array(keys))
}

fn id(client: &mut Connection) -> u64 {
    client.command(&["CLIENT", "ID"]);
    client.line().trim_start_matches(':').parse().expect("a number")
}

/// Connects a RESP2 client that receives the invalidations of other clients; returns it with its
/// id.
fn listener(server: &TestServer) -> (Connection, u64) {
    let mut client = server.client();
    let id = id(&mut client);
    client.ask(
        "SUBSCRIBE __redis__:invalidate",
        "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n",
    );
    (client, id)
}

/// Asserts that no message is on its way to a client: it receives the reply to its own command
/// next.
#[track_caller]
fn quiet(client: &mut Connection) {
    client.ask("PING", "+PONG\r\n");
}

fn figure(client: &mut Connection, name: &str) -> String {
    client.command(&["INFO"]);
    let text = client.bulk();
    let found = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")[..]));
    found.unwrap_or_default().to_owned()
}

#[test]
fn a_key_that_was_read_is_invalidated_once() {
    let server = TestServer::new();
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    writer.ask("MSET a 1 b 2", OK);
    reader.ask("GET a", "$1\r\n1\r\n");
    reader.ask("GET b", "$1\r\n2\r\n");
    writer.ask("SET other 1", OK);
    writer.ask("SET a 2", OK);
    reader.expect(stale(&["a"]));
    writer.ask("SET a 3", OK);
    quiet(&mut reader);
    writer.ask("INCR b", ":3\r\n");
    reader.expect(stale(&["b"]));
    reader.ask("GET a", "$1\r\n3\r\n");
    writer.ask("DEL a", ":1\r\n");
    reader.expect(stale(&["a"]));
    quiet(&mut reader);
}

#[test]
fn a_cached_open_bucket_is_invalidated_by_a_point_of_the_source() {
    let server = TestServer::new();
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    for line in ["TS.CREATE a", "TS.CREATE b", "TS.CREATERULE a b AGGREGATION sum 10"] {
        writer.ask(line, OK);
    }
    writer.ask("TS.ADD a 1 1", ":1\r\n");
    reader.ask("TS.GET b LATEST", "*2\r\n:0\r\n,1\r\n");
    writer.ask("TS.ADD a 2 2", ":2\r\n");
    reader.expect(stale(&["b"]));
    reader.ask("TS.GET b LATEST", "*2\r\n:0\r\n,3\r\n");
    writer.ask("TS.ADD a 12 2", ":12\r\n");
    reader.expect(stale(&["b"]));
    quiet(&mut reader);
}

#[test]
fn every_read_is_invalidated_by_every_change() {
    let server = TestServer::new();
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    for (read, change, keys) in [
        ("EXISTS k", "SET k v", "k"),
        ("STRLEN k", "APPEND k w", "k"),
        ("TTL k", "EXPIRE k 1000", "k"),
        ("TYPE k", "PERSIST k", "k"),
        ("GET missing", "RENAME k missing", "missing"),
        ("HGETALL h", "HSET h f v", "h"),
        ("LRANGE l 0 -1", "RPUSH l x", "l"),
        ("LLEN l", "LPOP l", "l"),
        ("SMEMBERS s", "SADD s m", "s"),
        ("ZRANGE z 0 -1", "ZADD z 1 m", "z"),
        ("ZCARD z", "ZPOPMIN z", "z"),
        ("GETBIT bits 7", "SETBIT bits 7 1", "bits"),
        ("SORT_RO s ALPHA", "SPOP s", "s"),
    ] {
        reader.command(&read.split(' ').collect::<Vec<_>>());
        // The reply to `PING` shows that the read has run, whatever its own reply is.
        reader.command(&["PING"]);
        while reader.line() != "+PONG" {}
        writer.command(&change.split(' ').collect::<Vec<_>>());
        writer.line();
        reader.expect(format!(">2\r\n{}{}", bulk("invalidate"), array(&[keys])));
    }
}

#[test]
fn a_command_that_writes_and_one_without_keys_remember_nothing() {
    let server = TestServer::new();
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    writer.ask("SET k 1", OK);
    reader.ask("GETEX k", "$1\r\n1\r\n");
    reader.ask("DBSIZE", ":1\r\n");
    reader.ask("RANDOMKEY", "$1\r\nk\r\n");
    writer.ask("SET k 2", OK);
    quiet(&mut reader);
    assert_eq!(figure(&mut writer, "tracking_total_keys"), "0");
}

#[test]
fn keys_of_a_script_that_only_reads_are_remembered() {
    let server = TestServer::new();
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    let read = |client: &mut Connection, name: &str, script: &str| {
        client.command(&[name, script, "1", "k"]);
        client.expect(":1\r\n");
    };
    for (name, script, is_tracked) in [
        ("EVAL", "redis.call('GET', KEYS[1]) return 1", true),
        ("EVAL_RO", "redis.call('GET', KEYS[1]) return 1", true),
        ("EVAL", "redis.pcall('GET', 'other') return 1", true),
        ("EVAL", "return 1", false),
        ("EVAL_RO", "return 1", false),
        ("EVAL", "redis.call('SET', 'other', redis.call('EXISTS', KEYS[1])) return 1", false),
    ] {
        read(&mut reader, name, script);
        writer.ask("SET k v", OK);
        if is_tracked {
            reader.expect(stale(&["k"]));
        }
        quiet(&mut reader);
    }
    // In a transaction as well.
    reader.ask("MULTI", OK);
    reader.command(&["EVAL", "redis.call('GET', KEYS[1]) return 1", "1", "k"]);
    reader.expect("+QUEUED\r\n");
    reader.ask("EXEC", "*1\r\n:1\r\n");
    writer.ask("SET k v", OK);
    reader.expect(stale(&["k"]));
}

#[test]
fn each_key_of_a_read_is_invalidated_separately() {
    let server = TestServer::new();
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    reader.ask("MGET a b c", "*3\r\n_\r\n_\r\n_\r\n");
    assert_eq!(figure(&mut writer, "tracking_total_keys"), "3");
    writer.ask("MSET c 1 a 1", OK);
    reader.expect(stale(&["c"]));
    reader.expect(stale(&["a"]));
    assert_eq!(figure(&mut writer, "tracking_total_items"), "1");
}

#[test]
fn the_answer_comes_before_what_the_own_change_makes_stale() {
    let server = TestServer::new();
    let mut client = tracking(&server, "");
    client.ask("HSET h f v", ":1\r\n");
    client.command(&["HGET", "h", "f"]);
    client.command(&["HDEL", "h", "f"]);
    client.command(&["PING"]);
    client.expect(format!("$1\r\nv\r\n:1\r\n{}+PONG\r\n", stale(&["h"])));
}

#[test]
fn what_a_transaction_makes_stale_comes_behind_its_answer() {
    let server = TestServer::new();
    let (mut client, mut other) = (tracking(&server, ""), tracking(&server, ""));
    for client in [&mut client, &mut other] {
        client.ask("MGET a b", "*2\r\n_\r\n_\r\n");
    }
    client.ask("MULTI", OK);
    for line in ["INCR a", "INCR a", "INCR b", "GET b"] {
        client.ask(line, "+QUEUED\r\n");
    }
    quiet(&mut other);
    client.ask("EXEC", "*4\r\n:1\r\n:2\r\n:1\r\n$1\r\n1\r\n");
    client.expect(stale(&["a"]) + &stale(&["b"]));
    other.expect(stale(&["a"]) + &stale(&["b"]));
    // The server tracks the keys that the transaction itself has read.
    other.ask("SET b 2", OK);
    client.expect(stale(&["b"]));
    quiet(&mut client);
}

#[test]
fn an_expired_key_is_invalidated_when_it_is_removed() {
    let clock = ManualClock::new();
    let server = TestServer::with_clock(&clock, |_| {});
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    writer.ask("SET k v EX 2", OK);
    reader.ask("GET k", "$1\r\nv\r\n");
    clock.advance(Duration::from_secs(2));
    reader.expect(stale(&["k"]));
    // An invalidation is also sent if a write finds the key expired before the server removes it.
    writer.ask("DEBUG SET-ACTIVE-EXPIRE 0", OK);
    writer.ask("SET k v EX 2", OK);
    reader.ask("GET k", "$1\r\nv\r\n");
    clock.advance(Duration::from_secs(2));
    writer.ask("EXISTS k", ":0\r\n");
    writer.ask("APPEND k w", ":1\r\n");
    reader.expect(stale(&["k"]));
    // The key was read once, so one invalidation covers its removal and the append. Two would be
    // too many.
    quiet(&mut reader);
}

#[test]
fn an_expired_key_is_told_stale_by_whoever_reads_it() {
    let clock = ManualClock::new();
    let server = TestServer::with_clock(&clock, |_| {});
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    writer.ask("DEBUG SET-ACTIVE-EXPIRE 0", OK);
    let set = |writer: &mut Connection, key: &str| writer.ask(&format!("SET {key} v EX 2"), OK);
    set(&mut writer, "k");
    reader.ask("GET k", "$1\r\nv\r\n");
    clock.advance(Duration::from_secs(2));
    assert_eq!(figure(&mut writer, "tracking_total_keys"), "1");
    // The reply comes first. The server tracks the key as read after its removal.
    reader.ask("GET k", &format!("_\r\n{}", stale(&["k"])));
    writer.ask("DBSIZE", ":0\r\n");
    writer.ask("SET k w", OK);
    reader.expect(stale(&["k"]));

    for key in ["a", "b"] {
        set(&mut writer, key);
    }
    reader.ask("MGET a b", "*2\r\n$1\r\nv\r\n$1\r\nv\r\n");
    clock.advance(Duration::from_secs(2));
    writer.ask("MGET a b k", "*3\r\n$-1\r\n$-1\r\n$1\r\nw\r\n");
    reader.expect(format!("{}{}", stale(&["a"]), stale(&["b"])));
    set(&mut writer, "c");
    reader.ask("GET c", "$1\r\nv\r\n");
    clock.advance(Duration::from_secs(2));
    writer.send("MULTI\r\nGET c\r\nEXEC\r\n");
    writer.expect("+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
    reader.expect(stale(&["c"]));
    quiet(&mut reader);
    writer.ask("DBSIZE", ":1\r\n");
}

#[test]
fn what_the_own_blocked_move_makes_stale_comes_behind_its_answer() {
    let server = TestServer::new();
    let (mut mover, mut other) = (tracking(&server, ""), server.client());
    for round in 1..=50 {
        mover.ask("EXISTS to", if round == 1 { ":0\r\n" } else { ":1\r\n" });
        mover.send("BLMOVE from to LEFT RIGHT 0\r\n");
        eventually("the client waits", || figure(&mut other, "blocked_clients") == "1");
        other.ask("RPUSH from v", ":1\r\n");
        mover.expect(format!("$1\r\nv\r\n{}", stale(&["to"])));
    }
}

#[test]
fn a_lowered_limit_forgets_no_more_than_it_must() {
    for (limit, forgotten) in [(1, 249), (10, 240), (100, 150)] {
        let server = TestServer::new();
        let (mut client, mut other) = (tracking(&server, ""), server.client());
        for number in 0..250 {
            client.ask(&format!("EXISTS key:{number}"), ":0\r\n");
        }
        other.ask(&format!("CONFIG SET tracking-table-max-keys {limit}"), OK);
        let mut invalidated = std::collections::BTreeSet::new();
        for _ in 0..forgotten {
            client.expect(format!(">2\r\n{}*1\r\n", bulk("invalidate")));
            invalidated.insert(client.bulk());
        }
        assert_eq!(invalidated.len(), forgotten);
        quiet(&mut client);
        assert_eq!(figure(&mut client, "tracking_total_keys"), limit.to_string());
    }
}

#[test]
fn a_flush_and_a_swap_make_everything_stale() {
    let server = TestServer::new();
    let (mut reader, mut writer) = (tracking(&server, ""), server.client());
    let mut broadcast = tracking(&server, "BCAST PREFIX none");
    for command in ["FLUSHALL", "FLUSHDB", "SWAPDB 0 1"] {
        writer.ask("SET k v", OK);
        reader.command(&["GET", "k"]);
        reader.bulk();
        writer.ask(command, OK);
        reader.expect(all_stale());
        broadcast.expect(all_stale());
        assert_eq!(figure(&mut writer, "tracking_total_keys"), "0");
    }
    reader.ask("FLUSHALL", OK);
    reader.expect(all_stale());
    quiet(&mut reader);
}

#[test]
fn in_resp2_a_redirected_subscriber_is_notified_instead() {
    let server = TestServer::new();
    let (mut listener, listener_id) = listener(&server);
    let (mut reader, mut writer) = (server.client(), server.client());
    reader.ask(&format!("CLIENT TRACKING ON REDIRECT {listener_id}"), OK);
    reader.ask("CLIENT GETREDIR", &format!(":{listener_id}\r\n"));
    reader.ask("MGET a b", "*2\r\n$-1\r\n$-1\r\n");
    writer.ask("SET a 1", OK);
    listener.expect(stale_message(&["a"]));
    writer.ask("FLUSHALL", OK);
    listener.expect(format!("*3\r\n{}{}$-1\r\n", bulk("message"), bulk("__redis__:invalidate")));
    // Several clients may redirect to one client.
    let mut other = resp3(&server);
    other.ask(&format!("CLIENT TRACKING ON REDIRECT {listener_id}"), OK);
    other.ask("GET b", "_\r\n");
    other.ask("SET b 1", OK);
    listener.expect(stale_message(&["b"]));
    quiet(&mut reader);
    quiet(&mut other);
}

#[test]
fn in_resp2_without_a_subscriber_no_client_is_notified() {
    let server = TestServer::new();
    let (mut reader, mut target, mut writer) = (server.client(), server.client(), server.client());
    reader.ask("CLIENT TRACKING ON", OK);
    reader.ask("GET a", "$-1\r\n");
    writer.ask("SET a 1", OK);
    quiet(&mut reader);
    let target_id = id(&mut target);
    reader.ask(&format!("CLIENT TRACKING ON REDIRECT {target_id}"), OK);
    reader.ask("GET a", "$1\r\n1\r\n");
    writer.ask("SET a 2", OK);
    quiet(&mut target);
    // Once the target speaks RESP3, it receives the invalidations for earlier reads.
    reader.ask("MGET a b", "*2\r\n$1\r\n2\r\n$-1\r\n");
    target.command(&["HELLO", "3"]);
    while target.line() != "*0" {}
    writer.ask("SET b 2", OK);
    target.expect(stale(&["b"]));
}

#[test]
fn a_client_whose_redirection_is_gone_is_notified() {
    let server = TestServer::new();
    let (listener, listener_id) = listener(&server);
    let (mut reader, mut writer) = (resp3(&server), server.client());
    reader.ask(&format!("CLIENT TRACKING ON REDIRECT {listener_id}"), OK);
    reader.ask("MGET a b", "*2\r\n_\r\n_\r\n");
    drop(listener);
    eventually("the listener is gone", || {
        writer.command(&["CLIENT", "LIST", "ID", &listener_id.to_string()]);
        writer.bulk().is_empty()
    });
    writer.ask("SET a 1", OK);
    reader.expect(format!(">2\r\n{}:{listener_id}\r\n", bulk("tracking-redir-broken")));
    reader.command(&["CLIENT", "TRACKINGINFO"]);
    reader.expect(format!(
        "%3\r\n{}~2\r\n{}{}{}:{listener_id}\r\n{}*0\r\n",
        bulk("flags"),
        bulk("on"),
        bulk("broken_redirect"),
        bulk("redirect"),
        bulk("prefixes")
    ));
    reader.command(&["CLIENT", "INFO"]);
    let line = reader.bulk();
    assert!(line.contains(" flags=tR ") && line.contains(&format!(" redir={listener_id} ")), "{line}");
    writer.ask("SET b 1", OK);
    reader.expect(format!(">2\r\n{}:{listener_id}\r\n", bulk("tracking-redir-broken")));
    reader.ask("CLIENT TRACKING ON", OK);
    reader.ask("GET a", "$1\r\n1\r\n");
    writer.ask("SET a 2", OK);
    reader.expect(stale(&["a"]));
}

#[test]
fn with_noloop_a_client_is_not_notified_of_its_own_changes() {
    let server = TestServer::new();
    let (mut client, mut other) = (tracking(&server, "NOLOOP"), server.client());
    client.ask("MGET own other", "*2\r\n_\r\n_\r\n");
    client.ask("SET own 1", OK);
    other.ask("SET other 1", OK);
    client.expect(stale(&["other"]));
    client.ask("MULTI", OK);
    client.ask("GET own", "+QUEUED\r\n");
    client.ask("INCR own", "+QUEUED\r\n");
    client.ask("EXEC", "*2\r\n$1\r\n1\r\n:2\r\n");
    quiet(&mut client);
    client.ask("FLUSHALL", OK);
    client.expect(all_stale());
}

#[test]
fn a_client_that_opts_in_tracks_only_selected_reads() {
    let server = TestServer::new();
    let (mut client, mut writer) = (tracking(&server, "OPTIN"), server.client());
    client.ask("GET a", "_\r\n");
    client.ask("CLIENT CACHING YES", OK);
    client.ask("GET b", "_\r\n");
    client.ask("GET c", "_\r\n");
    writer.ask("MSET a 1 b 1 c 1", OK);
    client.expect(stale(&["b"]));
    // `CLIENT CACHING YES` applies to the whole transaction, whether it comes before or within it.
    client.ask("CLIENT CACHING YES", OK);
    for (before, within) in [(true, false), (false, true)] {
        if before {
            client.ask("CLIENT CACHING YES", OK);
        }
        client.ask("MULTI", OK);
        if within {
            client.ask("CLIENT CACHING YES", "+QUEUED\r\n");
        }
        client.ask("GET a", "+QUEUED\r\n");
        client.ask("GET b", "+QUEUED\r\n");
        client.command(&["EXEC"]);
        let answers = if within { "*3\r\n+OK\r\n" } else { "*2\r\n" };
        client.expect(format!("{answers}$1\r\n1\r\n$1\r\n1\r\n"));
        client.ask("GET c", "$1\r\n1\r\n");
        writer.ask("MSET a 1 b 1 c 1", OK);
        client.expect(stale(&["a"]) + &stale(&["b"]));
        quiet(&mut client);
    }
}

#[test]
fn a_client_that_opts_out_does_not_track_excluded_reads() {
    let server = TestServer::new();
    let (mut client, mut writer) = (tracking(&server, "OPTOUT"), server.client());
    client.ask("CLIENT CACHING NO", OK);
    client.ask("GET a", "_\r\n");
    client.ask("GET b", "_\r\n");
    writer.ask("MSET a 1 b 1", OK);
    client.expect(stale(&["b"]));
    quiet(&mut client);
}

#[test]
fn a_client_with_a_prefix_is_notified_of_keys_that_it_has_not_read() {
    let server = TestServer::new();
    let (mut client, mut writer) = (tracking(&server, "BCAST PREFIX foo PREFIX bar"), server.client());
    let mut everything = tracking(&server, "BCAST");
    writer.ask("SET other 1", OK);
    everything.expect(stale(&["other"]));
    writer.ask("SET foo1 1", OK);
    client.expect(stale(&["foo1"]));
    everything.expect(stale(&["foo1"]));
    writer.ask("DEL foo1", ":1\r\n");
    client.expect(stale(&["foo1"]));
    everything.expect(stale(&["foo1"]));
    // For one turn the server sends one message for each prefix, with its keys in order, each once.
    writer.ask("MULTI", OK);
    for line in ["INCR bar2", "INCR bar1", "INCR bar2", "INCR baz"] {
        writer.ask(line, "+QUEUED\r\n");
    }
    writer.ask("EXEC", "*4\r\n:1\r\n:1\r\n:2\r\n:1\r\n");
    client.expect(stale(&["bar1", "bar2"]));
    everything.expect(stale(&["bar1", "bar2", "baz"]));
    client.ask("CLIENT TRACKING OFF", OK);
    writer.ask("SET foo1 1", OK);
    everything.expect(stale(&["foo1"]));
    quiet(&mut client);
    assert_eq!(figure(&mut writer, "tracking_total_prefixes"), "1");
}

#[test]
fn what_is_broadcast_of_the_own_change_comes_behind_the_answer_or_not_at_all() {
    let server = TestServer::new();
    let mut client = tracking(&server, "BCAST");
    client.ask("SET k 1", OK);
    client.expect(stale(&["k"]));
    let (mut without_loop, mut writer) = (tracking(&server, "BCAST NOLOOP"), server.client());
    without_loop.ask("SET own 1", OK);
    client.expect(stale(&["own"]));
    writer.ask("SET other 1", OK);
    without_loop.expect(stale(&["other"]));
    // `NOLOOP` does not suppress invalidations by expiry: it is no client's own change.
    without_loop.ask("SET brief 1 PX 30", OK);
    without_loop.expect(stale(&["brief"]));
    quiet(&mut without_loop);
}

#[test]
fn prefixes_of_one_client_do_not_overlap() {
    let server = TestServer::new();
    let mut client = tracking(&server, "BCAST PREFIX foo");
    let must_not = "Prefixes for a single client must not overlap.";
    for (prefixes, error) in [
        ("PREFIX foobar", "Prefix 'foobar' overlaps with an existing prefix 'foo'."),
        ("PREFIX f", "Prefix 'f' overlaps with an existing prefix 'foo'."),
        ("PREFIX a PREFIX ab", "Prefix 'a' overlaps with another provided prefix 'ab'."),
        ("PREFIX ab PREFIX a", "Prefix 'ab' overlaps with another provided prefix 'a'."),
    ] {
        client.ask(&format!("CLIENT TRACKING ON BCAST {prefixes}"), &format!("-ERR {error} {must_not}\r\n"));
    }
    client.ask("CLIENT TRACKING ON BCAST PREFIX bar", OK);
    client.command(&["CLIENT", "TRACKINGINFO"]);
    client.expect(format!(
        "%3\r\n{}~2\r\n{}{}{}:0\r\n{}{}",
        bulk("flags"),
        bulk("on"),
        bulk("bcast"),
        bulk("redirect"),
        bulk("prefixes"),
        array(&["bar", "foo"])
    ));
    let many: Vec<String> = (0..1100).map(|number| format!("PREFIX p{number:04}")).collect();
    client.command(&format!("CLIENT TRACKING ON BCAST {}", many.join(" ")).split(' ').collect::<Vec<_>>());
    assert!(client.line().starts_with("-ERR a client may ask for 1024 prefixes of 65536 bytes together"));
}

#[test]
fn options_that_do_not_fit_are_refused_in_redis_words() {
    let server = TestServer::new();
    let mut client = server.client();
    let again = "before disabling tracking for this client, and then re-enabling it with a different mode.";
    for (command, answer) in [
        ("CLIENT TRACKING ON REDIRECT 0", "-ERR The client ID you want redirect to does not exist"),
        ("CLIENT TRACKING ON REDIRECT x", "-ERR value is not an integer or out of range"),
        ("CLIENT TRACKING ON REDIRECT", "-ERR syntax error"),
        (
            "CLIENT TRACKING ON REDIRECT 1 REDIRECT 1",
            "-ERR A client can only redirect to a single other client",
        ),
        ("CLIENT TRACKING MAYBE", "-ERR syntax error"),
        ("CLIENT TRACKING ON NONSENSE", "-ERR syntax error"),
        ("CLIENT TRACKING", "-ERR wrong number of arguments for 'client|tracking' command"),
        ("CLIENT TRACKING ON PREFIX foo", "-ERR PREFIX option requires BCAST mode to be enabled"),
        ("CLIENT TRACKING ON BCAST OPTIN", "-ERR OPTIN and OPTOUT are not compatible with BCAST"),
        ("CLIENT TRACKING ON OPTIN OPTOUT", "-ERR You can't specify both OPTIN mode and OPTOUT mode"),
        (
            "CLIENT CACHING YES",
            "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ),
        ("CLIENT GETREDIR", ":-1"),
        ("CLIENT TRACKING ON OPTIN", "+OK"),
        ("CLIENT GETREDIR", ":0"),
        ("CLIENT TRACKING ON OPTOUT", &format!("-ERR You can't switch OPTIN/OPTOUT mode {again}")),
        ("CLIENT TRACKING ON BCAST", &format!("-ERR You can't switch BCAST mode on/off {again}")),
        (
            "CLIENT CACHING NO",
            "-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        ),
        ("CLIENT CACHING MAYBE", "-ERR syntax error"),
        ("CLIENT TRACKING OFF", "+OK"),
        ("CLIENT TRACKING ON OPTOUT", "+OK"),
        (
            "CLIENT CACHING YES",
            "-ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        ),
        ("CLIENT TRACKING OFF", "+OK"),
        ("CLIENT TRACKING ON BCAST", "+OK"),
        ("CLIENT TRACKING ON", &format!("-ERR You can't switch BCAST mode on/off {again}")),
    ] {
        client.command(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(client.line(), answer, "{command}");
    }
}

#[test]
fn what_was_asked_for_is_shown() {
    let server = TestServer::new();
    let mut client = resp3(&server);
    let info = |flags: &[&str], redirect: i64| {
        let flags = array(flags).replacen('*', "~", 1);
        format!("%3\r\n{}{flags}{}:{redirect}\r\n{}*0\r\n", bulk("flags"), bulk("redirect"), bulk("prefixes"))
    };
    client.ask("CLIENT TRACKINGINFO", &info(&["off"], -1));
    for (change, flags) in [
        ("CLIENT TRACKING ON", &["on"][..]),
        ("CLIENT TRACKING ON NOLOOP", &["on", "noloop"]),
        ("CLIENT TRACKING ON OPTIN", &["on", "optin"]),
        ("CLIENT CACHING YES", &["on", "optin", "caching-yes"]),
        ("CLIENT TRACKING OFF", &["off"]),
        ("CLIENT TRACKING ON OPTOUT NOLOOP", &["on", "optout", "noloop"]),
        ("CLIENT CACHING NO", &["on", "optout", "caching-no", "noloop"]),
    ] {
        client.ask(change, OK);
        client.ask("CLIENT TRACKINGINFO", &info(flags, if flags == ["off"] { -1 } else { 0 }));
    }
    client.command(&["CLIENT", "INFO"]);
    let line = client.bulk();
    assert!(line.contains(" flags=t ") && line.contains(" redir=0 "), "{line}");
    client.ask("CLIENT TRACKING OFF", OK);
    client.ask("CLIENT TRACKING ON BCAST", OK);
    client.command(&["CLIENT", "INFO"]);
    assert!(client.bulk().contains(" flags=tB "));
    assert_eq!(figure(&mut client, "tracking_clients"), "1");
    client.ask("RESET", "+RESET\r\n");
    client.command(&["CLIENT", "INFO"]);
    let line = client.bulk();
    assert!(line.contains(" flags=N ") && line.contains(" redir=-1 "), "{line}");
    assert_eq!(figure(&mut client, "tracking_clients"), "0");
    assert_eq!(figure(&mut client, "tracking_total_prefixes"), "0");
}

#[test]
fn after_a_change_of_mode_nothing_comes_that_was_read_before() {
    let server = TestServer::new();
    let (mut client, mut writer) = (tracking(&server, ""), server.client());
    client.ask("GET k", "_\r\n");
    client.ask("CLIENT TRACKING OFF", OK);
    client.ask("CLIENT TRACKING ON BCAST PREFIX foo", OK);
    writer.ask("SET k 1", OK);
    quiet(&mut client);
    // Options that do not change the mode keep the tracked reads.
    let mut client = tracking(&server, "");
    client.ask("GET k", "$1\r\n1\r\n");
    client.ask("CLIENT TRACKING ON NOLOOP", OK);
    writer.ask("SET k 2", OK);
    client.expect(stale(&["k"]));
}

#[test]
fn a_client_that_leaves_is_untracked() {
    let server = TestServer::new();
    let mut observer = server.client();
    let mut client = tracking(&server, "");
    client.ask("MGET a b", "*2\r\n_\r\n_\r\n");
    drop(client);
    eventually("it has left", || figure(&mut observer, "tracking_clients") == "0");
    assert_eq!(figure(&mut observer, "tracking_total_keys"), "0", "with no client left to notify");
    observer.ask("SET a 1", OK);
}

#[test]
fn a_client_without_replies_is_notified_all_the_same() {
    let server = TestServer::new();
    let (mut client, mut writer) = (tracking(&server, ""), server.client());
    client.ask("GET k", "_\r\n");
    client.command(&["CLIENT", "REPLY", "OFF"]);
    client.command(&["SET", "other", "1"]);
    eventually("it has run", || {
        writer.command(&["EXISTS", "other"]);
        writer.line() == ":1"
    });
    writer.ask("SET k 1", OK);
    client.expect(stale(&["k"]));
    client.command(&["GET", "k"]);
    client.command(&["SET", "k", "2"]);
    client.expect(stale(&["k"]));
}

#[test]
fn a_full_table_forgets_a_key_and_says_so() {
    let server = TestServer::new();
    let mut client = tracking(&server, "");
    client.ask("CONFIG SET tracking-table-max-keys 2", OK);
    client.ask("MGET a b", "*2\r\n_\r\n_\r\n");
    client.command(&["GET", "c"]);
    client.expect(format!("_\r\n>2\r\n{}*1\r\n", bulk("invalidate")));
    let first = client.bulk();
    assert!(["a", "b", "c"].contains(&&*first), "{first}");
    assert_eq!(figure(&mut client, "tracking_total_keys"), "2");
    client.ask("CONFIG SET tracking-table-max-keys 1", OK);
    client.expect(format!(">2\r\n{}*1\r\n", bulk("invalidate")));
    let second = client.bulk();
    assert!(["a", "b", "c"].contains(&&*second) && second != first, "{second}");
    assert_eq!(figure(&mut client, "tracking_total_keys"), "1");
    client.ask("CONFIG SET tracking-table-max-keys 0", OK);
    client.ask("MGET a b c d", "*4\r\n_\r\n_\r\n_\r\n_\r\n");
    assert_eq!(figure(&mut client, "tracking_total_keys"), "4", "0 is no limit");
}

#[test]
fn long_names_count_by_their_bytes() {
    let server = TestServer::with(|config| config.tracking_table_max_bytes = 1 << 20);
    let mut client = tracking(&server, "");
    let name = |number: usize| format!("{number}{}", "k".repeat(100_000));
    for number in 0..30 {
        client.command(&["EXISTS", &name(number)]);
        client.expect(":0\r\n");
        if number >= 10 {
            client.expect(format!(">2\r\n{}*1\r\n", bulk("invalidate")));
            client.bulk();
        }
    }
    let keys: usize = figure(&mut client, "tracking_total_keys").parse().expect("a number");
    assert!((8..=10).contains(&keys), "{keys}");
}

#[test]
fn a_client_that_does_not_read_gets_one_invalidation_of_everything() {
    let server = TestServer::new();
    let (mut client, mut writer) = (tracking(&server, "BCAST"), server.client());
    let value = "v".repeat(1 << 20);
    writer.command(&["SET", "large", &value]);
    writer.expect(OK);
    client.expect(stale(&["large"]));
    // Unread replies, which the client has asked for, come before its invalidations.
    for _ in 0..64 {
        client.command(&["GET", "large"]);
    }
    let name = |number: usize| format!("{number:05}{}", "k".repeat(1000));
    for number in 0..3000 {
        writer.command(&["SET", &name(number), ""]);
        writer.expect(OK);
    }
    let mut keys = 0;
    let mut everything = false;
    client.command(&["ECHO", "end"]);
    loop {
        match client.line().as_str() {
            ">2" => {
                client.bulk();
                match client.line().as_str() {
                    "_" => everything = true,
                    count => {
                        let count: usize = count.trim_start_matches('*').parse().expect("a number");
                        (0..count).for_each(|_| drop(client.bulk()));
                        keys += count;
                    }
                }
            }
            "$3" => break,
            header => {
                let length: usize = header.trim_start_matches('$').parse().expect("a length");
                client.bytes(length + 2);
            }
        }
    }
    assert!(everything && keys < 3000, "{keys} keys by name");
}

#[test]
fn under_always_no_client_is_notified_before_the_change_is_durable() {
    let server = TestServer::with(|config| config.durability = Durability::Always);
    let (mut reader, mut writer) = (tracking(&server, ""), tracking(&server, "BCAST"));
    for round in 0..50 {
        reader.command(&["GET", "k"]);
        if round == 0 {
            reader.expect("_\r\n");
        } else {
            reader.bulk();
        }
        writer.ask(&format!("SET k {round}"), OK);
        writer.expect(stale(&["k"]));
        reader.expect(stale(&["k"]));
        let durable: u64 = figure(&mut writer, "log_durable_lsn").parse().expect("a number");
        assert!(durable > round, "notified of record {} while {durable} is durable", round + 1);
    }
}

#[test]
fn no_client_cache_keeps_a_stale_value() {
    const ROUNDS: usize = 3000;
    let server = TestServer::new();
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let mut writer = server.client();
            std::thread::spawn(move || {
                for _ in 0..ROUNDS {
                    writer.command(&["INCR", "k"]);
                    writer.line();
                }
            })
        })
        .collect();
    let mut reader = tracking(&server, "");
    let mut kept: Option<String> = None;
    let invalidated = |reader: &mut Connection, kept: &mut Option<String>| {
        assert_eq!(reader.line(), "$10");
        reader.expect(format!("invalidate\r\n{}", array(&["k"])));
        assert!(kept.take().is_some(), "notified of a key that was not read since");
    };
    while kept.as_deref() != Some(&(2 * ROUNDS).to_string()) {
        if kept.is_some() {
            // A cached value that was not invalidated must be the key's value.
            assert_eq!(reader.line(), ">2");
            invalidated(&mut reader, &mut kept);
        }
        reader.command(&["GET", "k"]);
        match reader.line().as_str() {
            "_" => kept = Some(String::new()),
            length => {
                assert!(length.starts_with('$'), "{length}");
                kept = Some(reader.line());
            }
        }
    }
    writers.into_iter().for_each(|writer| writer.join().expect("it has written"));
    quiet(&mut reader);
}

/// Client that answers from its own cache where it can, like the caches of client libraries.
struct Cache {
    client: Connection,
    kept: BTreeMap<String, Option<String>>,
}

impl Cache {
    /// Reads the one-line reply to a command, and any messages before it.
    fn answer(&mut self) -> Option<String> {
        loop {
            match self.client.line().as_str() {
                ">2" => {
                    assert_eq!(self.client.bulk(), "invalidate");
                    match self.client.line().as_str() {
                        "_" => self.kept.clear(),
                        count => {
                            let count: usize = count.trim_start_matches('*').parse().expect("a number");
                            for _ in 0..count {
                                self.kept.remove(&self.client.bulk());
                            }
                        }
                    }
                }
                "_" => return None,
                line if line.starts_with('$') => return Some(self.client.line()),
                line => return Some(line.to_owned()),
            }
        }
    }

    fn get(&mut self, key: &str) {
        if !self.kept.contains_key(key) {
            self.client.command(&["GET", key]);
            let value = self.answer();
            self.kept.insert(key.to_owned(), value);
        }
    }
}

/// Returns a generator of pseudo-random numbers that are the same in every run.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

fn first_digit(number: u64) -> char {
    number.to_string().chars().next().unwrap_or_default()
}

#[test]
fn what_caches_keep_at_the_end_is_what_the_keys_hold() {
    const KEYS: u64 = 12;
    let server = TestServer::new();
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = ["", "", "BCAST", "BCAST PREFIX key:1 PREFIX key:2 PREFIX key:3", "NOLOOP"]
        .into_iter()
        .zip(1..)
        .map(|(options, seed)| {
            let mut cache = Cache { client: tracking(&server, options), kept: BTreeMap::new() };
            // A client that asked for prefixes caches only keys that begin with them.
            let is_asked_for =
                |key: &u64| !options.contains("PREFIX") || ['1', '2', '3'].contains(&first_digit(*key));
            let keys: Vec<u64> = (0..KEYS).filter(is_asked_for).collect();
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                let mut random = numbers(seed);
                while !is_over.load(Ordering::SeqCst) {
                    let key = keys[random(keys.len() as u64) as usize];
                    cache.get(&format!("key:{key}"));
                    if random(4) == 0 {
                        cache.client.command(&["PING"]);
                        cache.answer();
                    }
                }
                cache
            })
        })
        .collect();
    let writers: Vec<_> = (10..12)
        .map(|seed| {
            let mut writer = server.client();
            std::thread::spawn(move || {
                let mut random = numbers(seed);
                for number in 0..3000 {
                    let (one, other) = (format!("key:{}", random(KEYS)), format!("key:{}", random(KEYS)));
                    let value = number.to_string();
                    match random(40) {
                        0 => writer.command(&["FLUSHALL"]),
                        1 => writer.command(&["SWAPDB", "0", "1"]),
                        2..6 => writer.command(&["DEL", &one]),
                        6..10 => writer.command(&["MSET", &one, &value, &other, &value]),
                        10..14 => writer.command(&["SET", &one, &value, "PX", "1"]),
                        _ => writer.command(&["SET", &one, &value]),
                    }
                    writer.line();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().expect("it has written"));
    is_over.store(true, Ordering::SeqCst);
    let mut observer = Cache { client: resp3(&server), kept: BTreeMap::new() };
    for reader in readers {
        let mut cache = reader.join().expect("it has read");
        eventually("what is kept is what is there", || {
            cache.client.command(&["PING"]);
            cache.answer();
            observer.kept.clear();
            cache.kept.keys().for_each(|key| observer.get(key));
            cache.kept == observer.kept
        });
    }
}

//! The wire protocol: framing, pipelining, errors, and what each connection may do.

use crate::common::{TestServer, frame};
use std::fmt::Write as _;
use std::time::Duration;
use tidemark_log::Durability;
use tidemark_server::config::DebugAccess;

#[test]
fn pipelined_commands_are_answered_in_order() {
    let server = TestServer::new();
    let mut client = server.client();
    let count = 2_000;
    let mut request = Vec::new();
    let mut replies = String::new();
    for number in 1..=count {
        request.extend_from_slice(&frame(&["INCR", "counter"]));
        request.extend_from_slice(&frame(&["ECHO", "x"]));
        write!(replies, ":{number}\r\n$1\r\nx\r\n").expect("memory");
    }
    client.send(request);
    client.expect(replies);
}

#[test]
fn a_command_may_arrive_byte_by_byte() {
    let server = TestServer::new();
    let mut client = server.client();
    for byte in frame(&["SET", "key", "value"]) {
        client.send([byte]);
    }
    client.expect("+OK\r\n");
    client.ask("GET key", "$5\r\nvalue\r\n");
}

#[test]
fn a_value_may_be_larger_than_any_buffer() {
    let server = TestServer::new();
    let mut client = server.client();
    let value = "0123456789abcdef".repeat(1 << 17);
    client.command(&["SET", "big", &value]);
    client.expect("+OK\r\n");
    client.command(&["GET", "big"]);
    client.expect(format!("${}\r\n{value}\r\n", value.len()));
}

#[test]
fn a_person_may_type_commands() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("SET greeting \"hello world\"\r\n\r\n  GET   greeting\nPING\r\n");
    client.expect("+OK\r\n$11\r\nhello world\r\n+PONG\r\n");
}

#[test]
fn what_is_no_request_is_answered_and_ends_the_connection_but_no_other() {
    let server = TestServer::new();
    let mut other = server.client();
    for (request, reply) in [
        ("*1\r\n$x\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        ("*1048577\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        ("*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"),
        ("set \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
    ] {
        let mut client = server.client();
        client.send("PING\r\n");
        client.send(request);
        let answer = client.until_closed();
        assert_eq!(String::from_utf8_lossy(&answer), format!("+PONG\r\n{reply}"));
        other.ask("PING", "+PONG\r\n");
    }
}

#[test]
fn a_wrong_command_is_an_error_and_nothing_more() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("GTE a", "-ERR unknown command 'GTE', with args beginning with: 'a' (did you mean GET?)\r\n");
    client.ask("GET", "-ERR wrong number of arguments for 'get' command\r\n");
    client.ask("CLIENT GARBAGE", "-ERR unknown subcommand 'GARBAGE'. Try CLIENT HELP.\r\n");
    client.ask("PING", "+PONG\r\n");
}

#[test]
fn input_that_ends_is_still_answered() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send(frame(&["SET", "a", "1"]));
    client.send(frame(&["GET", "a"]));
    client.end_input();
    assert_eq!(client.until_closed(), b"+OK\r\n$1\r\n1\r\n");
}

#[test]
fn quit_answers_and_closes() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("QUIT\r\nPING\r\n");
    assert_eq!(client.until_closed(), b"+OK\r\n");
}

#[test]
fn hello_chooses_the_protocol() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("GET missing", "$-1\r\n");
    client.command(&["HELLO", "3", "SETNAME", "me"]);
    client
        .expect("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.4.0\r\n$5\r\nproto\r\n:3\r\n");
    for _ in 0..11 {
        client.line();
    }
    assert_eq!(client.line(), "$7");
    assert_eq!(client.line(), "modules");
    client.expect(
        "*1\r\n%4\r\n$4\r\nname\r\n$10\r\ntimeseries\r\n$3\r\nver\r\n:81000\r\n$4\r\npath\r\n$0\r\n\r\n$4\r\n\
         args\r\n*0\r\n",
    );
    client.ask("GET missing", "_\r\n");
    client.ask("CLIENT GETNAME", "$2\r\nme\r\n");
    client.ask("HELLO 4", "-NOPROTO unsupported protocol version\r\n");
    client.ask("RESET", "+RESET\r\n");
    client.ask("CLIENT GETNAME", "$-1\r\n");
}

#[test]
fn databases_are_separate() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("SET a 0", "+OK\r\n");
    client.ask("SELECT 15", "+OK\r\n");
    client.ask("GET a", "$-1\r\n");
    client.ask("SELECT 16", "-ERR DB index is out of range\r\n");
    client.ask("SELECT x", "-ERR value is not an integer or out of range\r\n");
    client.ask("SELECT 0", "+OK\r\n");
    client.ask("GET a", "$1\r\n0\r\n");
}

#[test]
fn replies_can_be_turned_off() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("CLIENT REPLY SKIP\r\nSET a 1\r\nGET a\r\n");
    client.expect("$1\r\n1\r\n");
    client.send("CLIENT REPLY OFF\r\nSET a 2\r\nNONSENSE\r\nCLIENT REPLY ON\r\nGET a\r\n");
    client.expect("+OK\r\n$1\r\n2\r\n");
}

#[test]
fn clients_are_listed_and_can_be_killed() {
    let server = TestServer::new();
    let (mut one, mut other) = (server.client(), server.client());
    other.ask("CLIENT SETNAME other", "+OK\r\n");
    other.ask("CLIENT SETINFO LIB-NAME test", "+OK\r\n");
    one.command(&["CLIENT", "LIST"]);
    let list = one.bulk();
    assert_eq!(list.lines().count(), 2, "{list}");
    let line = list.lines().find(|line| line.contains("name=other")).expect("the other client");
    assert!(line.contains(&format!("addr={}", other.address())) && line.contains("lib-name=test"), "{line}");
    assert!(line.contains("cmd=client|setinfo"), "{line}");
    one.ask(
        "CLIENT SETNAME two\nlines",
        "-ERR Client names cannot contain spaces, newlines or special characters.\r\n",
    );
    let address = other.address();
    one.command(&["CLIENT", "KILL", "ADDR", &address]);
    one.expect(":1\r\n");
    assert_eq!(other.until_closed(), b"");
    one.command(&["CLIENT", "KILL", &address]);
    one.expect("-ERR No such client\r\n");
}

#[test]
fn commands_describe_themselves() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send(frame(&["COMMAND", "INFO", "get", "nonsense"]));
    client.expect("*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n");
    let mut client = server.client();
    client.send(frame(&["COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"]));
    client.expect("*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    client.ask("COMMAND GETKEYS PING", "-ERR The command has no key arguments\r\n");
    client.ask(
        "COMMAND GETKEYSANDFLAGS LMOVE a b LEFT RIGHT",
        "*2\r\n*2\r\n$1\r\na\r\n*3\r\n+RW\r\n+access\r\n+delete\r\n*2\r\n$1\r\nb\r\n*2\r\n+RW\r\n+insert\r\n",
    );
    client.ask(
        "COMMAND GETKEYSANDFLAGS MSET a 1 b 2",
        "*2\r\n*2\r\n$1\r\na\r\n*2\r\n+OW\r\n+update\r\n*2\r\n$1\r\nb\r\n*2\r\n+OW\r\n+update\r\n",
    );
    client.ask("COMMAND LIST FILTERBY PATTERN config|s*", "*1\r\n$10\r\nconfig|set\r\n");
    client.ask("COMMAND LIST FILTERBY ACLCAT transaction", {
        "*6\r\n$5\r\nmulti\r\n$4\r\nexec\r\n$7\r\ndiscard\r\n$5\r\nwatch\r\n$7\r\nunwatch\r\n$4\r\nonce\r\n"
    });
    client.ask("COMMAND LIST FILTERBY ACLCAT nothing", "*0\r\n");
    client.send(frame(&["COMMAND", "DOCS", "ping"]));
    client.expect("*2\r\n$4\r\nping\r\n*10\r\n$7\r\nsummary\r\n");
}

#[test]
fn settings_can_be_read_and_changed() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("CONFIG SET timeout 7 maxclients 99", "+OK\r\n");
    client.ask(
        "CONFIG GET timeou? maxclients",
        "*4\r\n$10\r\nmaxclients\r\n$2\r\n99\r\n$7\r\ntimeout\r\n$1\r\n7\r\n",
    );
    client.ask(
        "CONFIG SET timeout 8 maxclients x",
        "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - must be a whole number between 1 and \
         1000000\r\n",
    );
    client.ask("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n7\r\n");
    client.ask(
        "CONFIG SET maxclient 5",
        "-ERR Unknown option or number of arguments for CONFIG SET - 'maxclient' (did you mean 'maxclients'?)\r\n",
    );
    client.ask("CONFIG SET appendfsync always", "+OK\r\n");
    client.ask("CONFIG GET durability", "*2\r\n$10\r\ndurability\r\n$6\r\nalways\r\n");
}

#[test]
fn a_setting_without_effect_is_refused_and_shows_what_holds() {
    let server = TestServer::new();
    let mut client = server.client();
    for (name, value, holds) in [
        ("save", "60 1", ""),
        ("appendonly", "no", "yes"),
        ("dbfilename", "dump.rdb", ""),
        ("loglevel", "debug", "notice"),
        ("lazyfree-lazy-user-del", "no", "yes"),
        ("slowlog-log-slower-than", "0", "-1"),
        ("slowlog-max-len", "128", "0"),
        ("latency-monitor-threshold", "1", "0"),
        ("repl-backlog-size", "1", "0"),
        ("list-compress-depth", "1", "0"),
        ("zset-max-ziplist-entries", "0", "128"),
        ("hash-max-ziplist-value", "1", "64"),
        ("list-max-ziplist-size", "5", "-2"),
    ] {
        let shown = format!("*2\r\n${}\r\n{name}\r\n${}\r\n{holds}\r\n", name.len(), holds.len());
        client.ask(&format!("CONFIG GET {name}"), &shown);
        client.send(frame(&["CONFIG", "SET", name, value]));
        let refusal = client.line();
        let wanted = if holds.is_empty() { "empty" } else { holds };
        assert!(refusal.contains(&format!(" - must be {wanted}: ")), "{name}: {refusal}");
        client.send(frame(&["CONFIG", "SET", name, holds]));
        client.expect("+OK\r\n");
        client.ask(&format!("CONFIG GET {name}"), &shown);
    }
    for name in ["daemonize", "databases", "cluster-enabled", "logfile", "replicaof"] {
        client.ask(
            &format!("CONFIG SET {name} other"),
            &format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - can't set immutable config\r\n"),
        );
    }
}

#[test]
fn appendfsync_leaves_an_interval_that_is_set_already() {
    let server =
        TestServer::with(|config| config.durability = Durability::Interval(Duration::from_millis(50)));
    let mut client = server.client();
    let interval = "*2\r\n$10\r\ndurability\r\n$13\r\ninterval:50ms\r\n";
    for value in ["everysec", "EverySec"] {
        client.ask(&format!("CONFIG SET appendfsync {value}"), "+OK\r\n");
        client.ask("CONFIG GET durability", interval);
    }
    client.ask("CONFIG SET appendfsync no", "+OK\r\n");
    client.ask("CONFIG SET appendfsync everysec", "+OK\r\n");
    client.ask("CONFIG GET durability", "*2\r\n$10\r\ndurability\r\n$15\r\ninterval:1000ms\r\n");
}

#[test]
fn info_has_what_tools_look_for() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("SET a 1", "+OK\r\n");
    client.command(&["INFO"]);
    let info = client.bulk();
    for line in [
        "# Server",
        "redis_version:7.4.0",
        "arch_bits:64",
        "connected_clients:1",
        "cluster_enabled:0",
        "db0:keys=1,",
    ] {
        assert!(info.contains(line), "{line} is missing in\n{info}");
    }
    // `INFO` counts expired keys since the last reset.
    client.command(&["CONFIG", "RESETSTAT"]);
    client.expect("+OK\r\n");
    client.ask("SET brief 1 PX 1", "+OK\r\n");
    crate::common::eventually("a key expires", || {
        client.command(&["INFO", "stats"]);
        client.bulk().contains("\r\nexpired_keys:1\r\n")
    });
    client.command(&["INFO", "stats"]);
    let stats = client.bulk();
    for line in ["expired_keys:1", "evicted_keys:0", "instantaneous_ops_per_sec:"] {
        assert!(stats.contains(&format!("\r\n{line}")), "{line} is missing in\n{stats}");
    }
    client.command(&["INFO", "memory"]);
    let memory = client.bulk();
    let number = |name: &str| -> u64 {
        let value = memory.split(&format!("\r\n{name}:")).nth(1).and_then(|rest| rest.lines().next());
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in\n{memory}"))
    };
    assert!(number("used_memory_peak") >= number("used_memory"), "{memory}");
    assert!(number("total_system_memory") > number("used_memory"), "{memory}");
    for name in
        ["used_memory_human", "used_memory_peak_human", "mem_fragmentation_ratio", "lazyfreed_objects"]
    {
        assert!(memory.contains(&format!("\r\n{name}:")), "{name} is missing in\n{memory}");
    }
    client.command(&["INFO", "replication"]);
    assert!(client.bulk().starts_with("# Replication\r\nrole:master\r\n"));
}

#[test]
fn a_web_page_runs_no_commands_through_its_visitors_browser() {
    let server = TestServer::new();
    for request in [
        "POST / HTTP/1.1\r\nHost: evil\r\n\r\nSET pwned 1\r\n",
        "host: evil\r\nSET pwned 1\r\n",
        "*2\r\n$4\r\npOsT\r\n$1\r\n/\r\nSET pwned 1\r\n",
        "MULTI\r\nPOST / HTTP/1.1\r\nSET pwned 1\r\nEXEC\r\n",
        "GET / HTTP/1.1\r\nHost: evil\r\n\r\nSET pwned 1\r\n",
    ] {
        let mut page = server.client();
        page.send(request);
        let answers = String::from_utf8(page.until_closed()).expect("text");
        let harmless = |line: &str| line == "+OK" || line.starts_with("-ERR wrong number of arguments");
        assert!(answers.lines().all(harmless), "{request}: {answers}");
    }
    let mut client = server.client();
    client.ask("GET pwned", "$-1\r\n");
    client.command(&["INFO", "stats"]);
    assert!(client.bulk().contains("client_protocol_error_disconnections:5\r\n"));
}

#[test]
fn a_client_is_shown_with_the_command_that_it_waits_for() {
    let server = TestServer::new();
    // A connection is listed, after the earlier ones, once an event loop has accepted it. A reply
    // shows that.
    let mut client = server.client();
    client.ask("PING", "+PONG\r\n");
    let mut other = server.client();
    other.ask("PING", "+PONG\r\n");
    client.command(&["CLIENT", "LIST"]);
    let list = client.bulk();
    let mut lines = list.lines();
    let (own, others) = (lines.next().expect("a line"), lines.next().expect("two lines"));
    assert!(own.contains(" qbuf=26 ") && own.contains(" argv-mem=10 "), "{own}");
    assert!(others.contains(" qbuf=0 ") && others.contains(" argv-mem=0 "), "{others}");
    client.command(&["CLIENT", "INFO"]);
    let info = client.bulk();
    assert!(info.contains(" qbuf=26 ") && !info.contains(" rbs=0 "), "{info}");
    drop(other);
}

#[test]
fn functions_are_flushed() {
    let server = TestServer::new();
    let mut client = server.client();
    for words in ["FUNCTION FLUSH", "FUNCTION FLUSH async", "function flush SYNC"] {
        client.ask(words, "+OK\r\n");
    }
    client.ask("FUNCTION FLUSH x", "-ERR FUNCTION FLUSH only supports SYNC|ASYNC option\r\n");
    client.ask(
        "FUNCTION FLUSH async x",
        "-ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.\r\n",
    );
    client.ask("FUNCTION LOAD x", "-ERR Missing library metadata\r\n");
}

#[test]
fn a_key_s_value_is_described_for_tests() {
    let server = TestServer::with(|config| config.enable_debug_command = DebugAccess::Yes);
    let mut client = server.client();
    client.ask("SET a b", "+OK\r\n");
    client.command(&["DEBUG", "OBJECT", "a"]);
    let line = client.line();
    assert!(
        line.starts_with("+Value at:0x") && line.contains(" refcount:1 encoding:embstr serializedlength:"),
        "{line}"
    );
    assert!(line.contains(" lru:") && line.contains(" lru_seconds_idle:"), "{line}");
    client.ask("DEBUG OBJECT none", "-ERR no such key\r\n");
    client.ask("OBJECT ENCODING a", "$6\r\nembstr\r\n");
}

//! Offloaded commands that read a great many elements: clients see the same replies as from an
//! event loop.

use crate::common::{Client, TestServer, eventually};
use std::net::TcpStream;
use tidemark_server::config::Config;

/// More elements than a command reads in an event loop.
const MEMBERS: usize = 20_000;

/// Configures one event loop, which serves every client.
fn one_thread(config: &mut Config) {
    config.threads = 1;
}

fn fill(server: &TestServer) {
    let mut client = server.client();
    for start in (0..MEMBERS).step_by(1000) {
        let members: Vec<String> = (start..start + 1000).map(|number| format!("m{number}")).collect();
        let mut words = vec!["SADD", "set"];
        words.extend(members.iter().map(String::as_str));
        client.command(&words);
        assert_eq!(client.line(), ":1000");
    }
}

fn long_commands(server: &TestServer) -> u64 {
    let metrics = server.http("/metrics");
    let count = metrics.lines().find_map(|line| line.strip_prefix("tidemark_long_commands_total "));
    count.and_then(|count| count.parse().ok()).expect("a count")
}

/// Reads a reply to `SMEMBERS` and returns the number of its members.
fn members(client: &mut Client<TcpStream>) -> usize {
    let count: usize = client.line()[1..].parse().expect("a count");
    for _ in 0..count {
        assert!(client.line().starts_with('$'));
        assert!(client.line().starts_with('m'));
    }
    count
}

#[test]
fn a_long_command_is_answered_in_its_place_and_others_go_on() {
    let server = TestServer::with_http(one_thread);
    fill(&server);
    let (mut long, mut other) = (server.client(), server.client());
    long.send("GET before\r\nSMEMBERS set\r\nSCARD set\r\nSMEMBERS set\r\nPING\r\n");
    other.ask("PING", "+PONG\r\n");
    assert_eq!(long.line(), "$-1");
    assert_eq!(members(&mut long), MEMBERS);
    assert_eq!(long.line(), ":20000");
    assert_eq!(members(&mut long), MEMBERS);
    assert_eq!(long.line(), "+PONG");
    assert_eq!(long_commands(&server), 2);
    // Short commands, and commands of a transaction, are not offloaded.
    long.ask("SADD few a", ":1\r\n");
    long.ask("SMEMBERS few", "*1\r\n$1\r\na\r\n");
    long.ask("MULTI", "+OK\r\n");
    long.ask("SMEMBERS set", "+QUEUED\r\n");
    long.send("EXEC\r\n");
    assert_eq!(long.line(), "*1");
    assert_eq!(members(&mut long), MEMBERS);
    assert_eq!(long_commands(&server), 2);
    long.ask("KEYS no*", "*0\r\n");
    long.ask("BITCOUNT set", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    long.send("INFO errorstats\r\n");
    assert!(long.bulk().contains("errorstat_WRONGTYPE:count=1"), "it is counted as others are");
}

#[test]
fn what_a_long_command_has_changed_is_there_after_a_restart() {
    let server = TestServer::with_http(|config| {
        one_thread(config);
        config.durability = tidemark_log::Durability::Always;
    });
    fill(&server);
    let mut client = server.client();
    client.ask("SUNIONSTORE copy set", ":20000\r\n");
    assert_eq!(long_commands(&server), 1);
    client.ask("WAITAOF 1 0 1000", "*2\r\n:1\r\n:0\r\n");
    let server = TestServer::in_dir(server.stop(), one_thread);
    server.client().ask("SCARD copy", ":20000\r\n");
}

#[test]
fn a_client_that_leaves_or_is_killed_during_a_long_command_affects_no_other_client() {
    let server = TestServer::with_http(one_thread);
    fill(&server);
    for _ in 0..20 {
        let mut client = server.client();
        client.send("SUNIONSTORE copy set\r\nSMEMBERS set\r\n");
    }
    let mut client = server.client();
    client.ask("CLIENT SETNAME victim", "+OK\r\n");
    client.send("SMEMBERS set\r\n");
    server.client().ask("CLIENT KILL TYPE normal SKIPME yes", ":1\r\n");
    eventually("all is as it was", || {
        let mut client = server.client();
        client.send("SCARD copy\r\n");
        client.line() == ":20000"
    });
    // `CLIENT UNBLOCK` does not unblock a client that waits for a long command.
    let mut client = server.client();
    client.send("CLIENT ID\r\n");
    let id = client.line()[1..].to_owned();
    client.send("SMEMBERS set\r\n");
    let mut other = server.client();
    other.send(format!("CLIENT UNBLOCK {id}\r\n"));
    assert_eq!(other.line(), ":0");
    assert_eq!(members(&mut client), MEMBERS);
}

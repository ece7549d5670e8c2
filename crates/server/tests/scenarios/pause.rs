//! `CLIENT PAUSE`: commands wait, and run when the pause is over.

use crate::common::watching::{begun, emission, resp3};
use crate::common::{Client, TestServer, eventually};
use std::net::TcpStream;

/// A pause that is longer than any test, in milliseconds.
const LONG: &str = "100000000";

fn blocked_clients(client: &mut Client<TcpStream>) -> usize {
    figure(client, "clients", "blocked_clients:")
}

fn expired_keys(client: &mut Client<TcpStream>) -> usize {
    figure(client, "stats", "expired_keys:")
}

/// Returns a number from a section of `INFO`.
fn figure(client: &mut Client<TcpStream>, section: &str, name: &str) -> usize {
    client.command(&["INFO", section]);
    let info = client.bulk();
    let line = info.lines().find(|line| line.starts_with(name)).expect("a line of INFO");
    line.rsplit(':').next().and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn changes_wait_for_the_end_of_a_pause_and_reads_do_not() {
    let server = TestServer::new();
    let (mut operator, mut writer, mut publisher) = (server.client(), server.client(), server.client());
    operator.ask(&format!("CLIENT PAUSE {LONG} WRITE"), "+OK\r\n");
    writer.send("GET k\r\nSET k v\r\nGET k\r\n");
    publisher.send("PUBLISH channel message\r\n");
    writer.expect("$-1\r\n");
    eventually("both wait", || blocked_clients(&mut operator) == 2);
    operator.ask("GET k", "$-1\r\n");
    // The server refuses an invalid command without waiting.
    operator.ask("SET k", "-ERR wrong number of arguments for 'set' command\r\n");
    operator.ask("CLIENT UNPAUSE", "+OK\r\n");
    writer.expect("+OK\r\n$1\r\nv\r\n");
    publisher.expect(":0\r\n");
    assert_eq!(blocked_clients(&mut operator), 0);
}

#[test]
fn an_expired_key_that_a_read_meets_leaves_when_the_pause_is_over() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
    client.ask("SET k v PX 1", "+OK\r\n");
    client.ask(&format!("CLIENT PAUSE {LONG} WRITE"), "+OK\r\n");
    eventually("its time has come", || {
        client.command(&["EXISTS", "k"]);
        client.line() == ":0"
    });
    assert_eq!(expired_keys(&mut client), 0);
    client.ask("CLIENT UNPAUSE", "+OK\r\n");
    client.ask("EXISTS k", ":0\r\n");
    assert_eq!(expired_keys(&mut client), 1);
}

#[test]
fn a_transaction_waits_if_it_changes_something() {
    let server = TestServer::new();
    let (mut operator, mut reader, mut writer) = (server.client(), server.client(), server.client());
    reader.ask("MULTI", "+OK\r\n");
    reader.ask("GET k", "+QUEUED\r\n");
    writer.ask("MULTI", "+OK\r\n");
    writer.ask("SET k v", "+QUEUED\r\n");
    operator.ask(&format!("CLIENT PAUSE {LONG} WRITE"), "+OK\r\n");
    reader.ask("EXEC", "*1\r\n$-1\r\n");
    writer.send("EXEC\r\n");
    eventually("the transaction waits", || blocked_clients(&mut operator) == 1);
    operator.ask("CLIENT UNPAUSE", "+OK\r\n");
    writer.expect("*1\r\n+OK\r\n");
}

#[test]
fn what_is_said_of_subscriptions_waits_if_the_log_keeps_it() {
    let server = TestServer::new();
    let (mut operator, mut watcher) = (server.client(), resp3(&server));
    watcher.ask("GET.WATCH k", &begun("1-0", 1, 0, "_\r\n"));
    watcher.ask("GET.WATCH n | AS bill", &begun("bill", 2, 0, "_\r\n"));
    operator.ask("SET n 1", "+OK\r\n");
    watcher.expect(emission("bill", 4, 1, "$1\r\n1\r\n"));
    operator.ask(&format!("CLIENT PAUSE {LONG} WRITE"), "+OK\r\n");
    // These commands write no record, so they do not wait.
    watcher.ask("EMITACK k 1-0 1", "+OK\r\n");
    watcher.ask("UNWATCH 1-0", ":1\r\n");
    for (waiting, answer) in [
        ("GET.WATCH other", begun("5-0", 5, 0, "_\r\n")),
        ("EMITACK n bill 4", "+OK\r\n".to_owned()),
        ("UNWATCH NAMED bill", ":1\r\n".to_owned()),
    ] {
        let mut client = resp3(&server);
        client.send(format!("{waiting}\r\n"));
        eventually("it waits", || blocked_clients(&mut operator) == 1);
        operator.ask("CLIENT UNPAUSE", "+OK\r\n");
        client.expect(answer);
        operator.ask(&format!("CLIENT PAUSE {LONG} WRITE"), "+OK\r\n");
    }
    let mut transaction = resp3(&server);
    operator.ask("CLIENT UNPAUSE", "+OK\r\n");
    transaction.ask("GET.WATCH n | AS again", &begun("again", 7, 0, "$1\r\n1\r\n"));
    operator.ask("SET n 2", "+OK\r\n");
    transaction.expect(emission("again", 9, 1, "$1\r\n2\r\n"));
    transaction.ask("MULTI", "+OK\r\n");
    transaction.ask("EMITACK n again 9", "+QUEUED\r\n");
    operator.ask(&format!("CLIENT PAUSE {LONG} WRITE"), "+OK\r\n");
    transaction.send("EXEC\r\n");
    eventually("the transaction waits", || blocked_clients(&mut operator) == 1);
    operator.ask("CLIENT UNPAUSE", "+OK\r\n");
    transaction.expect("*1\r\n+OK\r\n");
}

#[test]
fn nothing_is_given_away_at_most_once_during_a_pause() {
    let server = TestServer::with(|config| config.threads = 1);
    let (mut operator, mut watcher) = (server.client(), resp3(&server));
    watcher.ask("GET.WATCH k | AS bill ATMOSTONCE", &begun("bill", 1, 0, "_\r\n"));
    // The worker runs both commands before it looks for emissions.
    operator.send(format!("SET k 1\r\nCLIENT PAUSE {LONG} WRITE\r\n"));
    operator.expect("+OK\r\n+OK\r\n");
    operator.command(&["WATCHES", "NAMED", "bill"]);
    while operator.line() != "lsn" {}
    assert_eq!(operator.line(), ":1", "the position is where it was");
    while operator.line() != "client" {}
    operator.line();
    watcher.ask("ECHO nothing", "$7\r\nnothing\r\n");
    operator.ask("CLIENT UNPAUSE", "+OK\r\n");
    watcher.expect(emission("bill", 3, 1, "$1\r\n1\r\n"));
}

#[test]
fn a_later_pause_replaces_an_earlier_one() {
    let server = TestServer::new();
    let (mut operator, mut writer) = (server.client(), server.client());
    operator.ask(&format!("CLIENT PAUSE {LONG} WRITE"), "+OK\r\n");
    writer.send("SET k v\r\n");
    eventually("the client waits", || blocked_clients(&mut operator) == 1);
    operator.ask("CLIENT PAUSE 1 WRITE", "+OK\r\n");
    writer.expect("+OK\r\n");
    operator.ask("CLIENT PAUSE 1", "+OK\r\n");
    operator.ask("PING", "+PONG\r\n");
}

#[test]
fn a_waiting_client_is_not_unblocked_by_an_error() {
    let server = TestServer::new();
    let (mut operator, mut writer) = (server.client(), server.client());
    writer.command(&["CLIENT", "ID"]);
    let id = writer.line();
    operator.ask(&format!("CLIENT PAUSE {LONG} WRITE"), "+OK\r\n");
    writer.send("SET k v\r\n");
    eventually("the client waits", || blocked_clients(&mut operator) == 1);
    operator.ask(&format!("CLIENT UNBLOCK {} ERROR", &id[1..]), ":1\r\n");
    operator.ask(&format!("CLIENT UNBLOCK {}", &id[1..]), ":1\r\n");
    operator.ask("GET k", "$-1\r\n");
    operator.ask("CLIENT UNPAUSE", "+OK\r\n");
    writer.expect("+OK\r\n");
}

#[test]
fn a_stop_ends_the_pause() {
    let server = TestServer::new();
    let (mut operator, mut client) = (server.client(), server.client());
    client.ask("PING", "+PONG\r\n");
    operator.send(format!("CLIENT PAUSE {LONG} ALL\r\nPING\r\n"));
    operator.expect("+OK\r\n");
    client.send("ECHO last\r\n");
    server.stop();
    operator.expect("+PONG\r\n");
    client.expect("$4\r\nlast\r\n");
}

#[test]
fn a_pause_needs_a_time_and_knows_two_modes() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("CLIENT PAUSE abc", "-ERR timeout is not an integer or out of range\r\n");
    client.ask("CLIENT PAUSE -1", "-ERR timeout is negative\r\n");
    client.ask("CLIENT PAUSE 1 SOME", "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n");
    client.ask("CLIENT PAUSE 0 write", "+OK\r\n");
    client.ask("SET k v", "+OK\r\n");
}

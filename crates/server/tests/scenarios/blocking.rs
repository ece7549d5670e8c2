//! Blocking commands: the server serves waiting clients in order, in time, or not at all.

use crate::common::{Client, TestServer, eventually};
use std::net::TcpStream;
use tidemark_log::Durability;

/// Sends a command that blocks, and returns once the client waits.
fn block(server: &TestServer, client: &mut Client<TcpStream>, command: &str) {
    let mut other = server.client();
    let before = blocked_clients(&mut other);
    client.send(format!("{command}\r\n"));
    eventually("the client waits", || blocked_clients(&mut other) > before);
}

fn blocked_clients(client: &mut Client<TcpStream>) -> usize {
    client.command(&["INFO", "clients"]);
    let info = client.bulk();
    let line = info.lines().find(|line| line.starts_with("blocked_clients:")).expect("a line of INFO");
    line.rsplit(':').next().and_then(|count| count.parse().ok()).expect("a number")
}

#[test]
fn what_is_there_is_taken_at_once() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("ZADD z 1 a 2 b", ":2\r\n");
    client.ask("BZPOPMIN z 0", "*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n");
}

#[test]
fn waiting_clients_are_served_in_the_order_of_their_coming() {
    let server = TestServer::new();
    let (mut first, mut second, mut giver) = (server.client(), server.client(), server.client());
    block(&server, &mut first, "BZPOPMIN z 0");
    block(&server, &mut second, "BZPOPMIN other z 0");
    giver.ask("ZADD z 1 a", ":1\r\n");
    first.expect("*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n");
    giver.ask("ZADD z 2 b 3 c", ":2\r\n");
    second.expect("*3\r\n$1\r\nz\r\n$1\r\nb\r\n$1\r\n2\r\n");
    giver.ask("ZCARD z", ":1\r\n");
}

#[test]
fn clients_of_other_threads_do_not_overtake_waiting_clients() {
    let server = TestServer::with(|config| config.threads = 3);
    let mut waiting: Vec<Client<TcpStream>> = (0..20).map(|_| server.client()).collect();
    waiting.iter_mut().for_each(|client| block(&server, client, "BLPOP l 0"));
    let (mut pusher, mut popper) = (server.client(), server.client());
    popper.send("LPOP l\r\n".repeat(2000));
    pusher.send((0..20).map(|n| format!("RPUSH l {n:02}\r\n")).collect::<Vec<_>>().concat());
    pusher.expect(":1\r\n".repeat(20));
    popper.expect("$-1\r\n".repeat(2000));
    for (n, client) in waiting.iter_mut().enumerate() {
        client.expect(format!("*2\r\n$1\r\nl\r\n$2\r\n{n:02}\r\n"));
    }
}

#[test]
fn what_a_client_sends_while_it_waits_runs_afterwards() {
    let server = TestServer::new();
    let (mut client, mut giver) = (server.client(), server.client());
    block(&server, &mut client, "BZPOPMIN z 0\r\nECHO later\r\nBZPOPMIN z 0\r\nPING");
    giver.ask("ZADD z 1 a", ":1\r\n");
    client.expect("*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n$5\r\nlater\r\n");
    giver.ask("ZADD z 2 b", ":1\r\n");
    client.expect("*3\r\n$1\r\nz\r\n$1\r\nb\r\n$1\r\n2\r\n+PONG\r\n");
}

#[test]
fn a_wait_ends_when_its_time_has_passed() {
    let server = TestServer::new();
    let mut client = server.client();
    client.ask("BZPOPMIN z 0.01", "*-1\r\n");
    client.ask("BZPOPMIN z -1", "-ERR timeout is negative\r\n");
    client.ask("BZPOPMIN z x", "-ERR timeout is not a float or out of range\r\n");
    client.ask("ZADD z 1 a", ":1\r\n");
    client.ask("ZCARD z", ":1\r\n");
}

#[test]
fn a_client_waits_for_points_of_a_series_and_of_a_lens() {
    let server = TestServer::new();
    let (mut one, mut other, mut giver) = (server.client(), server.client(), server.client());
    giver.ask("TS.ADD a 1 1", ":1\r\n");
    giver.ask("LENS.CREATE l a affine 2 0", "+OK\r\n");
    one.ask("TS.READ l 1 BLOCK 1 2", "*1\r\n*2\r\n:1\r\n+2\r\n");
    block(&server, &mut one, "TS.READ a $ BLOCK 0 1\r\nPING");
    block(&server, &mut other, "TS.READ l $ BLOCK 0 2");
    giver.send("TS.ADD a 2 2\r\nTS.ADD a 3 3\r\nTS.READ l 3\r\n");
    giver.expect(":2\r\n:3\r\n*1\r\n*2\r\n:3\r\n+6\r\n");
    other.expect("*2\r\n*2\r\n:2\r\n+4\r\n*2\r\n:3\r\n+6\r\n");
    // The points may come together or one after the other.
    one.expect("*");
    block(&server, &mut other, "TS.READ l $ BLOCK 0 1");
    giver.ask("DEL a", ":1\r\n");
    other.expect("-ERR LENS: there is no 'a' for the lens to see\r\n");
}

#[test]
fn a_client_that_is_gone_takes_nothing() {
    let server = TestServer::new();
    let (mut client, mut giver) = (server.client(), server.client());
    block(&server, &mut client, "BZPOPMIN z 0");
    drop(client);
    eventually("its wait ends", || blocked_clients(&mut giver) == 0);
    giver.ask("ZADD z 1 a", ":1\r\n");
    giver.ask("ZCARD z", ":1\r\n");
}

#[test]
fn another_client_may_end_a_wait() {
    let server = TestServer::new();
    let (mut client, mut other) = (server.client(), server.client());
    client.command(&["CLIENT", "ID"]);
    let id = client.line()[1..].to_owned();
    block(&server, &mut client, "BZPOPMIN z 0");
    other.ask(&format!("CLIENT UNBLOCK {id}"), ":1\r\n");
    client.expect("*-1\r\n");
    other.ask(&format!("CLIENT UNBLOCK {id}"), ":0\r\n");
    block(&server, &mut client, "BZPOPMIN z 0");
    other.ask(&format!("CLIENT UNBLOCK {id} ERROR"), ":1\r\n");
    client.expect("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
    other.ask("CLIENT UNBLOCK 999 NOW", "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n");
}

/// Starts a client that waits for a list; returns it with its id.
fn waiting_for_a_list(server: &TestServer) -> (Client<TcpStream>, String) {
    let mut client = server.client();
    client.command(&["CLIENT", "ID"]);
    let id = client.line()[1..].to_owned();
    block(server, &mut client, "BLPOP l 0");
    (client, id)
}

#[test]
fn a_client_that_was_killed_takes_nothing() {
    let server = TestServer::new();
    let ((_victim, id), mut other) = (waiting_for_a_list(&server), server.client());
    other.send(format!("CLIENT KILL ID {id}\r\nRPUSH l a\r\nLLEN l\r\n"));
    other.expect(":1\r\n:1\r\n:1\r\n");
}

#[test]
fn a_wait_that_another_client_has_ended_takes_nothing() {
    let server = TestServer::new();
    let ((mut client, id), mut other) = (waiting_for_a_list(&server), server.client());
    other.send(format!("CLIENT UNBLOCK {id}\r\nRPUSH l a\r\nLLEN l\r\nCLIENT UNBLOCK {id}\r\n"));
    other.expect(":1\r\n:1\r\n:1\r\n:0\r\n");
    client.expect("*-1\r\n");
}

#[test]
fn a_client_that_was_served_waits_no_longer() {
    let server = TestServer::new();
    let ((mut client, id), mut other) = (waiting_for_a_list(&server), server.client());
    other.send(format!("RPUSH l a\r\nCLIENT UNBLOCK {id}\r\n"));
    other.expect(":1\r\n:0\r\n");
    client.expect("*2\r\n$1\r\nl\r\n$1\r\na\r\n");
    client.ask("PING", "+PONG\r\n");
}

#[test]
fn in_a_transaction_no_client_waits() {
    let server = TestServer::new();
    let mut client = server.client();
    client.send("MULTI\r\nBZPOPMIN z 0\r\nEXEC\r\n");
    client.expect("+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
}

#[test]
fn a_transaction_serves_when_it_is_complete() {
    let server = TestServer::new();
    let (mut client, mut giver) = (server.client(), server.client());
    block(&server, &mut client, "BZPOPMIN z 0");
    giver.send("MULTI\r\nZADD z 2 b\r\nZADD z 1 a\r\nEXEC\r\n");
    giver.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:1\r\n");
    client.expect("*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n");
}

#[test]
fn what_was_served_is_found_served_after_a_restart() {
    let server = TestServer::with(|config| config.durability = Durability::Always);
    let (mut client, mut giver) = (server.client(), server.client());
    block(&server, &mut client, "BZPOPMIN z 0");
    giver.ask("ZADD z 1 a 2 b", ":2\r\n");
    client.expect("*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n");
    let server = TestServer::in_dir(server.stop(), |_| {});
    server.client().ask("ZRANGE z 0 -1", "*1\r\n$1\r\nb\r\n");
}

#[test]
fn a_stop_closes_clients_that_wait() {
    let server = TestServer::new();
    let mut client = server.client();
    block(&server, &mut client, "BZPOPMIN z 0");
    server.stop();
    assert_eq!(client.until_closed(), b"");
}

//! All clients together keep to `maxmemory-clients`: the server evicts the largest clients first,
//! and other clients notice nothing.

use crate::common::{Client, TestServer, eventually, frame};
use std::net::TcpStream;
use tidemark_server::config::MemoryLimit;

const MIB: usize = 1 << 20;
/// Limit for the memory of all clients, in bytes.
const LIMIT: usize = 32 * MIB;
/// Bytes that each connection of a test may have allocated beyond the limit, without a request to
/// the memory budget: the input of one turn, and a short reply.
const UNASKED: usize = 256 * 1024;

fn server() -> TestServer {
    TestServer::with(|config| config.maxmemory_clients = MemoryLimit::Bytes(LIMIT))
}

/// Returns a number from `INFO`.
fn figure(client: &mut Client<TcpStream>, name: &str) -> usize {
    client.command(&["INFO"]);
    let info = client.bulk();
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no number {name} in {info}"))
}

/// Asserts that clients keep to the limit and that the server serves other clients.
fn keeps_to_the_limit(client: &mut Client<TcpStream>, connections: usize) {
    let used = figure(client, "mem_clients_normal");
    let most = LIMIT + connections * UNASKED;
    assert!(used <= most, "clients use {used} bytes, and {most} are allowed");
    client.ask("SET witness 1", "+OK\r\n");
    client.ask("GET witness", "$1\r\n1\r\n");
}

#[test]
fn unread_replies_respect_one_limit_of_all_clients() {
    let server = server();
    let mut witness = server.client();
    witness.command(&["SET", "key", &"v".repeat(MIB)]);
    witness.expect("+OK\r\n");
    // 10 MiB each, 200 MiB together.
    let words: Vec<&str> = std::iter::once("MGET").chain(std::iter::repeat_n("key", 10)).collect();
    let mut silent: Vec<_> = (0..20).map(|_| server.client()).collect();
    let connections = silent.len() + 1;
    for client in &mut silent {
        client.send(frame(&words));
        keeps_to_the_limit(&mut witness, connections);
    }
    eventually("clients are disconnected", || {
        keeps_to_the_limit(&mut witness, connections);
        figure(&mut witness, "evicted_clients") > 0
    });
    eventually("there is room for a smaller reply", || {
        let mut reader = server.client();
        reader.send(frame(&words[..6]));
        reader.line() == "*5"
    });
}

#[test]
fn a_reply_above_the_limit_is_an_error_and_disconnects_no_client() {
    let server = server();
    let (mut greedy, mut other) = (server.client(), server.client());
    other.command(&["SET", "key", &"v".repeat(MIB)]);
    other.expect("+OK\r\n");
    let words: Vec<&str> = std::iter::once("MGET").chain(std::iter::repeat_n("key", 100)).collect();
    for request in
        [frame(&words), [frame(&["MULTI"]), frame(&words), frame(&["PING"]), frame(&["EXEC"])].concat()]
    {
        greedy.send(request);
        let mut answer = greedy.line();
        while answer == "+OK" || answer == "+QUEUED" {
            answer = greedy.line();
        }
        assert!(answer.starts_with("-OOM the answer is longer than"), "{answer}");
        greedy.ask("PING", "+PONG\r\n");
    }
    keeps_to_the_limit(&mut other, 2);
    assert_eq!((figure(&mut other, "refused_replies"), figure(&mut other, "evicted_clients")), (2, 0));
    other.ask("CONFIG SET maxmemory-clients 0", "+OK\r\n");
    greedy.send(frame(&words));
    assert_eq!(greedy.line(), "*100");
}

#[test]
fn requests_without_end_and_transactions_keep_to_the_limit_too() {
    let server = server();
    let mut witness = server.client();
    witness.ask("CLIENT NO-EVICT on", "+OK\r\n");
    let piece = vec![b'x'; 2 * MIB];
    let mut senders: Vec<_> = (0..40).map(|_| server.client()).collect();
    let connections = senders.len() + 1;
    for (number, sender) in senders.iter_mut().enumerate() {
        let queued = [frame(&["MULTI"]), frame(&["SET", "key", &"v".repeat(2 * MIB)])].concat();
        let begun = [b"*2\r\n$4\r\nECHO\r\n$100000000\r\n".as_slice(), &piece].concat();
        let _ = sender.try_send(if number % 2 == 0 { &queued } else { &begun });
        keeps_to_the_limit(&mut witness, connections);
    }
    eventually("clients are disconnected", || {
        keeps_to_the_limit(&mut witness, connections);
        figure(&mut witness, "evicted_clients") > 0
    });
    drop(senders);
    eventually("everything is given back", || figure(&mut witness, "mem_clients_normal") < UNASKED);
}

#[test]
fn a_no_evict_client_stays_although_it_uses_most() {
    // The kernel buffers some mebibytes of each reply.
    let limit = MemoryLimit::Bytes(2 * LIMIT);
    let server = TestServer::with(|config| config.maxmemory_clients = limit);
    let (mut large, mut witness) = (server.client(), server.client());
    large.ask("CLIENT NO-EVICT on", "+OK\r\n");
    witness.command(&["SET", "key", &"v".repeat(MIB)]);
    witness.expect("+OK\r\n");
    let words: Vec<&str> = std::iter::once("MGET").chain(std::iter::repeat_n("key", 24)).collect();
    large.send(frame(&words));
    eventually("its reply waits", || figure(&mut witness, "mem_clients_normal") > 10 * MIB);
    let mut others: Vec<_> = (0..10).map(|_| server.client()).collect();
    let mut turns = 0;
    eventually("another one goes", || {
        // Refused clients ask again. The content of their replies does not matter here.
        let _ = others[turns % 10].try_send(&frame(&words[..15]));
        turns += 1;
        figure(&mut witness, "evicted_clients") > 0
    });
    let value = format!("${MIB}\r\n{}\r\n", "v".repeat(MIB));
    large.expect("*24\r\n");
    (0..24).for_each(|_| large.expect(&value));
}

//! Clients that mean harm, or only behave as if they did: the server lives, its memory stays bounded, and everybody
//! else is served.

#[path = "../../engine/tests/support/commands.rs"]
mod commands;
mod support;

use commands::Random;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use support::wire::{Pipeline, Value};
use support::{Answer, Server};

/// Resident memory of the server, in bytes.
fn resident(server: &Server) -> u64 {
    let path = format!("/proc/{}/statm", server.child.id());
    let text = std::fs::read_to_string(path).expect("the server lives");
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages");
    pages * 4096
}

fn is_served(server: &Server) {
    let mut client = server.client();
    assert_eq!(client.call(&["SET", "witness", "1"]).expect("an answer"), Answer::Status("OK".into()));
    assert_eq!(client.call(&["GET", "witness"]).expect("an answer"), Answer::Bulk("1".into()));
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout can be set");
    stream
}

/// Sends bytes and reads until the server has nothing more to say.
fn send_and_drain(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(server);
    // The server may hang up in the middle of what we send; so may the kernel answer.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn random_bytes_and_boasting_headers_cost_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off"]);
    is_served(&server);
    let before = resident(&server);
    for header in [
        "*2147483647\r\n",
        "*-2147483648\r\n",
        "*1\r\n$536870913\r\n",
        "*1\r\n$-5\r\n",
        "*1\r\n$536870912\r\nx",
        "*1048576\r\n$1\r\n",
        "*99999999999999999999\r\n",
        "*3\r\n$3\r\nSET\r\n:1\r\n",
        "*1\r\n*1\r\n*1\r\n",
        "\"\r\n",
    ] {
        send_and_drain(&server, header.as_bytes());
    }
    let mut random = Random::new(1);
    for round in 0..300_usize {
        let mut bytes: Vec<u8> = (0..random.below(5000)).map(|_| random.next() as u8).collect();
        if round % 2 == 0 {
            bytes.splice(0..0, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$".iter().copied());
        }
        send_and_drain(&server, &bytes);
    }
    is_served(&server);
    let grown = resident(&server).saturating_sub(before);
    assert!(grown < 64 << 20, "memory grew by {grown} bytes");
}

#[test]
fn a_million_commands_without_reading_are_answered_when_they_are_read() {
    const COMMANDS: usize = 1_000_000;
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off"]);
    server.client().call(&["SET", "k", &"v".repeat(1000)]).expect("an answer");
    let before = resident(&server);
    let stream = connect(&server);
    let mut writer = stream.try_clone().expect("a second handle");
    // The server stops reading while we do not read, so sending needs a thread of its own.
    let sending = std::thread::spawn(move || {
        let block = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(1000);
        (0..COMMANDS / 1000).all(|_| writer.write_all(&block).is_ok())
    });
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        is_served(&server);
    }
    let grown = resident(&server).saturating_sub(before);
    assert!(grown < 128 << 20, "the server does not hoard: memory grew by {grown} bytes");
    let mut left = COMMANDS * ("$1000\r\n".len() + 1000 + 2);
    let (mut reader, mut buffer) = (stream, vec![0; 1 << 20]);
    while left > 0 {
        let read = reader.read(&mut buffer).expect("answers arrive");
        assert!(read > 0, "the connection stays until everything is answered; {left} bytes are missing");
        left -= read;
    }
    assert!(sending.join().expect("the sender ends"), "everything was taken");
    is_served(&server);
}

#[test]
fn a_hundred_readers_that_stall_leave_the_others_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off"]);
    server.client().call(&["SET", "big", &"v".repeat(1 << 20)]).expect("an answer");
    let before = resident(&server);
    let mut stalled = Vec::new();
    for _ in 0..100 {
        let mut stream = connect(&server);
        stream.write_all(&b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(100)).expect("requests are taken");
        stalled.push(stream);
    }
    let mut pipeline = Pipeline::connect(server.port).expect("a connection");
    for n in 1..=2000 {
        assert_eq!(pipeline.call(&[b"INCR", b"others"]).expect("an answer"), Value::Integer(n));
    }
    let grown = resident(&server).saturating_sub(before);
    assert!(grown < 1 << 30, "a hundred stalled readers of 100 MiB each cost {grown} bytes");
    drop(stalled);
    is_served(&server);
}

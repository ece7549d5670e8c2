//! Malicious clients, and clients that behave as badly: the server survives, its memory stays
//! bounded, and other clients are served.

use crate::commands::Random;
use crate::support::wire::{Pipeline, Value};
use crate::support::{Answer, Client, Server, hundreds_of_connections, wait_until};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::Duration;

/// Returns the resident memory of the server, in bytes.
fn resident(server: &Server) -> u64 {
    let path = format!("/proc/{}/statm", server.child.id());
    let text = std::fs::read_to_string(path).expect("the server lives");
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages");
    pages * 4096
}

/// Returns the number of open file descriptors of the server.
fn descriptors(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).expect("the server lives").count()
}

/// Returns the number of open sockets. Files are not counted: they vary as the log prepares
/// segments.
fn sockets(server: &Server) -> usize {
    let names = std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).expect("the server lives");
    let targets = names.filter_map(|name| std::fs::read_link(name.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// Returns the processor time of the server, in hundredths of a second.
fn processor_time(server: &Server) -> u64 {
    let text =
        std::fs::read_to_string(format!("/proc/{}/stat", server.child.id())).expect("the server lives");
    // After the name, which may contain anything: state is the first field, user and system time
    // are the 12th and 13th.
    let fields = text.rsplit(") ").next().expect("fields").split(' ');
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
}

fn is_served(server: &Server) {
    let mut client = server.client();
    assert_eq!(client.call(&["SET", "witness", "1"]).expect("an answer"), Answer::Status("OK".into()));
    assert_eq!(client.call(&["GET", "witness"]).expect("an answer"), Answer::Bulk("1".into()));
}

/// Waits until all other clients are gone; returns the server's only client.
fn wait_alone(server: &Server) -> Client {
    let mut alone = None;
    wait_until("all other clients are gone", || {
        let mut client = server.client();
        // May be an error while the limit of clients is reached.
        if let Ok(Answer::Bulk(list)) = client.call(&["CLIENT", "LIST"])
            && list.lines().count() == 1
        {
            alone = Some(client);
        }
        alone.is_some()
    });
    alone.expect("it was waited for")
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout can be set");
    stream
}

/// Sends bytes and reads until the server has nothing more to send.
fn send_and_drain(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(server);
    // The server may close the connection while the test still sends; the kernel may then report
    // that.
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

/// Returns the peak of resident memory of the server, in bytes.
fn peak_resident(server: &Server) -> u64 {
    let path = format!("/proc/{}/status", server.child.id());
    let text = std::fs::read_to_string(path).expect("the server lives");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux reports the peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn long_replies_to_many_clients_that_do_not_read_keep_to_one_budget() {
    const CLIENTS: usize = 40;
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off", "--maxmemory-clients", "128mb"]);
    server.client().call(&["SET", "key", &"v".repeat(1 << 20)]).expect("an answer");
    let before = resident(&server);
    // Each of 40 clients requests 100 MiB with one kilobyte.
    let request = format!("*101\r\n$4\r\nMGET\r\n{}", "$3\r\nkey\r\n".repeat(100));
    let silent: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut stream = connect(&server);
            // An unoptimised build on a busy machine copies gigabytes slowly.
            stream.set_read_timeout(Some(Duration::from_mins(5))).expect("a timeout can be set");
            stream.write_all(request.as_bytes()).expect("the server reads");
            stream
        })
        .collect();
    for stream in &silent {
        // The first byte of the answer or of an error, or the end of the stream.
        match stream.peek(&mut [0]) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
        is_served(&server);
    }
    let grown = peak_resident(&server).saturating_sub(before);
    println!("{CLIENTS} clients asked for 100 MiB each: memory grew by {} MiB at most", grown >> 20);
    // The budget, and as much again while the largest reply is copied to a larger buffer.
    assert!(grown < 256 << 20, "memory grew by {grown} bytes");
    drop(silent);
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
    // The server stops reading while the test does not read, so sending needs a thread of its own.
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
    let _turn = hundreds_of_connections();
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

#[test]
fn ten_thousand_connections_leave_nothing_behind() {
    let _turn = hundreds_of_connections();
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off", "--maxclients", "50"]);
    is_served(&server);
    let alone = wait_alone(&server);
    let (sockets_before, memory_before) = (sockets(&server), resident(&server));
    drop(alone);
    let mut crowd = std::collections::VecDeque::new();
    for number in 0..10_000_usize {
        let mut stream = connect(&server);
        // Some send nothing, some stop in the middle, some leave replies unread; at times there are
        // more than the limit.
        let said: &[u8] = match number % 4 {
            0 => b"",
            1 => b"*2\r\n$3\r\nGET\r\n$5\r\nab",
            2 => b"PING\r\nSUBSCRIBE a\r\n",
            _ => b"BLPOP nothing 0\r\n",
        };
        let _ = stream.write_all(said);
        crowd.push_back(stream);
        if crowd.len() > 40 + number % 30 {
            crowd.pop_front();
        }
    }
    drop(crowd);
    let _alone = wait_alone(&server);
    wait_until("all sockets are given back", || sockets(&server) <= sockets_before);
    let grown = resident(&server).saturating_sub(memory_before);
    assert!(grown < 16 << 20, "memory grew by {grown} bytes");
    is_served(&server);
}

#[test]
fn a_process_without_descriptors_waits_for_some_instead_of_spinning() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off"]);
    let mut known = server.client();
    known.call(&["DURABLE", "SET", "k", "v"]).expect("an answer");
    let names =
        || std::fs::read_dir(directory.path()).expect("names").map(|name| name.expect("a name").file_name());
    let is_spare = |name: std::ffi::OsString| name.to_string_lossy().starts_with("spare-");
    let is_temporary = |name: std::ffi::OsString| name.to_string_lossy().contains("tmp");
    wait_until("the log has what it keeps ready", || names().any(is_spare) && !names().any(is_temporary));
    let limit = |number: usize| {
        let pid = server.child.id().to_string();
        let set = Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={number}:")]).status();
        assert!(set.expect("prlimit (util-linux) is installed").success());
    };
    limit(descriptors(&server) + 3);
    let mut crowd: Vec<TcpStream> = (0..20).map(|_| connect(&server)).collect();
    for stream in &mut crowd {
        stream.write_all(b"PING\r\n").expect("the kernel takes it");
    }
    let before = processor_time(&server);
    std::thread::sleep(Duration::from_secs(2));
    let used = processor_time(&server) - before;
    assert!(used < 50, "{used} hundredths of a second of processor time in two seconds");
    assert_eq!(known.call(&["GET", "k"]).expect("a connected client is served"), Answer::Bulk("v".into()));
    let changed = known.call(&["DURABLE", "SET", "k", "w"]).expect("an answer");
    assert_eq!(changed, Answer::Status("OK".into()), "the log needs no descriptor to go on");
    limit(1000);
    for stream in &mut crowd {
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).expect("every client is served in the end");
        assert_eq!(&answer, b"+PONG\r\n");
    }
}

#[test]
fn three_hundred_clients_that_send_a_byte_at_a_time_leave_the_others_alone() {
    let _turn = hundreds_of_connections();
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off"]);
    is_served(&server);
    let before = resident(&server);
    let mut slow: Vec<TcpStream> = (0..300).map(|_| connect(&server)).collect();
    let request = b"*3\r\n$3\r\nSET\r\n$6\r\nslowly\r\n$20000\r\nxxxxxxxxxxxxxxxx";
    let mut brisk = server.client();
    let mut answered = 0;
    for byte in request {
        for stream in &mut slow {
            stream.write_all(&[*byte]).expect("a byte is taken");
        }
        for _ in 0..20 {
            answered += 1;
            assert_eq!(brisk.call(&["INCR", "brisk"]).expect("an answer"), Answer::Integer(answered));
        }
    }
    let grown = resident(&server).saturating_sub(before);
    assert!(grown < 300 * (64 << 10), "300 slow clients cost {grown} bytes");
    assert_eq!(brisk.call(&["EXISTS", "slowly"]).expect("an answer"), Answer::Integer(0));
}

#[test]
fn a_subscriber_that_stalls_costs_no_more_than_its_limit_and_is_disconnected() {
    const MESSAGES: i64 = 8000;
    /// The publisher waits for the fast subscriber to read, so that only the stalled one falls
    /// behind.
    const AHEAD: i64 = 64;
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--durability", "off"]);
    let mut stalled = server.client();
    stalled.call(&["SUBSCRIBE", "news"]).expect("an answer");
    let mut brisk = server.client();
    brisk.call(&["SUBSCRIBE", "news"]).expect("an answer");
    let before = resident(&server);
    let (seen, was_seen) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        for _ in 0..MESSAGES {
            let message = brisk.read().expect("every message arrives").array();
            assert_eq!(message[0], Answer::Bulk("message".into()));
            seen.send(()).expect("the publisher waits for it");
        }
    });
    let mut publisher = server.client();
    let news = "n".repeat(64 << 10);
    let (mut reached, mut most) = (0, 0);
    for number in 0..MESSAGES {
        reached += publisher.call(&["PUBLISH", "news", &news]).expect("an answer").integer();
        if number >= AHEAD {
            was_seen.recv().expect("the brisk subscriber reads on");
        }
        if number % 100 == 0 {
            most = most.max(resident(&server).saturating_sub(before));
        }
    }
    reading.join().expect("the brisk subscriber has them all");
    assert!(reached < 2 * MESSAGES, "the stalled subscriber was disconnected in the middle");
    // The stalled subscriber's limit of 32 MiB, in a buffer that grows by doubling, and data in
    // transit.
    assert!(most < 160 << 20, "of {} bytes published {most} were in memory", MESSAGES * (64 << 10));
    is_served(&server);
}

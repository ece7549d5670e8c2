//! Few open files: clients and visitors are turned away before the log runs out of them.

mod support;

use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use support::{Answer, Server, free_port};

/// A server that is allowed so many open files, and the arguments given.
fn limited(files: u32, dir: &std::path::Path, args: &[&str]) -> Server {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_tidemark")]);
    command.args(["serve", "--dir", &dir.to_string_lossy(), "--log-segment-bytes", "65536"]).args(args);
    Server::spawn(command)
}

#[test]
fn idle_http_connections_do_not_keep_the_log_from_growing() {
    let directory = tempfile::tempdir().expect("a directory");
    let http = free_port();
    let server =
        limited(256, directory.path(), &["--maxclients", "64", "--http", &format!("127.0.0.1:{http}")]);
    // Some wait in the kernel; where its queue is full, further ones are not even connected.
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], http));
    let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
    let visitors: Vec<TcpStream> = (0..300).map_while(connect).collect();
    for mut visitor in visitors.iter().take(100) {
        let _ = visitor.write_all(b"GET /health/live HTTP/1.1\r\n");
    }
    let mut client = server.client();
    let value = "x".repeat(30_000);
    for _ in 0..50 {
        let answer = client.call(&["SET", "key", &value]).expect("an answer");
        assert_eq!(answer, Answer::Status("OK".into()), "new files of the log can be opened");
    }
    drop(server.client());
}

#[test]
fn more_clients_get_their_descriptors_or_the_change_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = limited(300, directory.path(), &["--maxclients", "100"]);
    let answer = server.client().call(&["CONFIG", "SET", "maxclients", "5000"]).expect("an answer");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.child.id())).expect("Linux");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("such a limit");
    let allowed: u64 = line.split_whitespace().nth(3).and_then(|word| word.parse().ok()).expect("a number");
    let shown = server.client().call(&["CONFIG", "GET", "maxclients"]).expect("an answer").array();
    match answer {
        Answer::Status(_) => assert!(allowed >= 5000, "{allowed} open files"),
        Answer::Error(text) => {
            assert!(text.contains("open files"), "{text}");
            assert_eq!(shown[1], Answer::Bulk("100".into()), "a refused change has no effect");
        }
        other => panic!("{other:?}"),
    }
}

//! Few open files: clients and HTTP connections are refused before the log runs out of files.

use crate::support::{Answer, Server, free_port, hundreds_of_connections};
use std::io::Write;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// Starts a server with a soft limit of `soft` open files, which it may raise to `hard` without a
/// privilege.
fn limited(soft: u32, hard: u32, dir: &std::path::Path, args: &[&str]) -> Server {
    let limits = format!("ulimit -S -n {soft} && ulimit -H -n {hard} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limits, env!("CARGO_BIN_EXE_tidemark")]);
    command.args(["serve", "--dir", &dir.to_string_lossy(), "--log-segment-bytes", "65536"]).args(args);
    Server::spawn(command)
}

#[test]
fn idle_http_connections_do_not_keep_the_log_from_growing() {
    let _turn = hundreds_of_connections();
    let directory = tempfile::tempdir().expect("a directory");
    let http = free_port();
    let server =
        limited(256, 256, directory.path(), &["--maxclients", "64", "--http", &format!("127.0.0.1:{http}")]);
    // Some wait in the kernel; when its queue is full, further ones are not even connected.
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

/// Returns the number of files that a process may open.
fn allowed(server: &Server) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.child.id())).expect("Linux");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("such a limit");
    line.split_whitespace().nth(3).and_then(|word| word.parse().ok()).expect("a number")
}

/// Returns whether a process may raise its hard limits: `CAP_SYS_RESOURCE`, which root has unless
/// it was dropped.
fn may_raise_hard_limits(server: &Server) -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).expect("Linux");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    u64::from_str_radix(effective.trim(), 16).expect("a mask") & (1 << CAP_SYS_RESOURCE) != 0
}

#[test]
fn more_clients_get_their_descriptors_or_the_change_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = limited(300, 1000, directory.path(), &["--maxclients", "100"]);
    let mut client = server.client();
    let mut set = |most: &str| client.call(&["CONFIG", "SET", "maxclients", most]).expect("an answer");
    let ok = Answer::Status("OK".into());
    assert_eq!(set("500"), ok, "the hard limit has room for them");
    assert!(allowed(&server) >= 500, "{} open files", allowed(&server));
    // Beyond the hard limit only the privilege decides.
    let (answer, shown) = if may_raise_hard_limits(&server) {
        assert_eq!(set("5000"), ok);
        assert!(allowed(&server) >= 5000, "{} open files", allowed(&server));
        ("raised", "5000")
    } else {
        let Answer::Error(text) = set("5000") else { panic!("5000 clients have no room in 1000 files") };
        assert!(text.contains("open files"), "{text}");
        ("refused", "500")
    };
    let config = client.call(&["CONFIG", "GET", "maxclients"]).expect("an answer").array();
    assert_eq!(config[1], Answer::Bulk(shown.into()), "the change was {answer}");
}

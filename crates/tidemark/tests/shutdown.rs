//! Stopping politely loses nothing, whatever the durability.

mod support;

use support::{Answer, Server};

#[test]
fn sigterm_keeps_every_answered_write_in_every_mode() {
    for durability in ["always", "interval", "off"] {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Server::start(directory.path(), &["--durability", durability]);
        let mut client = server.client();
        for n in 0..1000 {
            let answer = client.call(&["INCR", &format!("key:{}", n % 10)]).expect("an answer");
            assert_eq!(answer, Answer::Integer(n / 10 + 1));
        }
        assert!(server.terminate().success(), "{durability}");
        let server = Server::start(directory.path(), &["--durability", durability]);
        let mut client = server.client();
        for n in 0..10 {
            let answer = client.call(&["GET", &format!("key:{n}")]).expect("an answer");
            assert_eq!(answer, Answer::Bulk("100".into()), "{durability}");
        }
    }
}

#[test]
fn two_servers_never_share_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let _server = Server::start(directory.path(), &[]);
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["serve", "--port", &support::free_port().to_string(), "--dir"])
        .arg(directory.path())
        .output()
        .expect("the binary runs");
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("lock") || said.contains("another"), "the reason is named: {said}");
}

#[test]
fn every_storage_and_format_of_the_log_serves_and_restarts() {
    for (storage, format, survives) in [
        ("file", "jsonl", true),
        ("file", "text", true),
        ("mmap", "binary", true),
        ("memory", "binary", false),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let arguments = ["--log-storage", storage, "--log-format", format, "--durability", "always"];
        let server = Server::start(directory.path(), &arguments);
        let mut client = server.client();
        assert_eq!(
            client.call(&["SET", "k", "\u{1}\u{2}é\n"]).expect("an answer"),
            Answer::Status("OK".into())
        );
        assert_eq!(client.call(&["RPUSH", "l", "a", "b"]).expect("an answer"), Answer::Integer(2));
        server.kill();
        let server = Server::start(directory.path(), &arguments);
        let expected = if survives { Answer::Bulk("\u{1}\u{2}é\n".into()) } else { Answer::Null };
        assert_eq!(server.client().call(&["GET", "k"]).expect("an answer"), expected, "{storage} {format}");
    }
}

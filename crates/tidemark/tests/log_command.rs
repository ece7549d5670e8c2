//! `tidemark log` beside a server that has stopped.

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{Answer, Server};

fn log(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    let (name, rest) = arguments.split_first().expect("a subcommand");
    command.arg("log").arg(name).arg("--dir").arg(directory).args(rest).output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_log_is_shown_verified_and_exported() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    for n in 0..3 {
        let ok = client.call(&["DURABLE", "SET", &format!("key:{n}"), "value"]).expect("an answer");
        assert_eq!(ok, Answer::Status("OK".into()));
    }
    assert!(server.terminate().success());

    let verified = log(directory.path(), &["verify"]);
    assert!(verified.status.success());
    assert!(text(&verified.stdout).starts_with("3 records (1 to 3) in 1 segments: good\n"), "{verified:?}");
    let shown = log(directory.path(), &["inspect"]);
    assert!(shown.status.success() && text(&shown.stdout).contains("1 to 3"), "{shown:?}");
    let exported = log(directory.path(), &["export"]);
    assert!(exported.status.success());
    assert_eq!(text(&exported.stdout).lines().count(), 3, "{exported:?}");
}

#[test]
fn a_kill_leaves_a_gap_that_is_shown_and_a_stop_does_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |arguments: &[&str]| {
        let server = Server::start(directory.path(), &[]);
        let mut client = server.client();
        assert_eq!(client.call(arguments).expect("an answer"), Answer::Status("OK".into()));
        server
    };
    run(&["DURABLE", "SET", "first", "value"]).kill();
    assert!(run(&["DURABLE", "SET", "second", "value"]).terminate().success());
    assert!(run(&["DURABLE", "SET", "third", "value"]).terminate().success());

    let verified = log(directory.path(), &["verify"]);
    let expected =
        "3 records (1 to 4294967297) in 2 segments: good\n1 gaps, each left by a stop that was not clean;";
    assert!(text(&verified.stdout).starts_with(expected), "{verified:?}");
    let shown = log(directory.path(), &["inspect"]);
    assert!(text(&shown.stdout).contains("gap: 2 to 4294967295 are lost, or were never used\n"), "{shown:?}");
    let exported = log(directory.path(), &["export"]);
    assert_eq!(text(&exported.stdout).lines().count(), 3, "{exported:?}");
    let refused = log(directory.path(), &["export", "--format", "binary"]);
    assert!(
        text(&refused.stderr).contains("export up to 1 and from 4294967296 on separately"),
        "{refused:?}"
    );
}

#[test]
fn a_directory_without_a_log_is_not_called_good() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing");
    for (path, said) in [(directory.path(), "there is no log in"), (&missing, "cannot read the directory")] {
        for command in ["verify", "inspect"] {
            let refused = log(path, &[command]);
            let message = text(&refused.stderr);
            assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
            assert!(message.contains(said) && message.contains("--dir"), "{message}");
        }
    }
}

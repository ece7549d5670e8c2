//! `tidemark log` on the files of a stopped server.

use crate::support::{Answer, Server, free_port};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

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
    assert!(text(&verified.stdout).starts_with("3 records (1 to 3) in 1 segment: good\n"), "{verified:?}");
    let shown = log(directory.path(), &["inspect"]);
    assert!(shown.status.success() && text(&shown.stdout).contains("1 to 3"), "{shown:?}");
    let exported = log(directory.path(), &["export"]);
    assert!(exported.status.success());
    let lines = text(&exported.stdout);
    assert_eq!(lines.lines().count(), 3, "{exported:?}");
    let first = lines.lines().next().expect("a line");
    let command = r#","kind":"command","commands":[{"db":0,"command":"set","args":["key:0","value"]}]}"#;
    assert!(first.starts_with(r#"{"lsn":1,"time_us":"#) && first.ends_with(command), "{first}");
    assert_eq!(text(&exported.stderr), "3 records exported as commands; 0 change no data\n");
    let raw = log(directory.path(), &["export", "--format", "jsonl", "--to", "2"]);
    assert_eq!(text(&raw.stderr), "2 records exported as jsonl\n");
    assert_eq!(text(&raw.stdout).lines().count(), 2, "{raw:?}");

    let refused = log(directory.path(), &["export", "--from", "10", "--to", "5"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert_eq!(
        text(&refused.stderr),
        "tidemark: --from 10 comes after --to 5: no record can lie between them\n"
    );
    let shown = text(&shown.stdout);
    let since = shown.lines().next().and_then(|line| line.rsplit_once("  since ")).expect("a time").1;
    assert!(since.len() == "2026-11-21T03:29:18.000250Z".len() && since.ends_with('Z'), "{since}");
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
    let expected = "3 records (1 to 4294967297) in 2 segments: good\n1 gap after unclean stops:";
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

/// Makes a server with 300 changes in several segments, and with snapshots that cover a part of
/// them.
fn filled(snapshots: usize) -> (TempDir, Server) {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &["--log-segment-bytes", "65536", "--snapshot-after", "0"]);
    let mut client = server.client();
    let value = "v".repeat(1000);
    for n in 0..300 {
        if n < snapshots * 100 && n % 100 == 99 {
            assert_eq!(client.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
        }
        let ok = client.call(&["SET", &format!("key:{n}"), &value]).expect("an answer");
        assert_eq!(ok, Answer::Status("OK".into()));
    }
    (directory, server)
}

/// Returns the directory after a clean stop.
fn stopped(snapshots: usize) -> TempDir {
    let (directory, server) = filled(snapshots);
    assert!(server.terminate().success());
    directory
}

/// Returns the directory after a kill, once all changes have been durable for so long that `END`
/// says so.
fn killed() -> TempDir {
    let (directory, server) = filled(0);
    let deadline = Instant::now() + Duration::from_mins(1);
    let durable = || {
        let end = std::fs::read(directory.path().join("END")).expect("the file");
        u64::from_le_bytes(end[16..24].try_into().expect("eight bytes"))
    };
    while durable() < 300 {
        assert!(Instant::now() < deadline, "END says that the records up to {} are durable", durable());
        sleep(Duration::from_millis(10));
    }
    server.kill();
    directory
}

fn files(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    paths.sort();
    paths
}

fn remove(paths: &[PathBuf]) {
    paths.iter().for_each(|path| std::fs::remove_file(path).expect("is removed"));
}

/// Returns the error of a server that does not start.
fn refusal(directory: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    let port = free_port().to_string();
    let output = command.args(["serve", "--port", &port, "--dir"]).arg(directory).output().expect("runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

/// Asserts that the server and `verify` refuse the directory for the same reason, which `inspect`
/// shows.
fn assert_refused(directory: &Path, reason: &str) {
    let refused = refusal(directory);
    assert!(refused.contains(reason), "{refused}");
    let said = refused.lines().last().expect("a line").trim_start_matches("tidemark: ");
    let verified = log(directory, &["verify"]);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    assert_eq!(text(&verified.stderr).trim_end().trim_start_matches("tidemark: "), said);
    let shown = log(directory, &["inspect"]);
    assert!(shown.status.success() && text(&shown.stdout).contains(said), "{said}: {shown:?}");
}

fn keys(directory: &Path) -> Answer {
    let server = Server::start(directory, &[]);
    let keys = server.client().call(&["DBSIZE"]).expect("an answer");
    assert!(server.terminate().success());
    keys
}

#[test]
fn a_log_of_which_durable_records_are_gone_is_refused_until_it_is_repaired() {
    for directory in [stopped(0), killed()] {
        assert_repairs_without_last_segment(directory.path());
    }
}

fn assert_repairs_without_last_segment(path: &Path) {
    let last = files(path, "segment-").pop().expect("a segment");
    let name = last.file_name().expect("a name").to_string_lossy().into_owned();
    let end = name[8..28].parse::<i64>().expect("the first record") - 1;
    remove(&[last]);
    let reason = format!(
        "up to 300 were durable, but the log ends at record {end}: {} records are missing",
        300 - end
    );
    assert_refused(path, &reason);

    let asked = log(path, &["repair"]);
    let report = format!("afterwards the last record is {end}\nrecords {} to 300 are missing; ", end + 1);
    assert!(!asked.status.success() && text(&asked.stdout).starts_with(&report), "{asked:?}");
    assert_refused(path, &reason);
    let repaired = log(path, &["repair", "--yes"]);
    assert!(repaired.status.success(), "{repaired:?}");
    let said = format!("done; what is left: {end} records (1 to {end}) in ");
    assert!(text(&repaired.stdout).lines().any(|line| line.starts_with(&said)), "{repaired:?}");
    assert!(log(path, &["verify"]).status.success());
    assert_eq!(keys(path), Answer::Integer(end));
}

#[test]
fn removing_what_says_that_records_were_durable_goes_on_without_the_rest() {
    for directory in [stopped(0), killed()] {
        assert_goes_on_without_records(directory.path());
    }
}

fn assert_goes_on_without_records(path: &Path) {
    remove(&files(path, "segment-"));
    remove(&files(path, "spare-"));
    assert_refused(path, "up to 300 were durable, but there are no records: 300 records are missing");
    remove(&files(path, "END"));
    assert_eq!(keys(path), Answer::Integer(0));
    let verified = log(path, &["verify"]);
    assert!(text(&verified.stdout).starts_with("no records in 0 segments: good\n"), "{verified:?}");
}

#[test]
fn a_bit_in_a_header_costs_no_record() {
    let directory = stopped(0);
    let path = directory.path();
    let first = &files(path, "segment-")[0];
    let mut bytes = std::fs::read(first).expect("the segment");
    bytes[30] ^= 1;
    std::fs::write(first, bytes).expect("is written");
    assert_refused(path, "the header's checksum does not match");
    let repaired = log(path, &["repair", "--yes"]);
    let said = "done; what is left: 300 records (1 to 300) in ";
    assert!(text(&repaired.stdout).contains(said), "{repaired:?}");
    assert_eq!(keys(path), Answer::Integer(300));
}

#[test]
fn a_log_that_begins_late_is_not_good_without_a_snapshot() {
    let directory = stopped(2);
    let path = directory.path();
    let verified = log(path, &["verify"]);
    assert!(verified.status.success(), "{verified:?}");
    assert!(
        !files(path, "segment-")[0].ends_with("segment-00000000000000000001.tide"),
        "the log begins late"
    );
    remove(&files(path, "snapshot-"));
    assert_refused(path, "where the log begins; restore the directory from a backup");
    let repaired = log(path, &["repair", "--yes"]);
    assert!(!repaired.status.success() && text(&repaired.stderr).contains("backup"), "{repaired:?}");
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

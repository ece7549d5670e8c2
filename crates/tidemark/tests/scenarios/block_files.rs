//! Blocks of series in the files of a real server: kills in the middle of snapshots, points that are
//! only in files, and what the tools report.

use crate::support::{Answer, Client, Server, call};
use std::path::Path;
use std::process::Command;

const ARGUMENTS: [&str; 10] = [
    "--log-segment-bytes",
    "65536",
    "--snapshot-after",
    "0",
    "--enable-debug-command",
    "local",
    "--durability",
    "always",
    "--series-memory",
    "100kb",
];

fn block_files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the data directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("blocks-"))
        .collect();
    names.sort();
    names
}

/// Adds `count` points to each of four series, and deletes another one. Returns when all are durable.
fn grow(client: &mut Client, round: u64, count: u64) {
    for series in 0..4_u64 {
        let key = format!("series:{series}");
        let mut command = vec!["TS.MADD".to_owned()];
        for index in round * count..(round + 1) * count {
            let value = (index * (index + series)) % 1_009;
            command.extend([key.clone(), (index * 10).to_string(), value.to_string()]);
        }
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let answer = call(client, &words);
        assert!(answer.array().iter().all(|one| !one.is_error()), "round {round}");
    }
}

/// Runs `tidemark log` and returns what it prints.
fn log(subcommand: &str, directory: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    let output = command.args(["log", subcommand, "--dir"]).arg(directory).output().expect("it runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn digest(client: &mut Client) -> Answer {
    client.call(&["DEBUG", "DIGEST"]).expect("an answer")
}

/// Returns the memory of a series as `TS.INFO` has it, its second field.
fn memory_usage(client: &mut Client) -> i64 {
    call(client, &["TS.INFO", "series:1"]).array()[3].integer()
}

#[test]
fn kills_while_blocks_are_written_lose_nothing_and_leave_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut before = None;
    for round in 0..12 {
        let server = Server::start(directory.path(), &ARGUMENTS);
        let mut client = server.client();
        if let Some(before) = before.take() {
            assert_eq!(digest(&mut client), before, "round {round}");
        } else {
            for series in 0..4 {
                client.call(&["TS.CREATE", &format!("series:{series}")]).expect("an answer");
            }
        }
        grow(&mut client, round, 3_000);
        before = Some(digest(&mut client));
        assert!(!client.call(&["BGSAVE"]).expect("an answer").is_error());
        std::thread::sleep(std::time::Duration::from_micros(700 * round));
        server.kill();
    }
    let server = Server::start(directory.path(), &ARGUMENTS);
    let mut client = server.client();
    assert_eq!(Some(digest(&mut client)), before);
    assert_eq!(client.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
    assert!(!block_files(directory.path()).is_empty());
    for series in 0..4 {
        assert_eq!(
            client.call(&["DEL", &format!("series:{series}")]).expect("an answer"),
            Answer::Integer(1)
        );
    }
    // Two snapshots are kept, and a thread frees large values and closes their files.
    while !block_files(directory.path()).is_empty() {
        call(&mut client, &["INCR", "n"]);
        assert_eq!(client.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
    }
}

#[test]
fn the_limit_of_points_in_memory_changes_while_the_server_runs_and_no_answer_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &ARGUMENTS);
    let mut client = server.client();
    for series in 0..4 {
        client.call(&["TS.CREATE", &format!("series:{series}")]).expect("an answer");
    }
    for round in 0..10 {
        grow(&mut client, round, 3_000);
    }
    let range = ["TS.RANGE", "series:1", "-", "+", "AGGREGATION", "avg", "7000"];
    let expected = client.call(&range).expect("an answer");
    let (before, usage) = (digest(&mut client), memory_usage(&mut client));
    assert_eq!(
        client.call(&["CONFIG", "SET", "series-memory", "1"]).expect("an answer"),
        Answer::Status("OK".into())
    );
    assert_eq!(client.call(&["SAVE"]).expect("an answer"), Answer::Status("OK".into()));
    // The answer of `SAVE` comes when points have left memory.
    let after = memory_usage(&mut client);
    assert!(after < usage / 2, "{after} of {usage}");
    assert_eq!(client.call(&range).expect("an answer"), expected);
    assert_eq!(digest(&mut client), before);
    assert!(server.terminate().success());

    let inspected = log("inspect", directory.path());
    assert!(inspected.contains("blocks-00000000000000000001.tide"), "{inspected}");
    assert!(inspected.contains("of the snapshot at record"), "{inspected}");
    let verified = log("verify", directory.path());
    assert!(verified.contains("1 block file of "), "{verified}");
    let name = directory.path().join(&block_files(directory.path())[0]);
    let mut bytes = std::fs::read(&name).expect("the file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&name, bytes).expect("the file can be changed");
    let inspected = log("inspect", directory.path());
    assert!(inspected.contains("the block's checksum does not match"), "{inspected}");
}

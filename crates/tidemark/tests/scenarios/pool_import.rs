//! `tidemark pool import` and `tidemark pool check`: the original's files, and pools that continue
//! from them.

use crate::support::{Answer, Server, call};
use std::path::Path;
use std::process::{Command, Output};

/// The original's sample configuration.
const CONFIGURATION: &str = r#"
working_dir: "./tmp"
pool:
  catalog:
    - { item_id: "diamond", quantity: 100, probability: 10 }
    - { item_id: "gold", quantity: 100, probability: 20 }
    - { item_id: "silver", quantity: 100, probability: 30 }
    - { item_id: "rock", quantity: 100, probability: 40 }
wal:
  max_file_size_kb: 1024
  flush_after_n_draw: 20
"#;

/// Returns a file of the original's log as a kill leaves it: open, with a length of 0 in its
/// header.
fn killed(records: &str) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    bytes[..8].copy_from_slice(b"lwnt\x01\0\0\0");
    bytes.extend_from_slice(records.as_bytes());
    bytes
}

/// Makes a working directory of the original that was killed after four draws, in the middle of
/// writing a fifth.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).expect("a disk");
    write("config.yaml", CONFIGURATION.as_bytes());
    write(
        "wal.000",
        &killed(
            "3,snapshot.json\n1,1,gold,0,true\n1,2,rock,0,true\n1,3,gold,0,true\n1,4,diamond,0,true\n1,5,si",
        ),
    );
    directory
}

fn tidemark(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidemark")).arg("pool").args(arguments).output().expect("runs")
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    text(&output.stdout) + &text(&output.stderr)
}

fn path(directory: &Path, name: &str) -> String {
    directory.join(name).to_str().expect("text").to_owned()
}

/// Returns the value of a name in a flat map.
fn field(answer: &Answer, name: &str) -> Answer {
    let map = answer.clone().array();
    let at = map.iter().position(|word| *word == Answer::Bulk(name.into())).expect(name);
    map[at + 1].clone()
}

#[test]
fn what_the_original_would_forget_is_found_and_goes_on() {
    let original = directory();
    let (from, config) = (original.path().to_str().expect("text"), path(original.path(), "config.yaml"));
    let report = tidemark(&["import", from, "--config", &config, "--dry-run"]);
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    let report = said(&report);
    for line in [
        "4 draws, 0 failed draws, 0 updates; the original would forget 4 of the draws",
        "6 bytes of an unfinished record cut off",
        "stock by the history:",
        "gold: 98 left, weight 20, 2 drawn",
        "silver: 100 left, weight 30, 0 drawn",
        "the next draw has the number 5",
    ] {
        assert!(report.contains(line), "{line} is missing in {report}");
    }

    let data = tempfile::tempdir().expect("a directory");
    let server = Server::start(data.path(), &[]);
    let port = server.port.to_string();
    let arguments = ["import", from, "--config", &config, "--key", "prizes", "-p", &port];
    let made = tidemark(&arguments);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let mut client = server.client();
    let state = call(&mut client, &["POOL.STATE", "prizes"]);
    assert_eq!(field(&state, "draws"), Answer::Integer(5), "numbers go on");
    let commitment = field(&state, "commitment");
    assert!(matches!(&commitment, Answer::Bulk(text) if said(&made).contains(text)), "{made:?}");
    let left: Vec<i64> =
        field(&state, "entries").array().iter().map(|entry| field(entry, "left").integer()).collect();
    assert_eq!(left, [99, 98, 100, 99]);
    assert_eq!(call(&mut client, &["POOL.DRAW", "prizes"]).array()[0], Answer::Integer(5));

    // A second import is refused.
    let again = tidemark(&arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("the pool exists"), "{again:?}");
    // The whole history is valid.
    let verified = tidemark(&["--dir", data.path().to_str().expect("text"), "verify", "prizes"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    assert!(
        said(&verified).contains("1 draw made again from the secret of 1 epoch (number 5)"),
        "{verified:?}"
    );
}

#[test]
fn a_catalogue_is_written_and_checked() {
    let original = directory();
    let (from, config) = (original.path().to_str().expect("text"), path(original.path(), "config.yaml"));
    let file = path(original.path(), "left.yaml");
    let written = tidemark(&["import", from, "--config", &config, "--output", &file]);
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    assert!(said(&written).contains("POOL.CREATE key FROM 5 YAML"), "{written:?}");
    let checked = said(&tidemark(&["check", &file]));
    assert!(checked.starts_with(
        "good: a catalogue of 4 items, odds are fixed, what is sold out makes the others likelier\n"
    ));
    assert!(
        checked.contains("   20.000000 %                   20                   98  gold\n"),
        "{checked}"
    );

    let checked = said(&tidemark(&["check", &config, "--items", "1"]));
    assert!(checked.starts_with("good: a configuration of the original of 4 items"), "{checked}");
    assert!(checked.contains("wal.flush_after_n_draw is not used here\n"), "{checked}");
    assert!(checked.ends_with("diamond\nand 3 more: --items 0 shows all\n"), "{checked}");
    // It is accepted as a catalogue without changes.
    let data = tempfile::tempdir().expect("a directory");
    let server = Server::start(data.path(), &[]);
    call(&mut server.client(), &["POOL.CREATE", "sample", "YAML", CONFIGURATION]);
}

#[test]
fn what_is_wrong_is_said() {
    let original = directory();
    let from = original.path().to_str().expect("text");
    let wrong = path(original.path(), "wrong.yaml");
    std::fs::write(
        &wrong,
        "items:\n- {id: car, weight: 1, quantity: 3}\n- {id: mug, wieght: 9, quantity: 100}\n",
    )
    .expect("a disk");
    let output = tidemark(&["check", &wrong]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("line 3, column 13: item 2 (\"mug\"): the key \"wieght\" is not known"),
        "{output:?}"
    );
    assert!(
        said(&tidemark(&["check", &path(original.path(), "wal.000")])).contains("is no format of catalogues")
    );
    assert!(said(&tidemark(&["check", &path(original.path(), "nothing")])).contains("cannot read"));

    // Without a configuration the initial stock is unknown.
    let output = tidemark(&["import", from, "--key", "prizes"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("give the original's configuration with --config"), "{output:?}");
    let empty = tempfile::tempdir().expect("a directory");
    let output = tidemark(&["import", empty.path().to_str().expect("text"), "--dry-run"]);
    assert!(
        output.status.code() == Some(1) && said(&output).contains("there is neither wal.NNN nor"),
        "{output:?}"
    );
    assert_eq!(tidemark(&["import", from]).status.code(), Some(2), "a key is needed");
    // Bytes in the middle that are no record are reported with their place.
    let damaged = killed("3,snapshot.json\n1,1,gold,0,true\nwhat\n1,2,gold,0,true\n");
    std::fs::write(original.path().join("wal.000"), damaged).expect("a disk");
    let config = path(original.path(), "config.yaml");
    let output = said(&tidemark(&["import", from, "--config", &config, "--dry-run"]));
    assert!(output.contains("1 lines unreadable") && output.contains("gold: 98 left"), "{output}");
}

/// A prize whose draw cannot be read would be available again.
#[test]
fn no_pool_is_made_of_what_has_gaps_unless_that_is_wanted() {
    let original = directory();
    let from = original.path().to_str().expect("text");
    let (config, file) = (path(original.path(), "config.yaml"), path(original.path(), "left.yaml"));
    let write = |name: &str, bytes: &[u8]| std::fs::write(original.path().join(name), bytes).expect("a disk");
    let draws = |numbers: std::ops::Range<u64>| {
        killed(&numbers.map(|number| format!("1,{number},gold,0,true\n")).collect::<Vec<_>>().concat())
    };
    let import = |more: &[&str]| {
        let _ = std::fs::remove_file(&file);
        tidemark(&[&["import", from, "--config", &config, "--output", &file], more].concat())
    };
    let (mut flipped, sound) = (draws(1..41), draws(1..41));
    flipped[0] ^= 1;
    write("wal.001", &draws(41..81));

    // No draw depends on a header.
    write("wal.000", &flipped);
    let output = import(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        said(&output).contains("damaged header") && said(&output).contains("gold: 20 left"),
        "{output:?}"
    );

    let mut torn = sound.clone();
    torn.truncate(100);
    let mut unreadable = sound.clone();
    unreadable[300] = 0xff;
    for (what, bytes) in [("torn", &torn), ("unreadable", &unreadable), ("foreign", &vec![b'x'; 999])] {
        write("wal.000", bytes);
        let output = import(&[]);
        assert_eq!(output.status.code(), Some(1), "{what}: {output:?}");
        assert!(said(&output).contains("or give --accept-gaps"), "{what}: {output:?}");
        assert!(!Path::new(&file).exists());
        assert_eq!(import(&["--accept-gaps"]).status.code(), Some(0), "{what}");
    }
    write("wal.000", &sound);
    std::fs::remove_file(original.path().join("wal.001")).expect("it is there");
    write("wal.002", &draws(81..82));
    assert!(said(&import(&[])).contains("there is no file between wal.000 and wal.002"));
    assert!(!Path::new(&file).exists());
}

//! Only the owner of a data directory can read it: neither values nor the secrets of future draws
//! are exposed.

use crate::support::{Server, call, free_port};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// Returns the error of a program that refuses to serve.
fn refused(directory: &Path, flags: &[&str]) -> String {
    let port = free_port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--port", &port, "--dir"]).arg(directory).args(flags);
    let output = command.output().expect("the binary runs");
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn the_directory_and_each_file_are_private_whatever_the_umask() {
    let parent = tempfile::tempdir().expect("a directory");
    for (storage, format) in [("file", "binary"), ("mmap", "binary"), ("file", "jsonl")] {
        let directory = parent.path().join(format!("{storage}-{format}"));
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "umask 000; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_tidemark"),
            "serve",
            "--dir",
        ]);
        command.arg(&directory).args(["--log-storage", storage, "--log-format", format]);
        let server = Server::spawn(command);
        let mut client = server.client();
        call(&mut client, &["SET", "k", "v"]);
        call(&mut client, &["SAVE"]);
        assert!(server.terminate().success());
        assert_eq!(mode(&directory), 0o700);
        let files: Vec<_> = fs::read_dir(&directory).expect("it is there").collect();
        assert!(files.len() >= 3, "a lock, a snapshot and a segment");
        for file in files {
            let path = file.expect("a name").path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn a_directory_that_others_can_open_is_refused_unless_it_is_empty_or_allowed() {
    let directory = tempfile::tempdir().expect("a directory");
    set_mode(directory.path(), 0o755);
    assert!(Server::start(directory.path(), &[]).terminate().success());
    assert_eq!(mode(directory.path()), 0o700, "it was empty");
    for open in [0o755, 0o750, 0o701] {
        set_mode(directory.path(), open);
        let said = refused(directory.path(), &[]);
        let advice =
            format!("run `chmod 700 {}`, or allow it with --private-dir no", directory.path().display());
        assert!(said.contains(&format!("(mode {open:03o})")) && said.contains(&advice), "{said}");
    }
    assert!(Server::start(directory.path(), &["--private-dir", "no"]).terminate().success());
    assert_eq!(mode(directory.path()), 0o701, "it is the owner's");
}

#[test]
fn what_is_exported_of_a_log_is_private() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path(), &[]);
    let mut client = server.client();
    call(&mut client, &["POOL.CREATE", "k", "ITEMS", "car", "1", "1"]);
    call(&mut client, &["POOL.DRAW", "k"]);
    assert!(server.terminate().success());
    for (name, command) in [("export", &["log", "export"][..]), ("audit", &["pool", "audit", "k"])] {
        let file = directory.path().join(name);
        let mut run = Command::new(env!("CARGO_BIN_EXE_tidemark"));
        run.args(command).arg("--dir").arg(directory.path()).arg("--output").arg(&file);
        let output = run.output().expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(mode(&file), 0o600, "{name}");
    }
}

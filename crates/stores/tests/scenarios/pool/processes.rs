//! Two processes that open the same folder.

use super::support::{open, options, serve};
use std::process::Command;
use std::sync::Arc;
use tidemark_log::{FileStorage, Format, OpenError};
use tidemark_stores::PoolLogError;

const FOLDER: &str = "TIDEMARK_TEST_POOL_FOLDER";

#[test]
fn a_second_owner_in_the_same_process_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let storage = || Arc::new(FileStorage::new(folder.path()).expect("a folder"));
    let service = serve(open(storage(), &options(Format::Binary)).expect("a pool"));
    let refused = open(storage(), &options(Format::Binary)).map(|_| ());
    assert!(matches!(refused, Err(PoolLogError::Open(OpenError::Locked { .. }))), "{refused:?}");
    assert!(service.draw().is_ok(), "the first one is not disturbed");
    service.stop().expect("the log is well");
    assert!(open(storage(), &options(Format::Binary)).is_ok());
}

#[test]
fn a_second_process_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let storage = Arc::new(FileStorage::new(folder.path()).expect("a folder"));
    let _service = serve(open(storage, &options(Format::Binary)).expect("a pool"));
    let program = std::env::current_exe().expect("this program");
    let mut second = Command::new(program);
    second.args(["--exact", "pool::processes::as_a_second_process", "--ignored", "--nocapture"]);
    let output = second.env(FOLDER, folder.path()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("is in use by another process"), "{said}");
}

/// Opens the folder in the second process.
#[test]
#[ignore = "started by another test"]
fn as_a_second_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let storage = Arc::new(FileStorage::new(folder).expect("a folder"));
    let refused = open(storage, &options(Format::Binary)).map(|_| ());
    println!("{}", refused.expect_err("another process has it"));
}

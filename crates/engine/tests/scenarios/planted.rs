//! Planted faults of members of a group: a test of this binary finds each. The fault is planted in a
//! process of its own, by the environment.

use std::process::Command;
use tidemark_fault::{Fault, VARIABLE};

/// Runs a test in a process with or without a fault. Returns whether it passes, and its output.
fn run(test: &str, fault: Option<Fault>) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().expect("this test's binary"));
    command.args(["--exact", test, "--nocapture"]).env_remove(VARIABLE);
    if let Some(fault) = fault {
        command.env(VARIABLE, fault.name());
    }
    let output = command.output().expect("a child process");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn finds(fault: Fault, test: &str, message: &str) {
    let (passes, output) = run(test, None);
    assert!(passes && output.contains("1 passed"), "{test} without {fault}: {output}");
    let (passes, output) = run(test, Some(fault));
    assert!(!passes && output.contains(message), "{test} with {fault}: {output}");
}

#[test]
fn half_a_transaction_on_a_follower_is_found() {
    let test = "following::a_reader_of_a_follower_sees_all_changes_of_a_record_or_none";
    finds(Fault::HalfTransaction, test, "half a transaction");
}

#[test]
fn a_snapshot_without_the_sessions_of_once_is_found() {
    finds(Fault::SessionsNotSaved, "once::a_snapshot_has_the_sessions", "a snapshot has the sessions");
}

#[test]
fn a_snapshot_that_is_cut_ahead_of_memory_is_found() {
    finds(
        Fault::SnapshotAhead,
        "following::a_snapshot_of_a_follower_is_the_state_at_its_cut",
        "a snapshot without it has record",
    );
}

#[test]
fn an_expired_key_that_can_come_back_is_found() {
    finds(
        Fault::ExpiredUnlogged,
        "following::a_leader_that_shows_a_key_as_expired_has_removed_it_by_a_record",
        "the removal is logged",
    );
}

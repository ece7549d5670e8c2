//! Runs a test in a process of its own, where nothing else is measured or changed.

use std::process::Command;

/// Whether this process was started for this test alone. If it was not, runs the test in a process
/// in which the environment variable has this value, and returns false once the test has passed
/// there.
pub(crate) fn is_alone(module: &str, test: &str, variable: &str, value: &str) -> bool {
    if std::env::var(variable).as_deref() == Ok(value) {
        return true;
    }
    // Paths of tests begin after the name of their binary.
    let (_, module) = module.split_once("::").expect("a module of this binary");
    let mut again = Command::new(std::env::current_exe().expect("this binary has a path"));
    again.args([&format!("{module}::{test}"), "--exact", "--nocapture", "--test-threads=1"]);
    let output = again.env(variable, value).output().expect("this binary can be started again");
    let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
    false
}

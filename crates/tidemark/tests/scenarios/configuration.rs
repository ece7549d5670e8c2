//! Settings from the environment and the command line, as the program itself reads them.

use std::process::{Command, Output};

fn print_config(variables: &[(&str, &str)], flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(["serve", "--print-config"]).args(flags);
    command.env_remove("TIDEMARK_CONFIG").envs(variables.iter().copied());
    command.output().expect("the program runs")
}

fn printed(variables: &[(&str, &str)], flags: &[&str]) -> String {
    let output = print_config(variables, flags);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(variables: &[(&str, &str)], flags: &[&str]) -> String {
    let output = print_config(variables, flags);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn every_name_of_a_setting_has_its_variable() {
    assert!(printed(&[("TIDEMARK_REQUIREPASS", "secret")], &[]).contains("\nrequirepass = \"secret\"\n"));
    assert!(printed(&[("TIDEMARK_PASSWORD", "secret")], &[]).contains("\nrequirepass = \"secret\"\n"));
    assert!(printed(&[("TIDEMARK_IO_THREADS", "3")], &[]).contains("\nthreads = 3\n"));
    let both = printed(&[("TIDEMARK_PASSWORD", "a")], &["--requirepass", "b"]);
    assert!(both.contains("\nrequirepass = \"b\"\n"), "a flag wins over a variable, whatever their names");
    let both = printed(&[("TIDEMARK_DURABILITY", "always")], &["--appendfsync", "no"]);
    assert!(both.contains("\ndurability = \"off\"\n"));
}

#[test]
fn variables_that_contradict_each_other_are_refused_without_their_values() {
    let error = refused(&[("TIDEMARK_PASSWORD", "topsecret"), ("TIDEMARK_REQUIREPASS", "topsecret")], &[]);
    assert!(error.contains("TIDEMARK_REQUIREPASS and TIDEMARK_PASSWORD"), "{error}");
    assert!(!error.contains("topsecret"), "{error}");
    let error = refused(&[("TIDEMARK_DURABILITY", "always"), ("TIDEMARK_APPENDFSYNC", "no")], &[]);
    assert!(error.contains("TIDEMARK_DURABILITY and TIDEMARK_APPENDFSYNC"), "{error}");
}

#[test]
fn a_password_that_is_refused_is_not_repeated() {
    let secret = "topsecret".repeat(2_000);
    for name in ["PASSWORD", "REQUIREPASS"] {
        let error = refused(&[(&format!("TIDEMARK_{name}"), &secret)], &[]);
        assert!(error.contains(&format!("TIDEMARK_{name}")) && !error.contains("topsecret"), "{error}");
    }
}

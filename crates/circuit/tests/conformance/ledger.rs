//! The account of the specification's scenarios: which are proven, which make no sense in Rust, and that none is missing.
//!
//! A scenario is proven by the one test of this binary whose name starts with its id. What makes no sense in Rust is read from
//! the sources beside this one: their `NOT_APPLICABLE` lists.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

/// The groups of the specification, and how many scenarios each has.
const GROUPS: &[(&str, u32)] = &[
    ("SHP", 10),
    ("BNK", 7),
    ("BSN", 6),
    ("CAP", 3),
    ("CEL", 18),
    ("CLR", 22),
    ("CLO", 3),
    ("CIR", 62),
    ("CND", 20),
    ("CTX", 34),
    ("CUR", 12),
    ("ISO", 6),
    ("EXT", 52),
    ("FIB", 184),
    ("FLO", 96),
    ("MIR", 12),
    ("PIN", 18),
    ("FAN", 17),
    ("NAM", 105),
    ("PIP", 41),
    ("MAP", 19),
    ("VAR", 6),
    ("POO", 13),
    ("POR", 26),
    ("RES", 6),
    ("SCO", 11),
    ("SNK", 8),
    ("SLO", 30),
    ("STA", 49),
    ("SUB", 11),
    ("ONC", 11),
    ("SBR", 27),
    ("TIC", 16),
    ("OLD", 5),
    ("XTR", 15),
];

/// The id of a scenario as the specification writes it.
fn id(group: &str, number: u32) -> String {
    match (group, number) {
        ("NAM", _) | ("FIB", 97..) => format!("{group}-{number:03}"),
        _ => format!("{group}-{number:02}"),
    }
}

fn all() -> Vec<String> {
    GROUPS.iter().flat_map(|(group, count)| (1..=*count).map(|number| id(group, number))).collect()
}

/// The id that a test's name starts with: `fib_35_chance_of_one` gives `FIB-35`.
fn id_of_test(path: &str) -> Option<String> {
    let mut words = path.rsplit("::").next()?.split('_');
    let (group, number) = (words.next()?, words.next()?);
    let is_id = group.len() == 3 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_id.then(|| format!("{}-{number}", group.to_uppercase()))
}

/// The ids of the tests that this binary runs.
fn proven() -> Vec<String> {
    let list = |arguments: &[&str]| {
        let binary = env::current_exe().expect("this binary has a path");
        let output = Command::new(binary).args(arguments).output().expect("it can be started again");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("names of tests are text")
    };
    assert_eq!(list(&["--list", "--format=terse", "--ignored"]), "", "an ignored test proves nothing");
    let tests = list(&["--list", "--format=terse"]);
    tests.lines().filter_map(|line| id_of_test(line.strip_suffix(": test")?)).collect()
}

/// The ids that the sources of the scenarios list as not applicable, each with a reason.
fn not_applicable() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut ids = Vec::new();
    for entry in fs::read_dir(folder).expect("the sources of the scenarios") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("ledger.rs") {
            ids.append(&mut listed_in(&fs::read_to_string(&path).expect("a source")));
        }
    }
    ids
}

fn listed_in(source: &str) -> Vec<String> {
    let Some((_, list)) = source.split_once("NOT_APPLICABLE: &[(&str, &str)] =") else { return Vec::new() };
    let (list, _) = list.split_once("];").expect("the end of the list");
    let entries = list.split('(').skip(1);
    let listed = entries.filter_map(|entry| {
        let mut texts = entry.split('"').skip(1).step_by(2);
        let (id, reason) = (texts.next()?, texts.next()?);
        assert!(reason.len() > 5, "{id} needs a reason");
        Some(id.to_owned())
    });
    listed.filter(|id| id.len() >= 6 && id.as_bytes()[3] == b'-').collect()
}

#[test]
fn every_scenario_is_accounted_for_exactly_once() {
    let (proven, not_applicable) = (proven(), not_applicable());
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    for id in proven.iter().chain(&not_applicable) {
        *times.entry(id).or_default() += 1;
    }
    let all = all();
    let missing: Vec<&str> = all.iter().map(String::as_str).filter(|id| !times.contains_key(id)).collect();
    say(proven.len(), not_applicable.len(), &missing);

    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "more than once: {twice:?}");
    let unknown: Vec<_> = times.keys().filter(|id| !all.iter().any(|known| known == *id)).collect();
    assert!(unknown.is_empty(), "not in the specification: {unknown:?}");
    assert!(missing.is_empty(), "neither proven nor not applicable: {missing:?}");
}

/// Prints the account past the capture of tests' output, for who runs all checks.
fn say(proven: usize, not_applicable: usize, missing: &[&str]) {
    let count = missing.len();
    let mut text = vec![format!(
        "\nconformance: {proven} scenarios proven, {not_applicable} not applicable, {count} missing\n"
    )];
    if count > 0 {
        text.push(format!("conformance: missing {}\n", missing.join(" ")));
    }
    io::stdout().write_all(text.concat().as_bytes()).expect("an open standard output");
}

#[test]
fn ids_are_read_from_names_and_lists() {
    assert_eq!(id_of_test("fiber::fib_097_above"), Some("FIB-097".to_owned()));
    assert_eq!(id_of_test("ledger::ids_are_read_from_names"), None);
    assert_eq!(id_of_test("name::nam_x_is"), None);
    assert_eq!(
        (id("NAM", 7), id("FIB", 96), id("FIB", 97)),
        ("NAM-007".into(), "FIB-96".into(), "FIB-097".into())
    );
    let source = "const NOT_APPLICABLE: &[(&str, &str)] =\n&[(\"ABC-01\", \"Java: (absent) argument\"),\n \
                  (\"ABC-02\", \"the same: `[T]`\")];\n const OTHER: &[(&str, &str)] = &[(\"ABC-03\", \"elsewhere\")];";
    assert_eq!(listed_in(source), ["ABC-01", "ABC-02"]);
    assert_eq!(all().len(), 981);
}

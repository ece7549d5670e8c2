//! The account of the specification's scenarios: which are tested, which do not apply to Rust, and
//! that none is missing.
//!
//! A scenario is tested by the one test of this folder whose name starts with its id. The scenarios
//! that do not apply to Rust are read from the sources beside this one: their `NOT_APPLICABLE`
//! lists.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

/// The scenarios of the specification, one per line: the id, and whether it applies to `any`
/// language or only to `java`.
const SCENARIOS: &str = include_str!("scenarios.txt");

/// Scenarios that apply to languages other than Java, but not to Rust. An addition to this list
/// takes more than a reason.
const NEITHER_JAVAS_NOR_RUSTS: &[&str] = &[
    // A second implementation of the same interfaces.
    "FAN-09", "FIB-05", "FIB-154", "FLO-06", "FLO-14", "FLO-23", "POR-03", "SCO-08", "SUB-03", "TIC-06",
    // Arguments that no type allows: negative counts, values without an order, bounds of another
    // type.
    "FIB-120", "FIB-124", "FIB-142", "FIB-145", "FIB-173", "FLO-89", "FIB-16", "FIB-18", "FIB-20", "FIB-21",
    "FIB-25", "FIB-26", "FIB-28", "FIB-30", "FIB-33", "FIB-34", "VAR-05",
    // References that outlive their referent.
    "FLO-75", "FLO-77", "SBR-20", // Given up by the specification.
    "OLD-03",
];

/// The ids of all scenarios, and whether each applies to Java only.
fn all() -> BTreeMap<&'static str, bool> {
    let scenario = |line: &'static str| match line.split_once(' ') {
        Some((id, "java")) => (id, true),
        Some((id, "any")) => (id, false),
        _ => panic!("not a scenario: {line}"),
    };
    SCENARIOS.lines().map(scenario).collect()
}

/// The id that a test's name starts with: `fib_35_chance_of_one` gives `FIB-35`.
fn id_of_test(path: &str) -> Option<String> {
    let mut words = path.rsplit("::").next()?.split('_');
    let (group, number) = (words.next()?, words.next()?);
    let is_id = group.len() == 3 && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_id.then(|| format!("{}-{number}", group.to_uppercase()))
}

/// The module of the scenarios in this binary: the prefix of their tests' names.
const MODULE: &str = "conformance::";

/// The ids of the scenarios' tests that this binary runs.
fn proven() -> Vec<String> {
    let list = |arguments: &[&str]| {
        let binary = env::current_exe().expect("this binary has a path");
        let output =
            Command::new(binary).arg(MODULE).args(arguments).output().expect("it can be started again");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("names of tests are text")
    };
    assert_eq!(list(&["--list", "--format=terse", "--ignored"]), "", "an ignored test proves nothing");
    let tests = list(&["--list", "--format=terse"]);
    // The filter may match anywhere in a test's path; only matches at its start count.
    let paths = tests.lines().filter_map(|line| line.strip_prefix(MODULE)?.strip_suffix(": test"));
    paths.filter_map(id_of_test).collect()
}

/// The ids that the sources of the scenarios list as not applicable, each with a reason.
fn not_applicable() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/conformance");
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
    let missing: Vec<&str> = all.keys().copied().filter(|id| !times.contains_key(id)).collect();
    say(proven.len(), not_applicable.len(), &missing);

    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "more than once: {twice:?}");
    let unknown: Vec<_> = times.keys().filter(|id| !all.contains_key(*id)).collect();
    assert!(unknown.is_empty(), "not in the specification: {unknown:?}");
    assert!(missing.is_empty(), "neither proven nor not applicable: {missing:?}");
}

#[test]
fn what_makes_sense_in_other_languages_is_left_out_by_name_only() {
    let (all, not_applicable) = (all(), not_applicable());
    let left_out: BTreeSet<&str> =
        not_applicable.iter().map(String::as_str).filter(|id| all.get(id) != Some(&true)).collect();
    assert_eq!(left_out, NEITHER_JAVAS_NOR_RUSTS.iter().copied().collect());
}

/// Prints the account past the capture of tests' output, for the full run of all checks. Whether
/// the counted tests pass is for those tests to report.
fn say(proven: usize, not_applicable: usize, missing: &[&str]) {
    let count = missing.len();
    let mut text = vec![format!(
        "\nconformance: {proven} scenarios have a test, {not_applicable} are not applicable, {count} missing\n"
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
    let source = "const NOT_APPLICABLE: &[(&str, &str)] =\n&[(\"ABC-01\", \"Java: (absent) argument\"),\n \
                  (\"ABC-02\", \"the same: `[T]`\")];\n const OTHER: &[(&str, &str)] = &[(\"ABC-03\", \"elsewhere\")];";
    assert_eq!(listed_in(source), ["ABC-01", "ABC-02"]);
    let (all, lines) = (all(), SCENARIOS.lines().count());
    assert_eq!((all.len(), lines, all["FIB-097"], all["BNK-01"]), (981, 981, true, false));
}

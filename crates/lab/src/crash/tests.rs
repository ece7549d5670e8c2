//! The scenario client against servers that keep the contract and servers that break it. Servers are killed in the tests of
//! the whole program, where there is a binary.

use super::{CrashOptions, CrashScenario};
use crate::scenario::{Caller, Console, Scenario};
use crate::test_run::{self, figure, figure_of, value};
use crate::test_server;
use crate::watch::fake_server::{self, Flaw};
use serde_json::Value;

fn options(flaw: Flaw, flags: &[&str]) -> CrashOptions {
    let port = fake_server::start(flaw).to_string();
    let max_wait = fake_server::patience_with(flaw);
    let common = ["--host", "127.0.0.1", "--port", &port, "--max-wait", max_wait, "--iterations", "2"];
    let short = ["--updates", "60", "--update-interval", "1ms", "--poll-interval", "10ms", "--away", "20ms"];
    test_run::options(&[&common[..], &short, flags].concat())
}

fn bench(flaw: Flaw, flags: &[&str]) -> (bool, Value) {
    test_run::report::<CrashScenario>(&options(flaw, &[&["--json"], flags].concat())).unwrap()
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let options = test_run::options::<CrashOptions>(&[]);
    assert_eq!(
        (options.server.host.as_str(), options.server.port, options.binary),
        ("localhost", 7379, None)
    );
    assert_eq!(options.base_dir.to_str(), Some(".crash-recovery-bench"));
    assert_eq!((options.iterations, options.updates, options.scenario.name()), (5, 100, "client"));
    assert_eq!((options.wait.poll_interval.as_millis(), options.wait.max_wait.as_secs()), (20, 10));
    assert_eq!((options.stabilize_wait.as_secs(), options.report.json), (2, false));
}

#[test]
fn a_server_that_keeps_the_contract_is_exactly_once_with_all_documented_figures() {
    let (succeeded, report) = bench(Flaw::None, &[]);
    assert!(succeeded, "{report}");
    let second = |name| figure_of(&report, Value::Null, 2, name);
    for name in ["writes", "emissions_received", "writes_emitted"] {
        assert_eq!(second(name)["value"], 60, "{name}: {report}");
    }
    for name in ["writes_missed", "writes_repeated"] {
        assert_eq!((&second(name)["value"], &second(name)["which"]), (&0.into(), &Value::Null), "{report}");
    }
    for name in ["recovery_time", "last_write_received"] {
        assert!(second(name)["value"].is_number(), "{name}: {report}");
    }
    assert_eq!(report["options"]["scenario"], "client");
    assert_eq!(second("resumptions")["value"], 1, "{report}");
    for name in ["exactly_once", "at_least_once", "at_most_once"] {
        let rate = figure(&report, name);
        assert_eq!((&rate["value"], &rate["unit"]), (&100.0.into(), &"%".into()), "{report}");
    }
    for name in ["iterations", "writes", "writes_repeated", "writes_missed"] {
        assert!(value(&report, name).is_u64(), "{name}: {report}");
    }
    for key in ["mean", "value", "p95", "p99"] {
        assert!(figure(&report, "recovery_time")[key].as_f64().unwrap() > 0.0, "{key}: {report}");
    }
}

#[test]
fn a_writer_without_pauses_still_writes_after_the_crash() {
    let (succeeded, report) =
        bench(Flaw::None, &["--update-interval", "0s", "--updates", "2000", "--keys", "1"]);
    assert!(succeeded, "{report}");
}

#[test]
fn every_way_of_losing_or_repeating_is_counted_as_what_it_is() {
    for (flaw, missed, duplicates, least, most) in [
        (Flaw::Drop(5), 1, 0, 50.0, 100.0),
        (Flaw::DropUnnumbered(5), 1, 0, 50.0, 100.0),
        (Flaw::Repeat(5), 0, 1, 100.0, 50.0),
        (Flaw::StaleValue(5), 1, 1, 50.0, 50.0),
    ] {
        let (succeeded, report) = bench(flaw, &["--keys", "1"]);
        assert!(!succeeded, "{flaw:?}: {report}");
        let counted = (value(&report, "writes_missed"), value(&report, "writes_repeated"));
        assert_eq!(counted, (&missed.into(), &duplicates.into()), "{flaw:?}: {report}");
        assert_eq!(*value(&report, "exactly_once"), 50.0, "{flaw:?}: {report}");
        let rates = (value(&report, "at_least_once"), value(&report, "at_most_once"));
        assert_eq!(rates, (&least.into(), &most.into()), "{flaw:?}: {report}");
        for name in ["writes_missed", "writes_repeated"] {
            for figure in [1, 2].map(|round| figure_of(&report, Value::Null, round, name)) {
                let which = figure["which"].as_array().map_or(0, Vec::len);
                assert_eq!(figure["value"], which, "{flaw:?}: {report}");
            }
        }
    }
}

#[test]
fn a_server_that_forgets_or_repeats_what_happened_meanwhile_fails() {
    for (flaw, missed, duplicates) in
        [(Flaw::SkipOnResume, true, false), (Flaw::ReplayOnResume, false, true), (Flaw::Forget, true, false)]
    {
        let (succeeded, report) = bench(flaw, &["--keys", "1"]);
        assert!(!succeeded, "{flaw:?}: {report}");
        assert_eq!(value(&report, "writes_missed").as_u64() > Some(0), missed, "{flaw:?}: {report}");
        assert_eq!(value(&report, "writes_repeated").as_u64() > Some(0), duplicates, "{flaw:?}: {report}");
        assert_eq!(*value(&report, "exactly_once"), 0.0, "{flaw:?}: {report}");
    }
}

#[test]
fn the_text_is_the_documented_one() {
    let (succeeded, text) = test_run::text::<CrashScenario>(&options(Flaw::None, &[])).unwrap();
    assert!(succeeded, "{text}");
    for line in [
        "=== Crash Recovery Benchmark Summary ===\nScenario: client\n",
        "Iterations: 2\nTotal updates: 120\n",
        "\n--- Delivery Guarantees ---\n",
        "Exactly-once rate: 100.0% (2/2 iterations with no duplicates and no loss)\n",
        "At-least-once rate: 100.0% (2/2 iterations with no loss)\n",
        "At-most-once rate: 100.0% (2/2 iterations with no duplicates)\n",
        "\n--- Data Integrity ---\nTotal duplicates: 0\nTotal missed: 0\n",
        "\n--- Recovery Time (ms) ---\n  p50=",
    ] {
        assert!(text.contains(line), "{line:?} is missing in:\n{text}");
    }
    let (succeeded, text) = test_run::text::<CrashScenario>(&options(Flaw::Forget, &[])).unwrap();
    assert!(!succeeded, "{text}");
    assert!(text.contains("was answered NotFound") && text.contains("Iteration 2: missed="), "{text}");
}

#[test]
fn an_absent_server_is_an_error_and_gives_no_result() {
    let port = test_server::refusing_port().to_string();
    let options = test_run::options(&["--host", "127.0.0.1", "--port", &port]);
    let (mut out, mut notes) = (Vec::new(), std::io::sink());
    let caller = Caller { arguments: Vec::new() };
    let result = CrashScenario::run(&options, &mut Console::new(&mut out, &mut notes, caller));
    let error = format!("{:#}", result.unwrap_err());
    assert!(error.contains("could not connect"), "{error}");
    assert!(out.is_empty());
}

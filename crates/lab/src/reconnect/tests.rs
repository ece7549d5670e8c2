//! The scenario against servers that keep the contract and servers that break it.

use super::{ReconnectOptions, ReconnectScenario};
use crate::test_run::{self, figure, figure_of, value};
use crate::watch::fake_server::{self, Flaw};
use serde_json::Value;

fn options(flaw: Flaw, flags: &[&str]) -> ReconnectOptions {
    let port = fake_server::start(flaw).to_string();
    let common = ["--host", "127.0.0.1", "--port", &port, "--max-wait", fake_server::patience_with(flaw)];
    let short = ["--iterations", "2", "--poll-interval", "10ms"];
    test_run::options(&[&common[..], &short, flags].concat())
}

fn bench(flaw: Flaw, flags: &[&str]) -> (bool, Value) {
    test_run::report::<ReconnectScenario>(&options(flaw, &[&["--json"], flags].concat())).unwrap()
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let options = test_run::options::<ReconnectOptions>(&[]);
    assert_eq!((options.server.host.as_str(), options.server.port), ("localhost", 7379));
    assert_eq!((options.iterations, options.warmup_emissions, options.updates_while_away), (10, 5, 10));
    assert_eq!((options.wait.poll_interval.as_millis(), options.wait.max_wait.as_millis()), (50, 5000));
    assert_eq!((options.client_prefix.as_str(), options.report.json), ("reconnect-bench", false));
}

#[test]
fn a_server_that_keeps_the_contract_passes_with_all_documented_figures() {
    let (succeeded, report) = bench(Flaw::None, &[]);
    assert!(succeeded, "{report}");
    for name in [
        "reconnect_time",
        "resume_time",
        "total_time",
        "last_lsn_before",
        "first_lsn_after",
        "emissions_missed",
        "emissions_repeated",
        "emissions_received",
    ] {
        assert!(figure_of(&report, Value::Null, 2, name)["value"].is_number(), "{name}: {report}");
    }
    for name in ["reconnect_time", "resume_time", "total_time"] {
        let figure = figure(&report, name);
        assert_eq!(figure["unit"], "ms", "{name}: {report}");
        for key in ["value", "p95", "p99", "mean"] {
            assert!(figure[key].is_number(), "{name}, {key}: {report}");
        }
    }
    for name in ["iterations", "emissions_missed", "emissions_repeated"] {
        assert!(value(&report, name).is_number(), "{name}: {report}");
    }
    let first = |name| &figure_of(&report, Value::Null, 1, name)["value"];
    assert_eq!(*first("emissions_received"), 5 + 10 + 1);
    assert!(first("first_missed_time").as_f64() >= first("total_time").as_f64(), "{report}");
    assert!(first("all_missed_time").as_f64() >= first("first_missed_time").as_f64(), "{report}");
    assert!(first("missed_rate").as_f64() > Some(0.0), "{report}");
    assert!(value(&report, "missed_rate").as_f64() > Some(0.0), "{report}");
    assert!(first("first_lsn_after").as_u64() > first("last_lsn_before").as_u64(), "{report}");
}

#[test]
fn nothing_before_or_nothing_missed_is_right_as_well() {
    for flags in [&["--warmup-emissions", "0"][..], &["--updates-while-away", "0"]] {
        let (succeeded, report) = bench(Flaw::None, flags);
        assert!(succeeded, "{flags:?}: {report}");
    }
}

#[test]
fn every_way_of_losing_or_repeating_fails_and_is_counted() {
    for (flaw, missed, duplicates) in [
        (Flaw::SkipOnResume, 2, 0),
        (Flaw::ReplayOnResume, 0, 2),
        (Flaw::Drop(3), 1, 0),
        (Flaw::DropUnnumbered(9), 1, 0),
        (Flaw::Repeat(16), 0, 1),
        // The publisher's last update reaches only who has come back.
        (Flaw::Forget, 2 * 11, 0),
    ] {
        let (succeeded, report) = bench(flaw, &[]);
        assert!(!succeeded, "{flaw:?}: {report}");
        assert_eq!(*value(&report, "emissions_missed"), missed, "{flaw:?}: {report}");
        assert_eq!(*value(&report, "emissions_repeated"), duplicates, "{flaw:?}: {report}");
    }
}

#[test]
fn the_text_is_the_documented_one() {
    let (succeeded, text) = test_run::text::<ReconnectScenario>(&options(Flaw::None, &[])).unwrap();
    assert!(succeeded, "{text}");
    for line in [
        "=== Subscription Reconnection Benchmark Summary ===\n",
        "Iterations: 2\nWarmup emissions per iteration: 5\n",
        "\nReconnection Time (TCP connect, ms):\n  p50=",
        "\nResume Time (EMITRECONNECT, ms):\n  p50=",
        "\nTotal Reconnect+Resume Time (ms):\n  p50=",
        "\nData Integrity:\n  Total missed emissions: 0\n  Total duplicate emissions: 0\n",
    ] {
        assert!(text.contains(line), "{line:?} is missing in:\n{text}");
    }
    let (succeeded, text) = test_run::text::<ReconnectScenario>(&options(Flaw::Forget, &[])).unwrap();
    assert!(!succeeded, "{text}");
    assert!(text.contains("Iteration 1: EMITRECONNECT answered SUBSCRIPTION_NOT_FOUND"), "{text}");
}

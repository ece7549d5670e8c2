//! The scenario against servers that keep the contract and servers that break it.

use super::{FanOutOptions, FanOutScenario};
use crate::test_run::{self, figure_of, value};
use crate::watch::fake_server::{self, Flaw};
use serde_json::Value;

fn options(flaw: Flaw, flags: &[&str]) -> FanOutOptions {
    let port = fake_server::start(flaw).to_string();
    let common = ["--host", "127.0.0.1", "--port", &port, "--max-wait", fake_server::patience_with(flaw)];
    // The floor needs the whole program: the tests of the binary have it.
    let short = ["--subscribers", "5", "--rounds", "4", "--poll-interval", "10ms", "--floor=false"];
    test_run::options(&[&common[..], &short, flags].concat())
}

fn bench(flaw: Flaw) -> (bool, Value) {
    test_run::report::<FanOutScenario>(&options(flaw, &["--json"])).unwrap()
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let options = test_run::options::<FanOutOptions>(&[]);
    assert_eq!((options.server.host.as_str(), options.server.port), ("localhost", 7379));
    assert_eq!((options.subscribers, options.rounds, options.warmup_rounds), (10_000, 20, 2));
    assert_eq!((options.value_bytes, options.floor, options.report.json), (16, true, false));
    assert_eq!((options.wait.poll_interval.as_millis(), options.wait.max_wait.as_millis()), (50, 5000));
}

#[test]
fn a_server_that_keeps_the_contract_passes() {
    let (succeeded, report) = bench(Flaw::None);
    assert!(succeeded, "{report}");
    assert_eq!(*value(&report, "emissions_received"), 5 * (2 + 4));
    assert_eq!(*value(&report, "rounds"), 4);
    assert!(figure_of(&report, "floor", Value::Null, "last_subscriber_time").is_null(), "{report}");
    for round in 1..=4 {
        let time = |name| figure_of(&report, Value::Null, round, name)["value"].as_f64().unwrap();
        assert!(time("last_subscriber_time") >= time("median_subscriber_time"), "{report}");
    }
    assert!(figure_of(&report, Value::Null, 5, "last_subscriber_time").is_null(), "{report}");
}

#[test]
fn every_way_of_losing_or_repeating_fails_and_is_counted() {
    // Each round has five emissions, and the first two rounds are not measured. That a number is missing is seen when the next one
    // comes, so that the round behind it is not measured either.
    for (flaw, name, measured) in [
        (Flaw::Drop(3), "emissions_missed", 4..=4),
        (Flaw::Drop(13), "emissions_missed", 2..=2),
        (Flaw::DropUnnumbered(13), "emissions_missed", 3..=3),
        (Flaw::StaleValue(13), "emissions_missed", 3..=3),
        // What comes behind a subscriber's emission may come when the round is over.
        (Flaw::Swap(13), "emissions_missed", 1..=2),
        (Flaw::Swap(13), "emissions_late", 1..=2),
        (Flaw::Repeat(30), "emissions_repeated", 3..=4),
    ] {
        let (succeeded, report) = bench(flaw);
        assert!(!succeeded, "{flaw:?}: {report}");
        assert_eq!(*value(&report, name), 1, "{flaw:?}: {report}");
        let rounds = value(&report, "rounds").as_u64().unwrap();
        assert!(measured.contains(&rounds), "{flaw:?}: {report}");
    }
}

#[test]
fn the_text_is_the_documented_one() {
    let (succeeded, text) = test_run::text::<FanOutScenario>(&options(Flaw::None, &[])).unwrap();
    assert!(succeeded, "{text}");
    for line in [
        "=== Fan-Out Benchmark Summary ===\n",
        "Subscribers of one key: 5\nRounds: 4 (4 measured)\n",
        "\nFrom the SET to the last subscriber's emission (ms):\n  p50=",
        "\nServer Memory (resident, MiB):\n  before=unknown",
        "\nData Integrity:\n  Emissions received: 30\n  missed=0 duplicates=0",
    ] {
        assert!(text.contains(line), "{line:?} is missing in:\n{text}");
    }
}

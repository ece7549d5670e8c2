//! The reports of all scenarios, each read back by the schema, which refuses fields that it does not have.

use super::{Report, SCHEMA, Verdict};
use crate::circuit::CircuitScenario;
use crate::counter::CounterScenario;
use crate::crash::CrashScenario;
use crate::fan_out::FanOutScenario;
use crate::kv::{KvOptions, KvScenario};
use crate::pool::PoolScenario;
use crate::reconnect::ReconnectScenario;
use crate::scenario::Scenario;
use crate::test_run;
use crate::watch::fake_server::{self, Flaw};
use serde_json::Value;

fn port() -> String {
    fake_server::start(Flaw::None).to_string()
}

/// Runs a scenario with `--json` on a correct server, and reads its report back.
fn report<S: Scenario>(flags: &[&str]) -> Report {
    let port = port();
    let server = ["--json", "--host", "127.0.0.1", "--port", &port];
    let options = test_run::options::<S::Options>(&[&server[..], flags].concat());
    let (passed, report) = test_run::report::<S>(&options).unwrap();
    assert!(passed, "{report}");
    let report: Report = serde_json::from_value(report).unwrap();
    assert_eq!(report.options["port"], port.parse::<u16>().unwrap());
    assert_eq!(report.verdict, Verdict::passed());
    report
}

#[test]
fn the_report_of_every_scenario_reads_back() {
    let kv = ["--duration", "300ms", "--warmup", "0s", "--keyspace", "20", "--conns", "2", "--workers", "2"];
    let emissions = ["--reactive-bench", "--reactive-keyspace", "10"];
    report::<KvScenario>(&[&kv[..], &emissions].concat());
    let other = format!("redis://127.0.0.1:{}", port());
    let comparison =
        report::<KvScenario>(&[&kv[..], &emissions, &["--rounds", "2", "--against", &other]].concat());
    assert_eq!(comparison.servers.len(), 2);
    report::<ReconnectScenario>(&["--iterations", "2", "--poll-interval", "10ms"]);
    report::<CrashScenario>(&[
        "--iterations",
        "1",
        "--updates",
        "20",
        "--poll-interval",
        "10ms",
        "--away",
        "10ms",
    ]);
    let short = ["--subscribers", "3", "--rounds", "2", "--poll-interval", "10ms", "--floor=false"];
    report::<FanOutScenario>(&short);
}

#[test]
fn the_reports_of_counters_read_back() {
    for flags in [
        &["--ops=200", "--keys=2", "--json"][..],
        &["--ops=200", "--variant=gcra", "--max_latency_samples=0", "--json"],
        &["baselines", "--duration=50ms", "--goroutines=2", "--keys=2", "--json"],
    ] {
        let options = test_run::options(flags);
        let (passed, report) = test_run::report::<CounterScenario>(&options).unwrap();
        assert!(passed, "{report}");
        assert_eq!(report["servers"], Value::Array(Vec::new()));
    }
}

#[cfg(feature = "log")]
#[test]
fn the_report_of_series_reads_back() {
    use crate::time_series::TimeSeriesScenario;
    let options = test_run::options(&["--json", "--quick", "--like-tau"]);
    let (passed, report) = test_run::report::<TimeSeriesScenario>(&options).unwrap();
    assert!(passed, "{report}");
    assert_eq!(
        (&report["options"]["ingest-points"], &report["options"]["iterations"]),
        (&5_000.into(), &2.into())
    );
    let time = test_run::figure_of(&report, "core/segment_ingest", Value::Null, "iteration_time");
    assert!(time["p90"].as_u64() >= time["value"].as_u64() && time["count"] == 2, "{time}");
}

#[test]
fn the_reports_of_small_measurements_read_back() {
    let flags = ["--json", "--quick", "--bm", "ss"];
    let circuit = test_run::options(&[&flags[..], &["^IdOps.id_toString$"]].concat());
    let (_, report) = test_run::report::<CircuitScenario>(&circuit).unwrap();
    assert_eq!((&report["options"]["mode"], &report["options"]["quick"]), (&"ss".into(), &true.into()));
    assert!(test_run::figure_of(&report, "IdOps.id_toString", Value::Null, "score")["value"].is_number());
    let pool = test_run::options(&[&flags[..], &["^DrawOps.number$"]].concat());
    let (_, report) = test_run::report::<PoolScenario>(&pool).unwrap();
    assert!(report["options"].get("host").is_none(), "no server is measured: {report}");
    assert!(test_run::figure_of(&report, "DrawOps.number", Value::Null, "score")["value"].is_number());
}

#[test]
fn no_password_is_among_the_options_of_a_report() {
    let flags = ["--password", "secret", "--against", "redis://:secret@localhost"];
    let options = serde_json::to_value(test_run::options::<KvOptions>(&flags)).unwrap();
    assert!(!options.to_string().contains("secret"), "{options}");
    assert_eq!((&options["against"], &options["mix"]), (&"localhost:7379".into(), &"50:50".into()));
    assert_eq!((&options["cmd"], &options["duration"]), (&"GETSET".into(), &"30s".into()));
    assert_eq!((&options["op-timeout"], options.get("rate")), (&"5s".into(), None));
}

#[test]
fn the_documented_example_reads_back() {
    let page = include_str!("../../../../docs/benchmarks.md");
    let (_, example) = page.split_once("```json (not run: a measurement)\n").unwrap();
    let report: Report = serde_json::from_str(example.split_once("```").unwrap().0).unwrap();
    assert_eq!((report.schema, report.scenario.as_str()), (SCHEMA, KvScenario::NAME));
    assert!(report.verdict.has_passed());
}

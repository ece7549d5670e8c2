//! The lab of counters as a whole: every variant runs, its figures add up, and the flags do what
//! the original's do.

use crate::support::counters::{figures, parsed, said, summary, try_run};
use std::path::Path;
use std::process::Command;
use tidemark_lab::counter::{Variant, header};
use tidemark_lab::report::{Figure, Report};

fn variants() -> &'static [Variant] {
    <Variant as clap::ValueEnum>::value_variants()
}

#[test]
fn the_line_for_programs_begins_with_the_originals_fields_in_their_order() {
    let text = said(&["-variant=vsa", "-ops=1000", "-goroutines=4", "-keys", "8", "-churn", "25"]);
    let fields = summary(&text);
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    let original = [
        "variant",
        "ops",
        "duration_ns",
        "goroutines",
        "keys",
        "churn_pct",
        "p50_ns",
        "p95_ns",
        "p99_ns",
        "logical_writes",
        "db_calls",
        "write_delay_ns",
    ];
    assert_eq!(names[..original.len()], original);
    assert_eq!(fields[0].1, "vsa");
    let figures = figures(&text);
    assert_eq!(
        (figures["ops"], figures["goroutines"], figures["keys"], figures["churn_pct"]),
        (1000, 4, 8, 25)
    );
}

#[test]
fn the_report_has_the_originals_lines() {
    let text = said(&["-ops=20000", "-keys=8"]);
    for line in [
        "Variant: vsa  Ops: 20000  Goroutines: 32  Keys: 8  Churn: 50%",
        "Duration: ",
        "Latency p50: ",
        "Latency histogram ",
        "Writes: logical=",
        "Memory: Alloc=",
        "Contention (long ops >5\u{d7} median): ",
        "VSA |A_net| total: max=",
        "VSA commits: total=",
        "Summary: variant=vsa ",
    ] {
        assert!(text.lines().any(|said| said.starts_with(line)), "{line} is missing:\n{text}");
    }
}

#[test]
fn every_variant_runs_for_a_while_and_does_nothing_wrong() {
    for variant in variants() {
        let name = format!("-variant={variant}");
        let text = said(&[&name, "-duration=200ms", "-goroutines=4", "-keys=16", "-commit_interval=1ms"]);
        let figures = figures(&text);
        assert!(figures["ops"] > 0 && figures["duration_ns"] >= 200_000_000, "{text}");
        assert_eq!(
            figures["ops"],
            figures["refused"] + figures["admitted"] + figures["given_back"],
            "{text}"
        );
        let gated = summary(&text).into_iter().find(|(name, _)| name == "gated").unwrap().1;
        assert_eq!(gated == "yes", variant.is_gated());
    }
}

#[test]
fn what_counters_promise_holds_under_every_churn() {
    for variant in ["vsa", "quota", "exact"] {
        for churn in ["0", "25", "100"] {
            let name = format!("-variant={variant}");
            let text = said(&[
                &name,
                "-churn",
                churn,
                "-duration=100ms",
                "-goroutines=4",
                "-keys=3",
                "-threshold=16",
                "-commit_interval=1ms",
                "-initial_scalar=1000",
            ]);
            let figures = figures(&text);
            assert!(figures["max_uncommitted_key"] <= 16, "{text}");
            assert_eq!(figures["durable_minus_truth"], 0, "{text}");
            if variant != "vsa" {
                assert_eq!(figures["over_admitted"], 0, "{text}");
                assert!(figures["admitted"] - figures["given_back"] <= 3_000, "{text}");
            }
        }
    }
}

#[test]
fn counters_are_found_by_their_names_or_by_handles() {
    for (flag, lookup) in [("-lookup=handle", "handle"), ("-lookup=name", "name"), ("-variant=vsa", "name")] {
        let text = said(&[flag, "-ops=2000", "-keys=50", "-goroutines=2", "-threshold=5"]);
        assert!(summary(&text).contains(&("lookup".to_owned(), lookup.to_owned())), "{text}");
        let figures = figures(&text);
        assert_eq!((figures["ops"], figures["durable_minus_truth"]), (2000, 0), "{text}");
    }
}

#[test]
fn a_store_is_charged_as_the_original_charges_it() {
    let asked = |variant: &str, more: &[&str]| {
        let name = format!("-variant={variant}");
        let figures = figures(&said(&[&[name.as_str(), "-ops=1000", "-goroutines=2"], more].concat()));
        (figures["logical_writes"], figures["db_calls"])
    };
    assert_eq!(asked("atomic", &[]), (1000, 1000));
    assert_eq!(asked("token", &[]), (1000, 2000));
    assert_eq!(asked("leaky", &[]), (1000, 2000));
    assert_eq!(asked("gcra", &[]), (0, 0));
    // Every operation is written, the last batch by the final flush.
    let (writes, calls) = asked("batch", &["-batch_size=100", "-batch_interval=1h"]);
    assert!(writes == 1000 && (1..=10).contains(&calls), "{writes} {calls}");
    // No merge but the last, which is one call per replica.
    assert_eq!(asked("crdt", &["-replicas=3", "-merge_interval=1h"]), (1000, 1003));
    // Nothing cancels, so every operation is written once.
    let (writes, calls) = asked("vsa", &["-churn=0", "-threshold=100"]);
    assert!((1..=1000).contains(&writes) && calls <= writes, "{writes} {calls}");
}

#[test]
fn flags_may_have_one_dash_or_two_and_variables_stand_in_for_them() {
    let variables = [("HARNESS_KEYS", "7"), ("HARNESS_WORKERS", "3"), ("HARNESS_CHURN", "10")];
    let figures_of = |arguments: &[&str]| figures(&try_run(arguments, &variables).unwrap().1);
    let one = figures_of(&["-ops", "300", "-churn=20"]);
    let two = figures_of(&["--ops=300", "--churn", "20"]);
    for figures in [one, two] {
        assert_eq!(
            (figures["ops"], figures["keys"], figures["goroutines"], figures["churn_pct"]),
            (300, 7, 3, 20)
        );
    }
    let error = try_run(&["-ops=1"], &[("HARNESS_DURATION", "soon")]).unwrap_err();
    assert!(format!("{error:#}").starts_with("HARNESS_DURATION=soon: "), "{error:#}");
}

#[test]
fn wrong_flags_are_refused_with_a_reason() {
    for (arguments, reason) in [
        (["-variant=vsb"], "vsa"),
        (["-churn=101"], "101 is not in 0 to 100"),
        (["-keys=0"], "0 is not in 1 to"),
        (["-pprof"], "--profile"),
        (["-pprof=true"], "--profile"),
        (["-write_delay=50"], "a number and a unit"),
        (["-commit_interval=0"], "longer than 0"),
        (["-store=elsewhere"], "delay, memory"),
    ] {
        let error = parsed(&arguments).unwrap_err().to_string();
        assert!(error.contains(reason), "{arguments:?}: {error}");
    }
}

#[test]
fn baselines_are_a_table_with_the_originals_columns_and_every_variant() {
    let text = said(&["baselines", "--duration=100ms", "--goroutines=2", "--write_delay=0"]);
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    assert_eq!(first, header());
    assert!(first.starts_with(
        "Variant\tOps\tDuration\tOps/sec\tP50(us)\tP95(us)\tP99(us)\tLogicalWrites\tDBCalls\tOpsPerDBCall\t\
         Ops/sec(calc)\tOps/sec/key\tDBCalls/sec\tLogicalWrites/sec\t"
    ));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), variants().len());
    let columns = first.split('\t').count();
    assert!(rows.iter().all(|row| row.len() == columns && row.iter().all(|cell| !cell.is_empty())), "{text}");
    assert_eq!(rows[..3].iter().map(|row| row[0]).collect::<Vec<_>>(), ["token", "leaky", "vsa"]);
}

#[test]
fn a_sweep_is_a_table_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sweep.tsv");
    said(&["sweep", path.to_str().unwrap(), "--duration=50ms", "--goroutines=2", "--keys=2"]);
    let table = std::fs::read_to_string(&path).unwrap();
    assert_eq!(table.lines().next(), Some(header().as_str()));
    assert_eq!(table.lines().count(), 1 + 4 * 3 + 3 * 3);
}

#[test]
fn json_has_what_the_report_has() {
    let report: Report = serde_json::from_str(&said(&["-ops=500", "--json"])).unwrap();
    let value = |name: &str| {
        let figure = report.figures.iter().find(|figure| figure.name == name);
        figure.and_then(|figure| figure.value.as_u64())
    };
    assert_eq!((report.schema, report.scenario.as_str()), (1, "counter"));
    assert_eq!(value("operations"), Some(500));
    assert_eq!((&report.options["variant"], &report.options["ops"]), (&"vsa".into(), &500.into()));
    assert_eq!(
        (&report.options["commit_interval"], &report.options["action"]),
        (&"10ms".into(), &"run".into())
    );
    assert_eq!(value("durable_minus_truth"), Some(0));
    assert_eq!(value("promised_uncommitted_key"), Some(64));
    let latency = report.figures.iter().find(|figure| figure.name == "latency").unwrap();
    let counted: u64 = latency.histogram.iter().map(|bucket| bucket.count).sum();
    assert_eq!((latency.count, counted), (Some(500), 500));
    assert!(report.verdict.has_passed());
}

#[test]
fn baselines_are_one_report_in_which_each_figure_names_its_variant() {
    let flags = ["baselines", "--duration=50ms", "--goroutines=2", "--keys=2", "--write_delay=0", "--json"];
    let report: Report = serde_json::from_str(&said(&flags)).unwrap();
    assert_eq!(report.options.get("variant"), None);
    for variant in variants() {
        let is_its = |figure: &&Figure| figure.of.as_deref() == Some(variant.name());
        let names: Vec<&str> =
            report.figures.iter().filter(is_its).map(|figure| figure.name.as_str()).collect();
        for name in ["operations", "throughput", "cpu_per_operation"] {
            assert!(names.contains(&name), "{variant}: {names:?}");
        }
    }
    assert!(report.figures.iter().all(|figure| figure.of.is_some()));
}

/// Whether the system has a `perf` and lets this process use it.
fn may_profile(directory: &Path) -> bool {
    let record = Command::new("perf")
        .args(["record", "--quiet", "-F", "999", "-g", "-o"])
        .arg(directory.join("probe.perf.data"))
        .args(["--", "true"])
        .output();
    record.is_ok_and(|output| output.status.success())
}

/// Where the system has no `perf`, or does not let this process use it, the run fails with a
/// message that says so.
#[test]
fn profiles_are_written_into_a_folder() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("profiles");
    let flag = format!("-profile={}", folder.display());
    let run = try_run(&[&flag, "-duration=300ms", "-goroutines=2", "-keys=8"], &[]);
    if may_profile(directory.path()) {
        let (is_right, said) = run.unwrap();
        assert!(is_right, "{said}");
        let text = std::fs::read_to_string(folder.join("cpu.txt")).unwrap();
        assert!(text.contains("Samples:"), "{text}");
        assert!(std::fs::metadata(folder.join("cpu.perf.data")).unwrap().len() > 0);
        // This program's allocator counts.
        let heap = std::fs::read_to_string(folder.join("heap.tsv")).unwrap();
        assert!(heap.starts_with("BytesFrom\t") && heap.lines().count() > 1, "{heap}");
    } else {
        let error = format!("{:#}", run.unwrap_err());
        assert!(error.contains("perf"), "{error}");
    }
    assert!(!folder.join("perf.control").exists() && !folder.join("perf.acknowledged").exists());
}

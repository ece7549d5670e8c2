//! The lab of series as a whole: the original's scenarios are there by their names, run, and print
//! its lines; every fault is noticed.

use tidemark_lab::time_series::TimeSeriesScenario;

fn said(arguments: &[&str]) -> String {
    crate::support::micro::try_run::<TimeSeriesScenario>(arguments).unwrap()
}

fn original() -> Vec<&'static str> {
    include_str!("series_names/original.txt").lines().collect()
}

/// Returns the numbers of the line that begins so, in order.
fn numbers(text: &str, start: &str) -> Vec<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(start));
    let line = line.unwrap_or_else(|| panic!("no line {start:?}:\n{text}"));
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
    line.split(|letter| !is_part(letter)).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_originals_scenarios_print_its_three_lines_and_the_rate() {
    let text = said(&["--quick"]);
    assert_eq!(original().len(), 16);
    assert!(!text.contains("FAILED"), "{text}");
    for name in original() {
        let wall = numbers(&text, &format!("{name}: 2 iterations, wall mean "));
        assert!(wall[1] <= wall[0] && wall[0] <= wall[2], "{name}: {wall:?}");
        let percentiles = numbers(&text, &format!("{name}: p50="));
        assert!(percentiles[0] > 0.0 && text.contains(&format!("{name}: user ")), "{text}");
        assert!(text.lines().any(|line| line.starts_with(name) && line.contains("s/s, ")), "{text}");
    }
}

#[test]
fn every_fault_is_noticed_and_repaired() {
    let flags = ["--quick", "--fault-points", "200", "faults/"];
    for flags in [&flags[..], &[&flags[..], &["--like-tau"]].concat()] {
        let text = said(flags);
        let ours = ["faults/block_file_query_mild", "faults/block_file_query_aggressive"];
        for name in original().iter().filter(|name| name.starts_with("faults/")).chain(&ours) {
            let counts = numbers(&text, &format!("{name}: faults injected "));
            let counts: Vec<u64> = counts.into_iter().map(|count| count as u64).collect();
            let [injected, detected, refused, absorbed, repaired, _restored, wrong] = counts[..] else {
                panic!("{counts:?}")
            };
            assert!(injected >= 2, "{text}");
            assert_eq!([detected + refused + absorbed, repaired + absorbed, wrong], [injected, injected, 0]);
        }
    }
}

#[test]
fn patterns_select_scenarios_and_list_them() {
    let list = said(&["-l", "^core/segment"]);
    assert!(list.lines().all(|line| line.starts_with("core/segment_") && line.len() > 40), "{list}");
    assert!(list.lines().count() >= 3);
    let error = crate::support::micro::try_run::<TimeSeriesScenario>(&["no such"]).unwrap_err();
    assert!(error.to_string().contains("no scenario fits"), "{error}");
}

#[test]
fn the_file_system_of_logs_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let text = said(&["--quick", "--dir", path, "core/file_backend_ingest$"]);
    assert!(text.starts_with(&format!("logs are in {path}, on ")), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a log is left over");
}

//! Results in the format of JMH's JSON, for tools that read it.

use super::options::Plan;
use super::report::MicroResults;
use super::row::Row;
use super::series::{Series, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One entry of a result file. A comparison reads only the fields that it needs, so files of JMH
/// work too.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// `Suite.benchmark`, with a package prefix in files of JMH.
    pub(crate) benchmark: String,
    pub(crate) mode: String,
    #[serde(default)]
    pub(crate) threads: u32,
    #[serde(default)]
    pub(crate) forks: u32,
    #[serde(default)]
    pub(crate) warmup_iterations: u32,
    #[serde(default)]
    pub(crate) warmup_time: String,
    #[serde(default)]
    pub(crate) measurement_iterations: u32,
    #[serde(default)]
    pub(crate) measurement_time: String,
    pub(crate) primary_metric: Metric,
    #[serde(default)]
    pub(crate) secondary_metrics: BTreeMap<String, Metric>,
    /// What was measured, in one line. JMH has no such field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) measures: String,
}

/// A score with its samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metric {
    pub(crate) score: f64,
    #[serde(default)]
    pub(crate) score_error: Error,
    #[serde(default)]
    pub(crate) score_confidence: Vec<Error>,
    #[serde(default)]
    pub(crate) score_percentiles: BTreeMap<String, f64>,
    pub(crate) score_unit: String,
    #[serde(default)]
    pub(crate) raw_data: Vec<Vec<f64>>,
}

/// A number, or `NaN`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Error {
    Known(f64),
    Unknown(String),
}

impl Default for Error {
    fn default() -> Self {
        Error::Unknown("NaN".to_owned())
    }
}

/// Returns the entries of a run.
pub(crate) fn entries(report: &MicroResults<'_>, plan: &Plan) -> Vec<Entry> {
    report.rows.iter().map(|row| Entry::new(row, plan)).collect()
}

impl Entry {
    fn new(row: &Row<'_>, plan: &Plan) -> Self {
        let mut found = row.series().into_iter();
        let primary =
            found.next().map(|series| Metric::of(&series)).expect("a row has what it measures first");
        let others = found.filter_map(|series| Some((series.label.clone()?, Metric::of(&series))));
        let time = |time: std::time::Duration| format!("{} s", time.as_secs_f64());
        Entry {
            benchmark: row.benchmark.name().to_owned(),
            mode: row.mode_word().to_owned(),
            threads: 1,
            forks: plan.forks,
            warmup_iterations: plan.warmup_iterations,
            warmup_time: time(plan.warmup_time),
            measurement_iterations: plan.iterations,
            measurement_time: time(plan.time),
            primary_metric: primary,
            secondary_metrics: others.collect(),
            measures: row.benchmark.measures().to_owned(),
        }
    }

    /// Returns the primary and secondary metrics with the names used in comparisons.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = (String, &Metric)> {
        let name = self.short_name();
        let others = self.secondary_metrics.iter();
        let others = others.map(move |(label, metric)| (format!("{name}:{label}"), metric));
        std::iter::once((name.to_owned(), &self.primary_metric)).chain(others)
    }

    /// Returns the name without its package.
    pub(crate) fn short_name(&self) -> &str {
        match self.benchmark.rmatch_indices('.').nth(1) {
            Some((dot, _)) => self.benchmark.get(dot + 1..).unwrap_or(&self.benchmark),
            None => &self.benchmark,
        }
    }
}

impl Metric {
    fn of(series: &Series) -> Self {
        let Summary { score, error, spread, .. } = series.summary();
        let end = |sign: f64| error.map_or_else(Error::default, |error| Error::Known(score + sign * error));
        let percentiles = [("0.0", spread.min), ("50.0", spread.median), ("100.0", spread.max)];
        Metric {
            score,
            score_error: error.map_or_else(Error::default, Error::Known),
            score_confidence: vec![end(-1.0), end(1.0)],
            score_percentiles: percentiles.map(|(percent, value)| (percent.to_owned(), value)).into(),
            score_unit: series.unit.clone(),
            raw_data: series.samples.clone(),
        }
    }

    /// Returns all samples of all forks; only the score if a file has no samples.
    pub(crate) fn samples(&self) -> Vec<f64> {
        let samples = self.raw_data.concat();
        if samples.is_empty() { vec![self.score] } else { samples }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, entries};
    use crate::micro::options::{Mode, Plan};
    use crate::micro::test_report::{benchmark, report, row};

    #[test]
    fn the_fields_are_where_jmh_has_them() {
        let benchmark = benchmark("PipeOps.emit");
        let report = report(vec![row(&benchmark, Mode::AverageTime, &[1.0, 3.0])]);
        let json = serde_json::to_value(entries(&report, &Plan::quick())).unwrap();
        let at =
            |pointer: &str| json.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {json}")).clone();
        assert_eq!(at("/0/benchmark"), "PipeOps.emit");
        assert_eq!(at("/0/mode"), "avgt");
        assert_eq!(at("/0/primaryMetric/score"), 2.0);
        assert!(at("/0/primaryMetric/scoreError").as_f64().unwrap() > 600.0);
        assert_eq!(at("/0/primaryMetric/scoreUnit"), "ns/op");
        assert_eq!(at("/0/primaryMetric/rawData/0/1"), 3.0);
    }

    #[test]
    fn a_single_sample_has_no_error_as_in_jmh() {
        let benchmark = benchmark("PipeOps.emit");
        let report = report(vec![row(&benchmark, Mode::SingleShot, &[1.0])]);
        let json = serde_json::to_string(&entries(&report, &Plan::quick())).unwrap();
        assert!(json.contains(r#""scoreError":"NaN""#), "{json}");
        let back: Vec<Entry> = serde_json::from_str(&json).unwrap();
        assert_eq!(back[0].primary_metric.samples(), [1.0]);
    }

    #[test]
    fn a_file_of_jmh_is_understood_and_its_packages_are_left_out() {
        let json = r#"[{"jmhVersion": "1.37", "benchmark": "io.x.jmh.PipeOps.emit", "mode": "avgt", "threads": 1,
            "jvmArgs": [], "primaryMetric": {"score": 8.4, "scoreError": "NaN", "scoreConfidence": ["NaN", "NaN"],
            "scorePercentiles": {"0.0": 8.4}, "scoreUnit": "ns/op", "rawData": [[8.4]]}, "secondaryMetrics": {}}]"#;
        let entries: Vec<Entry> = serde_json::from_str(json).unwrap();
        assert_eq!(entries[0].short_name(), "PipeOps.emit");
        assert_eq!(Entry { benchmark: "emit".into(), ..entries[0].clone() }.short_name(), "emit");
    }
}

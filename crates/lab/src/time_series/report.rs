//! The results of a run, as text and as figures.

use super::fault_tally::FaultTally;
use super::row::Measured;
use crate::machine::Machine;
use crate::report::{Contents, Figures, Measured as _, Results, Verdict};
use std::fmt::{self, Display, Formatter};
use std::time::SystemTime;

/// The results of a run.
pub(super) struct TimeSeriesResults {
    pub(super) start: SystemTime,
    pub(super) end: SystemTime,
    pub(super) is_interrupted: bool,
    pub(super) measured: Vec<Measured>,
    /// Why scenarios failed, each a sentence.
    pub(super) failures: Vec<String>,
    /// Conditions of the measurement.
    pub(super) notes: Vec<String>,
}

impl Results for TimeSeriesResults {
    fn contents(&self) -> Contents {
        let mut figures = Figures::default();
        for one in &self.measured {
            figures.add_of(&one.name, |figures| one.add_figures(figures));
        }
        Contents {
            start: self.start,
            end: self.end,
            interrupted: self.is_interrupted,
            machine: Machine::this(),
            servers: Vec::new(),
            figures,
            notes: self.notes.clone(),
            verdict: Verdict::unless(self.failures.clone()),
        }
    }
}

impl Display for TimeSeriesResults {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for note in &self.notes {
            writeln!(formatter, "{note}")?;
        }
        for one in &self.measured {
            one.fmt(formatter)?;
        }
        for failure in &self.failures {
            writeln!(formatter, "FAILED {failure}")?;
        }
        if self.is_interrupted {
            writeln!(
                formatter,
                "interrupted: the last scenario may have fewer iterations, and others have none"
            )?;
        }
        Ok(())
    }
}

/// The original's three lines, and ours.
impl Display for Measured {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Measured { name, operation, operations, times_ns, resources, findings } = self;
        let [p50, p90, p99] = [50, 90, 99].map(|percent| self.percentile_ns(percent));
        let (mean, min, max) = (self.mean_ns(), self.min_ns(), self.max_ns());
        let count = times_ns.len();
        writeln!(
            formatter,
            "{name}: {count} iterations, wall mean {mean:.0} ns, min {min} ns, max {max} ns"
        )?;
        let per_second = 1e9 / mean;
        writeln!(formatter, "{name}: p50={p50}ns p90={p90}ns p99={p99}ns throughput={per_second:.0} ops/s")?;
        writeln!(
            formatter,
            "{name}: user {} us, sys {} us, rss {} KB, faults major {} minor {}, csw vol {} inv {}",
            resources.user_us,
            resources.system_us,
            resources.peak_kib,
            resources.major_faults,
            resources.minor_faults,
            resources.voluntary_switches,
            resources.involuntary_switches
        )?;
        write!(
            formatter,
            "{name}: {operations} {operation}s an iteration, {} {operation}s/s, {:.2} ns a {operation} (best {:.2})",
            rate(self.operations_per_second()),
            self.operation_ns(mean),
            self.operation_ns(min as f64)
        )?;
        if let Some(bytes) = findings.bytes_per_point {
            write!(formatter, ", {bytes:.3} bytes a point")?;
        }
        if let Some(server_ns) = findings.server_ns {
            write!(formatter, ", {server_ns:.1} ns of the server's processor (best)")?;
        }
        writeln!(formatter)?;
        if let Some(faults) = findings.faults {
            let FaultTally { injected, detected, refused, absorbed, repaired, restored } = faults;
            writeln!(
                formatter,
                "{name}: faults injected {injected}, detected {detected}, refused {refused}, absorbed {absorbed}, \
                 repaired {repaired} (restored {restored}); values served wrong 0"
            )?;
        }
        Ok(())
    }
}

/// `105.63 M`
fn rate(per_second: f64) -> String {
    match per_second {
        1e9.. => format!("{:.2} G", per_second / 1e9),
        1e6.. => format!("{:.2} M", per_second / 1e6),
        1e3.. => format!("{:.2} k", per_second / 1e3),
        _ => format!("{per_second:.2}"),
    }
}

impl Measured {
    fn operation_ns(&self, iteration_ns: f64) -> f64 {
        iteration_ns / self.operations as f64
    }

    fn operations_per_second(&self) -> f64 {
        self.operations as f64 * 1e9 / self.mean_ns()
    }

    fn add_figures(&self, figures: &mut Figures) {
        if let Some(figure) = figures.add("iteration_time", "ns", self.percentile_ns(50)) {
            figure.count = Some(self.times_ns.len() as u64);
            figure.mean = self.mean_ns().number();
            figure.min = self.min_ns().number();
            figure.p90 = self.percentile_ns(90).number();
            figure.p99 = self.percentile_ns(99).number();
            figure.max = self.max_ns().number();
        }
        figures.add("throughput", "count/s", 1e9 / self.mean_ns());
        figures.add("operations", "count", self.operations);
        figures.add("operation_throughput", "count/s", self.operations_per_second());
        if let Some(figure) = figures.add("mean_operation_time", "ns", self.operation_ns(self.mean_ns())) {
            figure.min = self.operation_ns(self.min_ns() as f64).number();
        }
        let used = self.resources;
        figures.add("user_time", "us", used.user_us);
        figures.add("system_time", "us", used.system_us);
        figures.add("peak_memory", "B", used.peak_kib << 10);
        figures.add("major_page_faults", "count", used.major_faults);
        figures.add("minor_page_faults", "count", used.minor_faults);
        figures.add("voluntary_switches", "count", used.voluntary_switches);
        figures.add("involuntary_switches", "count", used.involuntary_switches);
        figures.add("bytes_per_point", "B", self.findings.bytes_per_point);
        figures.add("server_processor_time", "ns", self.findings.server_ns);
        if let Some(faults) = self.findings.faults {
            figures.add_counts([
                ("faults_injected", faults.injected),
                ("faults_detected", faults.detected),
                ("faults_refused", faults.refused),
                ("faults_absorbed", faults.absorbed),
                ("faults_repaired", faults.repaired),
                ("faults_restored", faults.restored),
                ("values_wrong", 0),
            ]);
        }
    }
}

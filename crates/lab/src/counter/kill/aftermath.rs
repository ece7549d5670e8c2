//! Results of a killed run, and their report.

use super::reckoning::{Distance, Totals, Units};
use crate::counter::settings::Settings;
use crate::counter::text::{grouped, time};
use crate::counter::variant::Variant;
use crate::machine::Machine;
use crate::report::{Contents, Figures, Results, Verdict};
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, SystemTime};

/// All results of a killed run.
#[derive(Clone, Debug)]
pub(in crate::counter) struct Aftermath {
    pub(super) start: SystemTime,
    pub(super) end: SystemTime,
    pub(in crate::counter) settings: Settings,
    /// From the first operation until the kill.
    pub(super) worked: Duration,
    /// Answered operations.
    pub(super) operations: u64,
    /// Units.
    pub(super) admitted: u64,
    /// Units.
    pub(super) given_back: u64,
    /// Operations in flight at the kill.
    pub(super) in_doubt: u64,
    /// The store compared with the answers.
    pub(super) distance: Distance,
    /// Time until the counters were loaded again.
    pub(super) restart: Duration,
    /// Units that the second process admitted before it refused every key; 0 for counters without a
    /// limit.
    pub(super) admitted_afterwards: u64,
    /// Both processes compared with the limit, if there is one.
    pub(super) totals: Option<Totals>,
    /// Distance between the store and the second process's account. Units.
    pub(super) durable_minus_truth: u128,
    pub(super) machine: Machine,
}

impl Aftermath {
    /// Returns the units of a key that may be `(lost, reserved)`.
    fn promised(&self) -> (u64, u64) {
        match self.settings.variant {
            Variant::Exact => (0, self.settings.block),
            _ => (self.settings.cap, self.settings.cap),
        }
    }

    /// Returns the ways in which counters broke their promises.
    fn faults(&self) -> Vec<String> {
        let (lost, reserved) = self.promised();
        let (lost, reserved) = (u128::from(lost), u128::from(reserved));
        let mut faults = Vec::new();
        let mut check = |units: u128, promised: u128, what: &str| {
            if units > promised {
                faults.push(format!("{units} units of a key {what}, and {promised} are promised"));
            }
        };
        check(self.distance.lost.largest, lost, "are lost");
        check(self.distance.reserved.largest, reserved, "are reserved");
        if let Some(totals) = &self.totals {
            check(totals.over_admitted.largest, lost, "were admitted beyond the limit");
            check(totals.under_admitted.largest, reserved, "were not admitted");
        }
        if self.durable_minus_truth > 0 {
            faults
                .push(format!("what the store has in the end is off by {} units", self.durable_minus_truth));
        }
        faults
    }

    /// Returns one line for programs. `-` marks an unknown value.
    fn summary(&self) -> String {
        let settings = &self.settings;
        let (lost, reserved) = self.promised();
        let total = |pick: fn(&Totals) -> u128| {
            self.totals.as_ref().map_or_else(|| "-".to_owned(), |totals| pick(totals).to_string())
        };
        let fields = [
            ("variant", settings.variant.to_string()),
            ("store", settings.store.to_string()),
            ("goroutines", settings.workers.to_string()),
            ("keys", settings.keys.to_string()),
            ("churn_pct", settings.churn.to_string()),
            ("worked_ns", self.worked.as_nanos().to_string()),
            ("ops", self.operations.to_string()),
            ("admitted", self.admitted.to_string()),
            ("given_back", self.given_back.to_string()),
            ("in_doubt", self.in_doubt.to_string()),
            ("lost", self.distance.lost.all.to_string()),
            ("lost_key", self.distance.lost.largest.to_string()),
            ("promised_lost_key", lost.to_string()),
            ("reserved", self.distance.reserved.all.to_string()),
            ("reserved_key", self.distance.reserved.largest.to_string()),
            ("promised_reserved_key", reserved.to_string()),
            ("restart_ns", self.restart.as_nanos().to_string()),
            ("admitted_afterwards", self.admitted_afterwards.to_string()),
            ("over_admitted", total(|totals| totals.over_admitted.all)),
            ("over_admitted_key", total(|totals| totals.over_admitted.largest)),
            ("under_admitted", total(|totals| totals.under_admitted.all)),
            ("under_admitted_key", total(|totals| totals.under_admitted.largest)),
            ("durable_minus_truth", self.durable_minus_truth.to_string()),
        ];
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("Kill: {}", fields.join(" "))
    }
}

impl Results for Aftermath {
    fn contents(&self) -> Contents {
        let (lost, reserved) = self.promised();
        let mut figures = Figures::default();
        figures.add("worked", "ns", self.worked.as_nanos());
        figures.add("restart_time", "ns", self.restart.as_nanos());
        figures.add_counts([
            ("operations", self.operations),
            ("admitted", self.admitted),
            ("given_back", self.given_back),
            ("in_doubt", self.in_doubt),
            ("promised_lost_key", lost),
            ("promised_reserved_key", reserved),
            ("admitted_afterwards", self.admitted_afterwards),
        ]);
        let mut add_units = |name: &str, units: Units| {
            figures.add(name, "count", units.all);
            figures.add(&format!("{name}_key"), "count", units.largest);
        };
        add_units("lost", self.distance.lost);
        add_units("reserved", self.distance.reserved);
        if let Some(totals) = &self.totals {
            add_units("over_admitted", totals.over_admitted);
            add_units("under_admitted", totals.under_admitted);
        }
        figures.add("durable_minus_truth", "count", self.durable_minus_truth);
        Contents {
            start: self.start,
            end: self.end,
            interrupted: false,
            machine: self.machine.clone(),
            servers: Vec::new(),
            figures,
            notes: Vec::new(),
            verdict: Verdict::unless(self.faults()),
        }
    }
}

impl Display for Aftermath {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let settings = &self.settings;
        let (lost, reserved) = self.promised();
        writeln!(
            formatter,
            "Variant: {}  Store: {}  Goroutines: {}  Keys: {}  Churn: {}%",
            settings.variant, settings.store, settings.workers, settings.keys, settings.churn
        )?;
        writeln!(
            formatter,
            "Killed: after {}, with {} operations answered (admitted={} given back={}) and {} under way",
            time(self.worked),
            grouped(self.operations.into()),
            grouped(self.admitted.into()),
            grouped(self.given_back.into()),
            grouped(self.in_doubt.into())
        )?;
        writeln!(
            formatter,
            "Lost: {} units were answered and are not in the store; {} of one key, of {} promised",
            grouped(self.distance.lost.all),
            grouped(self.distance.lost.largest),
            grouped(lost.into())
        )?;
        writeln!(
            formatter,
            "Reserved: {} units are in the store and were not answered; {} of one key, of {} promised",
            grouped(self.distance.reserved.all),
            grouped(self.distance.reserved.largest),
            grouped(reserved.into())
        )?;
        writeln!(formatter, "Restart: {}", time(self.restart))?;
        if let Some(totals) = &self.totals {
            writeln!(
                formatter,
                "Afterwards: {} units admitted until every key refused; over-admitted={} ({} of one key) \
                 under-admitted={} ({} of one key)",
                grouped(self.admitted_afterwards.into()),
                grouped(totals.over_admitted.all),
                grouped(totals.over_admitted.largest),
                grouped(totals.under_admitted.all),
                grouped(totals.under_admitted.largest)
            )?;
        }
        for fault in self.faults() {
            writeln!(formatter, "WRONG: {fault}")?;
        }
        writeln!(formatter, "{}", self.summary())
    }
}

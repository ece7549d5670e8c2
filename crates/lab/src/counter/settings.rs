//! Settings of a run: flags override environment variables, which override defaults.

use super::flags::Flags;
use super::lookup::Lookup;
use super::parse;
use super::target::Target;
use super::variant::Variant;
use crate::duration;
use clap::ValueEnum;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// All settings of a run, serialized under the names of their flags.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Measured variant.
    pub variant: Variant,
    /// Operations of all workers together, unless there is a duration.
    #[serde(rename = "ops")]
    pub operations: u64,
    /// Working time; zero: until the operations are done.
    #[serde(serialize_with = "duration::serialize")]
    pub duration: Duration,
    /// Number of worker threads.
    #[serde(rename = "goroutines")]
    pub workers: usize,
    /// Number of keys, all equally likely.
    pub keys: usize,
    /// Percentage of negative operations.
    pub churn: u32,
    /// Seed of the stream of operations.
    pub seed: u64,
    /// Uncommitted units at which a key is committed immediately.
    pub threshold: u64,
    /// Uncommitted units at which a key is committed at the next interval.
    pub low_threshold: u64,
    /// Limit of the uncommitted units of a key.
    pub cap: u64,
    /// Units that `exact` reserves at once.
    pub block: u64,
    /// Interval between checks for changes to commit.
    #[serde(serialize_with = "duration::serialize")]
    pub commit_interval: Duration,
    /// Age of the first uncommitted change at which everything is committed.
    #[serde(serialize_with = "duration::serialize")]
    pub commit_max_age: Duration,
    /// Limit of every key, for variants with limits.
    pub initial_scalar: u64,
    /// Operations in a batch of `batch`.
    pub batch_size: u64,
    /// Age at which a smaller batch is stored.
    #[serde(serialize_with = "duration::serialize")]
    pub batch_interval: Duration,
    /// Number of replicas of `crdt`.
    pub replicas: usize,
    /// Interval between merges of the replicas.
    #[serde(serialize_with = "duration::serialize")]
    pub merge_interval: Duration,
    /// Rate of the limiters, in units per second.
    pub rate: u64,
    /// Burst of the limiters, in units.
    pub burst: u64,
    /// Delay added to each call to the store.
    #[serde(serialize_with = "duration::serialize")]
    pub write_delay: Duration,
    /// Interval between latency samples, in operations.
    pub sample_every: u64,
    /// Number of latencies kept for all workers together; 0 records none.
    pub max_latency_samples: usize,
    /// How `vsa`, `quota` and `exact` find a counter.
    pub lookup: Lookup,
    /// Prefix of all keys' names; empty by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub names: String,
    /// Store that receives commits.
    pub store: Target,
}

impl Settings {
    /// Returns the defaults of the original's program.
    #[must_use]
    pub fn harness() -> Self {
        Settings {
            variant: Variant::Vsa,
            operations: 200_000,
            duration: Duration::ZERO,
            workers: 32,
            keys: 1,
            churn: 50,
            seed: 1,
            threshold: 64,
            low_threshold: 0,
            cap: 0,
            block: 0,
            commit_interval: Duration::from_millis(10),
            commit_max_age: Duration::from_millis(15),
            initial_scalar: 1_000_000,
            batch_size: 64,
            batch_interval: Duration::from_millis(10),
            replicas: 4,
            merge_interval: Duration::from_millis(25),
            rate: 10_000,
            burst: 100,
            write_delay: Duration::ZERO,
            sample_every: 1,
            max_latency_samples: 200_000,
            lookup: Lookup::Name,
            names: String::new(),
            store: Target::Simulated,
        }
    }

    /// Returns the defaults of the original's script for baselines.
    #[must_use]
    pub fn baselines() -> Self {
        Settings {
            duration: Duration::from_millis(750),
            keys: 128,
            threshold: 192,
            low_threshold: 96,
            commit_interval: Duration::from_millis(5),
            commit_max_age: Duration::from_millis(20),
            write_delay: Duration::from_micros(50),
            sample_every: 8,
            max_latency_samples: 100_000,
            ..Self::harness()
        }
    }

    /// Resolves each setting: the flag, else the environment variable from this function, else the
    /// default.
    ///
    /// A low threshold of 0 is half of the threshold, a cap of 0 the threshold, and a block of 0
    /// the cap.
    pub fn resolve(
        flags: &Flags,
        environment: &dyn Fn(&str) -> Option<String>,
        defaults: Self,
    ) -> anyhow::Result<Self> {
        let from = Environment(environment);
        let threshold = from.or(flags.threshold, "HARNESS_THRESHOLD", parse::units, defaults.threshold)?;
        let unless_zero = |value: u64, otherwise: u64| if value == 0 { otherwise } else { value };
        let low = from.or(
            flags.low_threshold,
            "HARNESS_LOW_THRESHOLD",
            parse::units_or_zero,
            defaults.low_threshold,
        )?;
        // Above the threshold it would have the same effect as the threshold.
        let low_threshold = unless_zero(low, (threshold / 2).max(1)).min(threshold);
        let cap =
            unless_zero(from.or(flags.cap, "HARNESS_CAP", parse::units_or_zero, defaults.cap)?, threshold);
        let block =
            unless_zero(from.or(flags.block, "HARNESS_BLOCK", parse::units_or_zero, defaults.block)?, cap);
        anyhow::ensure!(threshold <= cap, "threshold is {threshold}, which is more than cap, {cap}");
        let sample_every =
            from.or(flags.sample_every, "HARNESS_SAMPLE_EVERY", parse::count, defaults.sample_every)?;
        let settings = Settings {
            variant: from.or(flags.variant, "HARNESS_VARIANT", one_of, defaults.variant)?,
            operations: from.or(flags.ops, "HARNESS_OPS", parse::operations, defaults.operations)?,
            duration: from.or(flags.duration, "HARNESS_DURATION", parse::duration, defaults.duration)?,
            workers: from.or(flags.goroutines, "HARNESS_WORKERS", parse::workers, defaults.workers)?,
            keys: from.or(flags.keys, "HARNESS_KEYS", parse::keys, defaults.keys)?,
            churn: from.or(flags.churn, "HARNESS_CHURN", parse::percentage, defaults.churn)?,
            seed: from.or(flags.seed, "HARNESS_SEED", parse::count, defaults.seed)?,
            threshold,
            low_threshold,
            cap,
            block,
            commit_interval: from.or(
                flags.commit_interval,
                "HARNESS_COMMIT_INTERVAL",
                parse::interval,
                defaults.commit_interval,
            )?,
            commit_max_age: from.or(
                flags.commit_max_age,
                "HARNESS_MAX_AGE",
                parse::interval,
                defaults.commit_max_age,
            )?,
            initial_scalar: from.or(
                flags.initial_scalar,
                "HARNESS_INITIAL_SCALAR",
                parse::units_or_zero,
                defaults.initial_scalar,
            )?,
            batch_size: from.or(flags.batch_size, "HARNESS_BATCH_SIZE", parse::batch, defaults.batch_size)?,
            batch_interval: from.or(
                flags.batch_interval,
                "HARNESS_BATCH_INTERVAL",
                parse::interval,
                defaults.batch_interval,
            )?,
            replicas: from.or(flags.replicas, "HARNESS_REPLICAS", parse::replicas, defaults.replicas)?,
            merge_interval: from.or(
                flags.merge_interval,
                "HARNESS_MERGE_INTERVAL",
                parse::interval,
                defaults.merge_interval,
            )?,
            rate: from.or(flags.rate, "HARNESS_RATE", parse::rate, defaults.rate)?,
            burst: from.or(flags.burst, "HARNESS_BURST", parse::burst, defaults.burst)?,
            write_delay: from.or(
                flags.write_delay,
                "HARNESS_WRITE_DELAY",
                parse::duration,
                defaults.write_delay,
            )?,
            // As in the original, where 0 samples every operation as well.
            sample_every: sample_every.max(1),
            max_latency_samples: from.or(
                flags.max_latency_samples,
                "HARNESS_MAX_LAT_SAMPLES",
                parse::samples,
                defaults.max_latency_samples,
            )?,
            lookup: from.or(flags.lookup, "HARNESS_LOOKUP", one_of, defaults.lookup)?,
            names: defaults.names,
            store: from.or(flags.store.clone(), "HARNESS_STORE", parse::target, defaults.store)?,
        };
        Ok(settings)
    }

    /// Returns the same settings with names that no other run uses, for stores that keep commits.
    pub(super) fn apart_from_other_runs(&self) -> Self {
        let mut settings = self.clone();
        if settings.store.is_durable() {
            static RUNS: AtomicU64 = AtomicU64::new(0);
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
            let number = RUNS.fetch_add(1, Relaxed);
            settings.names = format!("run-{since:x}-{:x}-{number}:", std::process::id());
        }
        settings
    }

    /// Returns flags with which another process counts as this one would. The store is not among
    /// them: addresses contain passwords.
    pub(super) fn flags(&self) -> Vec<String> {
        [
            ("names", self.names.clone()),
            ("variant", self.variant.to_string()),
            ("goroutines", self.workers.to_string()),
            ("keys", self.keys.to_string()),
            ("churn", self.churn.to_string()),
            ("seed", self.seed.to_string()),
            ("threshold", self.threshold.to_string()),
            ("low_threshold", self.low_threshold.to_string()),
            ("cap", self.cap.to_string()),
            ("block", self.block.to_string()),
            ("commit_interval", duration::format(self.commit_interval)),
            ("commit_max_age", duration::format(self.commit_max_age)),
            ("initial_scalar", self.initial_scalar.to_string()),
            ("write_delay", duration::format(self.write_delay)),
            ("lookup", self.lookup.to_string()),
        ]
        .map(|(name, value)| format!("--{name}={value}"))
        .into()
    }

    /// Returns the names of all keys.
    pub(super) fn names(&self) -> Arc<[String]> {
        (0..self.keys).map(|key| format!("{}key-{key}", self.names)).collect()
    }

    /// Returns the same settings for another variant.
    #[must_use]
    pub fn of(&self, variant: Variant) -> Self {
        Settings { variant, ..self.clone() }
    }
}

/// An environment variable with an invalid value.
#[derive(Debug, thiserror::Error)]
#[error("{name}={value}: {reason}")]
pub struct VariableError {
    name: String,
    value: String,
    reason: String,
}

struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// Returns the flag, else the variable, else the default. An empty variable counts as unset, as
    /// in a shell's `${NAME:-default}`.
    fn or<T>(
        &self,
        flag: Option<T>,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
        default: T,
    ) -> Result<T, VariableError> {
        if let Some(value) = flag {
            return Ok(value);
        }
        match (self.0)(name).filter(|text| !text.is_empty()) {
            Some(value) => {
                parse(&value).map_err(|reason| VariableError { name: name.to_owned(), value, reason })
            }
            None => Ok(default),
        }
    }
}

/// Parses one of a flag's possible values.
fn one_of<T: ValueEnum>(text: &str) -> Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let names: Vec<String> = T::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .map(|value| value.get_name().to_owned())
            .collect();
        format!("there is no {text:?} there; there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::{Flags, Lookup, Settings};
    use crate::counter::variant::Variant;
    use std::time::Duration;

    fn resolve(flags: &Flags, variables: &[(&str, &str)]) -> anyhow::Result<Settings> {
        let environment = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::resolve(flags, &environment, Settings::harness())
    }

    #[test]
    fn flags_come_before_variables_and_those_before_defaults() {
        let variables = [
            ("HARNESS_KEYS", "128"),
            ("HARNESS_WORKERS", "4"),
            ("HARNESS_MAX_AGE", "20ms"),
            ("HARNESS_CHURN", ""),
        ];
        let flags = Flags { keys: Some(7), ..Flags::default() };
        let settings = resolve(&flags, &variables).unwrap();
        assert_eq!((settings.keys, settings.workers, settings.churn), (7, 4, 50));
        assert_eq!(settings.commit_max_age, Duration::from_millis(20));
        assert_eq!(settings.variant, Variant::Vsa);
    }

    #[test]
    fn a_variable_that_is_wrong_is_named() {
        let error = |name, value| format!("{:#}", resolve(&Flags::default(), &[(name, value)]).unwrap_err());
        let keys = error("HARNESS_KEYS", "many");
        assert!(keys.starts_with("HARNESS_KEYS=many: "), "{keys}");
        let churn = error("HARNESS_CHURN", "101");
        assert!(churn.starts_with("HARNESS_CHURN=101: ") && churn.contains("100"), "{churn}");
        let variant = error("HARNESS_VARIANT", "vsb");
        assert!(variant.contains("vsa, quota, exact"), "{variant}");
    }

    #[test]
    fn what_is_not_given_follows_from_the_threshold() {
        let settings = resolve(&Flags { threshold: Some(192), ..Flags::default() }, &[]).unwrap();
        assert_eq!((settings.low_threshold, settings.cap, settings.block), (96, 192, 192));
        let flags = Flags { threshold: Some(192), cap: Some(100), ..Flags::default() };
        assert!(resolve(&flags, &[]).unwrap_err().to_string().contains("cap"));
    }

    #[test]
    fn another_process_gets_all_settings_that_decide_how_it_counts() {
        #[derive(clap::Parser)]
        struct Program {
            #[arg(long)]
            names: String,
            #[command(flatten)]
            flags: Flags,
        }
        let settings = Settings {
            variant: Variant::Exact,
            workers: 3,
            keys: 9,
            churn: 17,
            seed: 5,
            threshold: 40,
            low_threshold: 7,
            cap: 50,
            block: 20,
            commit_interval: Duration::from_micros(1_500),
            commit_max_age: Duration::from_secs(90),
            initial_scalar: 123,
            write_delay: Duration::from_nanos(250),
            lookup: Lookup::Handle,
            names: "run-1:".to_owned(),
            ..Settings::harness()
        };
        let arguments = ["victim".to_owned()].into_iter().chain(settings.flags());
        let program: Program = clap::Parser::parse_from(arguments);
        let understood = resolve(&program.flags, &[("HARNESS_KEYS", "1000")]).unwrap();
        assert_eq!(Settings { names: program.names, ..understood }, settings);
    }
}

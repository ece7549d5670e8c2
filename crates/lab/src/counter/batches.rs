//! Batches of runs, as in the original's scripts.

use super::settings::Settings;
use super::variant::Variant;
use std::time::Duration;

/// The original's three in its order, then ours.
const BASELINES: &[Variant] = &[
    Variant::Token,
    Variant::Leaky,
    Variant::Vsa,
    Variant::Quota,
    Variant::Exact,
    Variant::Atomic,
    Variant::Batch,
    Variant::Crdt,
    Variant::Gcra,
    #[cfg(feature = "peers")]
    Variant::Governor,
];

const WRITE_DELAYS: [Duration; 4] =
    [Duration::ZERO, Duration::from_micros(50), Duration::from_micros(200), Duration::from_millis(1)];
const COMMIT_INTERVALS: [Duration; 3] =
    [Duration::from_millis(1), Duration::from_millis(2), Duration::from_millis(5)];
const THRESHOLDS: [u64; 3] = [128, 192, 256];

/// Returns the settings of every variant, or only of the requested one.
pub(super) fn baselines(settings: &Settings, only: Option<Variant>) -> Vec<Settings> {
    BASELINES
        .iter()
        .filter(|variant| only.is_none_or(|only| only == **variant))
        .map(|one| settings.of(*one))
        .collect()
}

/// Returns the original's three variants for each write delay, then vsa for each commit interval
/// and threshold; the low threshold is half of the threshold.
pub(super) fn sweep(settings: &Settings) -> Vec<Settings> {
    let delays = WRITE_DELAYS.into_iter().flat_map(|write_delay| {
        [Variant::Token, Variant::Leaky, Variant::Vsa]
            .map(|variant| Settings { write_delay, ..settings.of(variant) })
    });
    let commits = COMMIT_INTERVALS.into_iter().flat_map(|commit_interval| {
        THRESHOLDS.map(|threshold| Settings {
            commit_interval,
            threshold,
            low_threshold: threshold / 2,
            cap: threshold,
            ..settings.of(Variant::Vsa)
        })
    });
    delays.chain(commits).collect()
}

#[cfg(test)]
mod tests {
    use super::{baselines, sweep};
    use crate::counter::settings::Settings;
    use crate::counter::variant::Variant;
    use std::collections::HashSet;

    #[test]
    fn baselines_begin_with_the_originals() {
        let runs = baselines(&Settings::baselines(), None);
        let first: Vec<_> = runs.iter().take(3).map(|run| run.variant).collect();
        assert_eq!(first, [Variant::Token, Variant::Leaky, Variant::Vsa]);
        assert_eq!(baselines(&Settings::baselines(), Some(Variant::Exact)).len(), 1);
    }

    #[test]
    fn a_sweep_has_every_delay_and_every_interval_with_every_threshold() {
        let runs = sweep(&Settings::baselines());
        assert_eq!(runs.len(), 4 * 3 + 3 * 3);
        let (delays, commits) = runs.split_at(12);
        assert_eq!(delays.iter().map(|run| run.write_delay).collect::<HashSet<_>>().len(), 4);
        let grid: HashSet<_> = commits.iter().map(|run| (run.commit_interval, run.threshold)).collect();
        assert_eq!(grid.len(), 9);
        assert!(commits.iter().all(|run| run.variant == Variant::Vsa && run.low_threshold * 2 == run.cap));
    }
}

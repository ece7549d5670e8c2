//! Sample reading of counters for tests.

use super::reading::{Reading, State, TopKey, Totals};
use std::time::{Duration, Instant};

/// Returns a reading of three counters that lists two of them.
pub(super) fn reading() -> Reading {
    Reading {
        at: Instant::now(),
        totals: Totals {
            moves: 12_345,
            moved_units: 50_000,
            commits: 345,
            committed_units: 10_000,
            commit_errors: 2,
        },
        state: State {
            keys: 3,
            uncommitted: 2,
            uncommitted_units: 40,
            reserved_units: 10,
            oldest: Duration::from_millis(820),
        },
        sample: 16,
        window: Duration::from_millis(45_200),
        keys: vec![
            TopKey {
                key: b"seats\n".to_vec(),
                id: "00ff00ff00ff00ff".to_owned(),
                db: 0,
                moves: 1600,
                error: 32,
                units: 3200,
                committed: 16,
                churn: 0.995,
            },
            TopKey {
                key: b"likes".to_vec(),
                id: "0123456789abcdef".to_owned(),
                db: 15,
                moves: 16,
                error: 0,
                units: 16,
                committed: 16,
                churn: 0.0,
            },
        ],
    }
}

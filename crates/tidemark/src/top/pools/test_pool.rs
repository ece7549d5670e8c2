//! Sample pools for tests.

use super::reading::{Item, Pool, Summary};
use super::verdict::Verdict;

/// Builds a pool from its items (id, units left, units drawn, odds).
pub(super) fn pool(items: &[(&str, Option<u64>, u64, f64)], nothing: f64, draws: u64) -> Pool {
    let item = |&(id, left, drawn, odds): &(&str, Option<u64>, u64, f64)| Item {
        id: id.as_bytes().to_vec(),
        left,
        drawn,
        odds,
    };
    Pool {
        summary: Summary {
            key: b"summer".to_vec(),
            draws,
            reservations: 3,
            epoch: 1,
            items: items.len() as u64,
            rate: Some(12.5),
        },
        version: 1,
        released_until: 0,
        nothing,
        items: items.iter().map(item).collect(),
        is_beyond: false,
        verdict: Verdict::default(),
    }
}

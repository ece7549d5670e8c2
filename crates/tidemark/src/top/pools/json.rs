//! Pools as one line of JSON for programs.

use super::reading::{Pool, Reading};
use serde_json::{Value, json};

/// Returns a reading. Bytes of keys that are not UTF-8 are replaced.
pub(super) fn document(reading: &Reading, items: usize) -> Value {
    json!({
        "pools": reading.count,
        "complete": reading.is_all,
        "draws": reading.draws,
        "draws_per_second": reading.rate,
        "reservations": reading.reservations,
        "top": reading.pools.iter().map(|pool| one(pool, items)).collect::<Vec<_>>(),
    })
}

fn one(pool: &Pool, items: usize) -> Value {
    let summary = &pool.summary;
    json!({
        "key": String::from_utf8_lossy(&summary.key),
        "draws": summary.draws,
        "draws_per_second": summary.rate,
        "reservations": summary.reservations,
        "epoch": summary.epoch,
        "version": pool.version,
        "items": summary.items,
        "sold_out": pool.sold_out(),
        "nothing_odds": pool.nothing,
        "compared_draws": pool.verdict.compared,
        "left_out_draws": pool.verdict.left_out,
        "deviation": pool.verdict.deviation,
        "verdict": pool.verdict.word(),
        "stock": pool.most_informative().into_iter().take(items).map(|item| json!({
            "id": String::from_utf8_lossy(&item.id),
            "left": item.left,
            "unlimited": item.left.is_none(),
            "drawn": item.drawn,
            "share": pool.share(item),
            "odds": item.odds,
        })).collect::<Vec<_>>(),
    })
}

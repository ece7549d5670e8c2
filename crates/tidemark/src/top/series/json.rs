//! Series as one line of JSON for programs.

use super::reading::{Reading, Series};
use serde_json::{Value, json};

/// Returns a reading. Bytes of keys that are not UTF-8 are replaced.
pub(super) fn document(reading: &Reading) -> Value {
    json!({
        "series": reading.count,
        "complete": reading.is_all,
        "points": reading.points,
        "points_per_second": reading.rate,
        "bytes": reading.bytes,
        "top": reading.series.iter().map(one).collect::<Vec<_>>(),
    })
}

fn one(series: &Series) -> Value {
    json!({
        "key": String::from_utf8_lossy(&series.key),
        "points": series.points,
        "points_per_second": series.rate,
        "bytes": series.bytes,
        "bytes_per_point": series.bytes_per_point(),
        "labels": series.labels,
    })
}

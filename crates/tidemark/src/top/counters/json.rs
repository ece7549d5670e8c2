//! Counters as one line of JSON for programs.

use super::reading::{Rates, Reading};
use serde_json::{Value, json};

/// Returns a reading, with the rates since the one before. Bytes of a key that are not UTF-8 are
/// replaced; its id is exact.
pub(super) fn document(reading: &Reading, rates: Option<&Rates>) -> Value {
    let (totals, state) = (&reading.totals, &reading.state);
    json!({
        "keys": state.keys,
        "uncommitted": {
            "counters": state.uncommitted,
            "units": state.uncommitted_units,
            "oldest_seconds": state.oldest.as_secs_f64(),
        },
        "reserved_units": state.reserved_units,
        "total": {
            "moves": totals.moves,
            "moved_units": totals.moved_units,
            "commits": totals.commits,
            "committed_units": totals.committed_units,
            "commit_errors": totals.commit_errors,
            "write_reduction": totals.write_reduction(),
            "churn": totals.churn(),
        },
        "per_second": rates.map(|rates| json!({
            "moves": rates.moves,
            "moved_units": rates.moved_units,
            "commits": rates.commits,
            "committed_units": rates.committed_units,
            "write_reduction": rates.write_reduction,
            "churn": rates.churn,
        })),
        "sample": reading.sample,
        "window_seconds": reading.window.as_secs_f64(),
        "top": reading.keys.iter().map(|key| json!({
            "key": String::from_utf8_lossy(&key.key),
            "id": key.id,
            "db": key.db,
            "moves": key.moves,
            "error": key.error,
            "units": key.units,
            "committed": key.committed,
            "churn": key.churn,
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::document;
    use crate::top::counters::test_reading::reading;
    use std::time::Duration;

    #[test]
    fn a_document_is_one_line_with_all_there_is() {
        let (earlier, mut later) = (reading(), reading());
        later.at = earlier.at + Duration::from_secs(4);
        later.totals.moves += 100;
        let document = document(&later, later.rates_since(&earlier).as_ref());
        assert!(!document.to_string().contains('\n'));
        assert_eq!(document["per_second"]["moves"], 25.0);
        assert_eq!(document["total"]["moves"], 12_445);
        assert_eq!(document["total"]["churn"], 0.8);
        assert_eq!(document["uncommitted"]["oldest_seconds"], 0.82);
        assert_eq!(document["top"][0]["key"], "seats\n");
        assert_eq!(document["top"][1]["db"], 15);
        assert!(super::document(&later, None)["per_second"].is_null());
    }
}

//! The names of columns.

use crate::unit::Unit;

/// Column of keys.
pub(crate) const KEY: &str = "key";

/// Column of values.
pub(crate) const VALUE: &str = "value";

/// Column of times whose type says what they are: timestamps of Parquet, or texts.
pub(crate) const TIME: &str = "time";

/// What the column of a label begins with: no label can be taken for another column, and readers find labels.
pub(crate) const LABEL: &str = "label_";

/// Returns the name of a column of whole numbers, which says their unit.
pub(crate) fn time_in(unit: Unit) -> String {
    format!("{TIME}_{unit}")
}

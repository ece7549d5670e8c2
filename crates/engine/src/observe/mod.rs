//! What operators and clients ask of the engine's state: totals, figures, one key's description.

pub(crate) mod counter_churn;
pub(crate) mod key_description;
pub(crate) mod key_totals;
pub(crate) mod pool_figures;

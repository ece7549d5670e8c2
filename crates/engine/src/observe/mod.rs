//! The engine's state for operators and clients: totals, figures, the description of a key.

pub(crate) mod counter_churn;
pub(crate) mod key_description;
pub(crate) mod key_totals;
pub(crate) mod pool_figures;

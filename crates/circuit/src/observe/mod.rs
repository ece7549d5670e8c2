//! Observation of circuits: stats, metrics, traces.

#[cfg(any(feature = "metrics", feature = "opentelemetry"))]
pub(crate) mod census;
pub(crate) mod followers;
#[cfg(feature = "opentelemetry")]
pub(crate) mod meter;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
pub(crate) mod stats;
pub(crate) mod telemetry;

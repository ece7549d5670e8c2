//! Circuits through their public interface: one binary, so that the crate is linked once.
//!
//! Tests that concern the whole process are not here: tests that count its memory, take away its
//! rights, subscribe to its telemetry, or run in an interpreter have targets of their own.

mod again;
mod asynchronous;
mod bounded;
mod circles;
mod conformance;
mod drivers;
mod emitting;
mod ending;
mod failures;
mod frames;
mod handles;
mod hostile;
mod journal_versions;
mod labels;
mod limit;
#[cfg(feature = "metrics")]
mod metrics;
mod operator_panics;
mod operators;
mod order;
mod recording;
mod replay;
mod replay_observers;
mod replay_untrusted;
#[cfg(feature = "signals")]
mod signals;
mod simulation;
mod stats;
#[cfg(feature = "stream")]
mod stream;
mod tasks;

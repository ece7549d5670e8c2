//! Fuzz targets: one function for each format that Tidemark reads from a file or a socket.
//!
//! Two programs run the same functions: `tidemark-fuzz` (this crate's binary, on a stable compiler,
//! a step of `./check`) and the cargo-fuzz targets in `fuzz/` (libFuzzer, guided by coverage, for
//! long runs). See `fuzz/README.md`.
//!
//! | file | content |
//! |---|---|
//! | `targets/` | a file for each target: its function, and the initial inputs of its corpus |
//! | `input` | how an input is cut into fields |
//! | `mutation` | how the runner changes inputs |
//! | `corpus` | the kept inputs in `fuzz/corpus/` |
//! | `runner` | the runner: a process for each target, its limits, and its report |
//!
//! A target fixes checksums where its input asks for that, so mutations get past them in either
//! program.

pub mod corpus;
mod input;
mod mutation;
pub mod runner;
pub mod targets;

pub use targets::{TARGETS, Target};

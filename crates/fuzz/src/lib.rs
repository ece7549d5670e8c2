//! Fuzz targets: one function each for every kind of bytes that Tidemark takes from a file or a
//! socket.
//!
//! Two programs run the same functions: `tidemark-fuzz` (this crate's binary, on a stable compiler,
//! a step of `./check`) and the cargo-fuzz targets in `fuzz/` (libFuzzer, which is guided by
//! coverage, for long runs). `fuzz/README.md` says how.
//!
//! | file | what it has |
//! |---|---|
//! | `targets/` | a file for each target: its function, and the inputs its corpus begins with |
//! | `input` | how an input is cut into fields |
//! | `mutation` | how the runner changes inputs |
//! | `corpus` | the kept inputs in `fuzz/corpus/` |
//! | `runner` | the runner: a process for each target, its limits, and its report |
//!
//! A target fixes checksums where its input asks for that, so mutations get behind them
//! in either program.

pub mod corpus;
mod input;
mod mutation;
pub mod runner;
pub mod targets;

pub use targets::{TARGETS, Target};

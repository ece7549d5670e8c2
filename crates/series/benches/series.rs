//! Cost of time series: `cargo bench -p tidemark-series -- [PATTERN…] [FLAGS]`; `-- -l` lists the
//! benchmarks, `-- --help` the flags.
//!
//! The benchmarks are in the lab (`crates/lab`).

use std::alloc::System;
use std::process::ExitCode;
use tidemark_lab::allocations::Counting;

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

fn main() -> ExitCode {
    tidemark_lab::series_cost::main()
}

//! Cost of time series: `cargo bench -p tidemark-series -- [PATTERN…] [FLAGS]`; `-- -l` lists the
//! benchmarks, `-- --help` the flags.
//!
//! The benchmarks are in the lab (`crates/lab`).

use std::process::ExitCode;
use tidemark_lab::allocations::Counting;

// As in the server: what a new block costs is the allocator's part of an append.
#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting::new(mimalloc::MiMalloc);

fn main() -> ExitCode {
    tidemark_lab::series_cost::main()
}

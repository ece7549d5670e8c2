//! Flags of the laboratory of pools.

#[cfg(feature = "wire")]
use super::wire::WireOptions;
use crate::micro::MicroOptions;

/// Flags of `tidemark bench pool`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct PoolOptions {
    #[command(flatten)]
    pub(super) micro: MicroOptions,
    #[cfg(feature = "wire")]
    #[command(flatten)]
    pub(super) wire: WireOptions,
}

const AFTER_HELP: &str = "\
A draw that was refused is no work: a row whose draws were not all made, or whose stock does not add up, has failed.
Flags may be written with one dash (-bm thrpt -wi 5 -i 10 -rf json -rff results.json).
What tiny-reward-pool's benchmarks print, a line for each iteration, to be laid beside theirs:
  tidemark bench pool --go PoolDraw DrawWith DrawChannel
What others have for the same is there in a program that was built with it:
  cargo bench -p tidemark-pool --features tidemark-lab/peers -- --against peers
Draws from a server that runs, and what a Redis has that is like them, in turns; `cargo bench` has no such rows:
  tidemark bench pool -p 7379 --redis redis://localhost:6379 WireOps
Logs are written to folders below that for temporary files, which TMPDIR says, and are gone afterwards.
Exit codes: 0 measured; 1 a benchmark failed, or the results could not be written, or Ctrl-C; 2 wrong flags, or a pattern that fits
nothing.";

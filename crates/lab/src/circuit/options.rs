//! Flags of the laboratory of circuits.

use crate::micro::MicroOptions;

/// Flags of `tidemark bench circuit`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct CircuitOptions {
    #[command(flatten)]
    pub(super) micro: MicroOptions,
}

const AFTER_HELP: &str = "\
Ctrl-C ends the run with what is measured until then; a second Ctrl-C ends it at once. Of a benchmark that fails the table says
why, and the others are measured all the same.
Flags may be written with one dash (-bm thrpt -wi 5 -i 10 -rf json -rff results.json).
Rows under the original's names measure what the original's benchmarks measure; -v says where that is less than the name
promises, and the rows beside them, such as those that end with _batch, are then the ones to look at.
Peers other than std::sync::mpsc are there in a program that was built with them:
  cargo bench -p tidemark-circuit --features tidemark-lab/peers -- --against peers
The tables of docs/performance.md are that one's, with --markdown, and those of:
  cargo bench -p tidemark-circuit -- --summary --markdown
Exit codes: 0 measured; 1 a benchmark failed (it lost a value, or panicked, or its process died), or the results could not be
written, or Ctrl-C; 2 wrong flags, or a pattern that fits nothing.";

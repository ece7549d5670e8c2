//! Blocks of series in block files: written with a snapshot, found when one is loaded.
//!
//! A snapshot's walk runs under locks, so it only decides which bundle a block will be in ([`Blocks`]).
//! The thread that writes the snapshot compresses and writes the bundles, and gives the blocks their
//! places when all of it is durable ([`BlockPlacement`]).

mod address;
mod bundler;
mod compaction;
mod directory;
mod finding;
mod placing;
mod shared_times;
mod source;

pub(crate) use address::{Address, Where};
pub(crate) use bundler::Blocks;
pub(crate) use finding::BlockFinder;
pub(crate) use placing::BlockPlacement;
pub use placing::BlockWriteError;

/// Bytes of a word.
const WORD_BYTES: usize = size_of::<u64>();

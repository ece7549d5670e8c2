#![doc = include_str!("../README.md")]
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | what a series is | `series` |
//! | how points become words | `codec`, from `words` to `values` |
//! | what a sealed block has, how damage is found, and where its points are kept | `block`, `unreadable` |
//! | how blocks are compressed further in files | `bundle` |
//! | how buckets are aggregated | `window`, `exact_sum` |
//! | functions over functions | `lens` |
//!
//! Each module uses only modules before it: `sample`, `codec`, `exact_sum`, `unreadable` ─► `block` ─► `bundle`, `series`
//! ─► `window`, `lens`.

#![cfg_attr(test, allow(clippy::float_cmp, reason = "results are exact"))]

mod block;
mod bundle;
mod codec;
mod exact_sum;
mod lens;
mod sample;
mod series;
mod unreadable;
mod window;

pub use block::{Beside, Block, BlockError, BlockSource, PinnedBlocks, Place, Summary};
pub use bundle::{BUNDLE_BLOCKS, Bundle, BundleTimes, MalformedBundle, StoredBundle};
pub use lens::{
    Difference, Expression, ExpressionError, Function, Gap, Lens, Points, ReadRuns, Span, Transform, View,
    ViewError,
};
pub use sample::{Kind, Sample};
pub use series::{
    AppendError, Appended, Chunk, Direction, DuplicatePolicy, Ignore, ImageError, Options, Part, Reading,
    SealedPiece, Series, Snapshot, Unsealed,
};
pub use unreadable::{UnreadableBlock, guarded, guarded_or, naming, take_refusing_block};

pub use window::{Aggregation, Buckets, UnknownAggregation, Window, Windows, aggregate};

/// Most points of a block.
pub const BLOCK_POINTS: usize = 1024;

#![doc = include_str!("../README.md")]
//! # Map
//!
//! | to see | read |
//! |---|---|
//! | what a series is | `series` |
//! | how points become words | `codec`, from `words` to `values` |
//! | what a sealed block has, and how damage is found | `block` |
//! | how buckets are aggregated | `window`, `exact_sum` |
//! | functions over functions | `lens` |
//!
//! Each module uses only modules before it: `sample`, `codec`, `exact_sum` ─► `block` ─► `series`
//! ─► `window`, `lens`.

#![cfg_attr(test, allow(clippy::float_cmp, reason = "results are exact"))]

mod block;
mod codec;
mod exact_sum;
mod lens;
mod sample;
mod series;
mod window;

pub use block::{Block, BlockError, Summary};
pub use lens::{
    Difference, Expression, ExpressionError, Function, Gap, Lens, Points, ReadRuns, Span, Transform, View,
    ViewError,
};
pub use sample::{Kind, Sample};
pub use series::{
    AppendError, Appended, Chunk, Direction, DuplicatePolicy, Ignore, ImageError, Options, Reading,
    SealedPiece, Series, Snapshot, Unsealed,
};

pub use window::{Aggregation, Buckets, UnknownAggregation, Window, Windows, aggregate};

/// Most points of a block.
pub const BLOCK_POINTS: usize = 1024;

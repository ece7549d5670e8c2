//! The journal of a circuit's inputs: written by a [`Recording`], run again by a [`Replay`].
//!
//! What a circuit does is a function of its inputs in their order: emissions from outside, requests to ports and basins,
//! subscriptions, those of taps and reservoirs among them, and closes, each with the time at which it was handled, and the seed of its random numbers. The journal has
//! these and nothing else: what the circuit sends to itself, it sends again. An update of a port is a function, which cannot be
//! written down; the value that it has made can, and stands for it.
//!
//! ```text
//! "tidemark circuit journal 3\n"   seed (8 bytes)   CRC32 of both
//! ┌────────┬──────┬──────────────────────┬───────┐
//! │ length │ kind │ content              │ CRC32 │  one frame per input, text or end; numbers are LEB128
//! └────────┴──────┴──────────────────────┴───────┘
//! ```
//!
//! Texts are written once, when they are first needed, and are referred to by their number from then on. Versions 1 and 2
//! are still read: version 1 had no frames for ports, basins, subscriptions of before the recording, and what is called when one ends,
//! and version 2 none for reservoirs and captures.

mod allowance;
mod error;
mod frame;
mod input;
mod label;
mod origin;
mod recorded;
mod recorder;
mod recording;
mod replay;

pub use error::ReplayError;
pub use recorded::Recorded;
pub(crate) use recorder::Recorder;
pub use recording::Recording;
pub use replay::{Replay, Replayed};

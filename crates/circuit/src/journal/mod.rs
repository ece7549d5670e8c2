//! The journal of a circuit's inputs: written by a [`Recording`], replayed by a [`Replay`].
//!
//! What a circuit does is a function of its seed and of its inputs in their order, each with the
//! time at which it was handled. Inputs are emissions from outside, requests to ports and basins,
//! subscriptions (including those of taps and reservoirs), and closes. The journal has these and
//! nothing else: what the circuit emits to itself, it emits again. An update of a port is a
//! function, which cannot be recorded; the value that it made is recorded instead.
//!
//! ```text
//! "tidemark circuit journal 4\n"   seed (8 bytes)   CRC32 of both
//! ┌────────┬──────┬──────────────────────┬───────┐
//! │ length │ kind │ content              │ CRC32 │  one frame per input, text or end; numbers are LEB128
//! └────────┴──────┴──────────────────────┴───────┘
//! ```
//!
//! Texts are written once, when they are first needed, and referred to by number from then on. Older
//! versions are still read: version 1 had no frames for ports, basins, subscriptions from before the
//! recording, and callbacks for the end of one; version 2 had none for reservoirs and captures, and
//! version 3 none for banks.

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

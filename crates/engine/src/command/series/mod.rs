//! Time series, as Redis's `TS.` commands have them.
//!
//! ```text
//! rows ──► creating ◄── adding, ruling ──► compaction ──► foresight, options ──► points ──► errors
//!      └─► reading, waiting, joined ──► several ──► range, filter ──► pattern ──────────────────┘
//!                following ──► followed_keys ──┴───────┘
//! ```
//!
//! What adds points is logged in columns (`persist::points`), every other command as it was sent; `*`
//! is the record's time, and `clock` has times relative to it.

mod adding;
pub(super) mod clock;
mod compaction;
mod creating;
mod errors;
mod filter;
mod followed_keys;
mod following;
mod foresight;
mod joined;
mod options;
mod pattern;
mod points;
mod range;
mod reading;
pub(super) mod rows;
mod ruling;
mod several;
mod waiting;

pub(crate) use adding::replay as replay_points;
pub(crate) use filter::find as find_series;
pub(crate) use following::{begin_following, decode_followed};
pub(super) use reading::reply_all_labels;

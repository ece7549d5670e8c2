//! Streams: entries in the order of their IDs, read by any number of readers, or shared among the
//! consumers of groups.
//!
//! What a command chooses is in its record: an ID from the clock, and how many entries an approximate
//! trim has left. Everything else follows from the record, its time and the stream.

mod adding;
mod claiming;
mod groups;
mod ids;
mod info;
mod pending;
mod ranges;
mod reading;
mod replying;
pub(super) mod rows;

pub(crate) use reading::check_repeatable;

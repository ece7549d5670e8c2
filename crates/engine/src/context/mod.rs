//! What a command's handler sees: the keys that it may touch, the answer that it writes, and nothing else.

mod counters;
mod effects;
mod keys;
mod locked;
pub(crate) mod pools;

pub use keys::Keys;

pub(crate) use counters::out_of_range;
pub(crate) use effects::{Effects, RareEffects};
pub(crate) use locked::Locked;

use crate::wire::reply::Reply;

/// The surroundings of one running command.
pub struct Context<'k, 'r> {
    /// Keys, all of whose shards are locked.
    pub keys: &'r mut Keys<'k>,
    /// The answer.
    pub reply: &'r mut Reply,
}

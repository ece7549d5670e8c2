//! What a command's handler can access: its keys and its reply.

mod effects;
mod keys;
mod locked;

pub use keys::Keys;
pub(crate) use keys::{out_of_range, pools};

pub(crate) use effects::{Effects, RareEffects};
pub(crate) use locked::Locked;

use crate::wire::reply::Reply;

/// Context of one running command.
pub struct Context<'k, 'r> {
    /// The keys; all of their shards are locked.
    pub keys: &'r mut Keys<'k>,
    /// The reply.
    pub reply: &'r mut Reply,
}

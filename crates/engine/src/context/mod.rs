//! What a command's handler can access: its keys and its reply.

mod effects;
mod keys;
mod locked;

pub use keys::Keys;
pub(crate) use keys::{Seen, keep_encoder, out_of_range, pools, without_links};

pub(crate) use effects::{Effects, RareEffects, Rest};
pub(crate) use locked::Locked;

use crate::error::CommandError;
use crate::wire::reply::Reply;

/// Context of one running command.
pub struct Context<'k, 'r> {
    /// The keys; all of their shards are locked.
    pub keys: &'r mut Keys<'k>,
    /// The reply.
    pub reply: &'r mut Reply,
}

impl Context<'_, '_> {
    /// Writes the reply from references that the handler has taken: after the locks are released, if
    /// the caller does that early, or now. Nothing may follow it.
    pub(crate) fn write_unlocked(
        &mut self,
        write: impl FnOnce(&mut Reply) -> Result<(), CommandError> + Send + 'static,
    ) -> Result<(), CommandError> {
        if !self.keys.releases_early() {
            return write(self.reply);
        }
        self.keys.effects.rare_mut().rest = Some(Rest::new(write));
        Ok(())
    }
}
